/*
 * Records of the chat: agents, visitors, conversations, messages, leads, events, ratings. Part of
 * store.h, whose rules about snapshots, borrowed values, callbacks and changes apply.
 *
 * Ids are ULIDs that increase over the whole store: after an id, no smaller one is ever created, so
 * a cursor skips nothing.
 */
#ifndef ASSAY_STORE_WIDGET_H
#define ASSAY_STORE_WIDGET_H

#include "store/ulid.h"

#define STORE_ORIGINS_MAX 8192   /* bytes of an agent's allowed origins, one a line */
#define STORE_SETTINGS_MAX 32768 /* bytes of its settings */
/* bytes of a message's text, a payload, other texts of a visitor */
#define STORE_TEXT_MAX 32768

enum conversation_status {
    CONVERSATION_OPEN,
    CONVERSATION_WAITING,
    CONVERSATION_CLAIMED,
    CONVERSATION_CLOSED,
    CONVERSATION_STATUSES
};
enum message_role { ROLE_OF_VISITOR, ROLE_OF_ASSISTANT, ROLE_OF_OPERATOR };

struct store_agent {
    struct ulid id;
    uint64_t workspace, version;
    bool is_published, require_lead;
    int64_t created_at, updated_at;
    struct str name;
    struct str origins; /* allowed origins, one a line, each line ended; "*" is any */
    struct str
        /*
         * JSON members without braces:
         * "theme":…,"starter_prompts":…,"lead_form_fields":…,"language_default":…
         */
        settings;
};

struct store_conversation {
    struct ulid id, agent, visitor;
    struct ulid last;    /* its newest message; none: it has none */
    struct ulid cleared; /* the visitor has cleared the messages up to this one */
    struct ulid read;    /* the visitor has read up to this one */
    struct ulid rating_id;
    uint64_t workspace, version, messages;
    uint64_t claimed_by; /* key of the operator who claimed it; 0: nobody */
    uint64_t closed_by; /* key of the operator who closed it; 0: the visitor, or it is not closed */
    bool human_requested, lead_captured;
    unsigned rating; /* 1–5; 0: none */
    int64_t created_at, updated_at, closed_at;
    struct str page_url;
    struct str claimed_name; /* name of the operator who claimed it; empty: not sent */
};

/* conversation_status(c): follows from its members. */
static inline enum conversation_status conversation_status(const struct store_conversation *c)
{
    return c->closed_at != 0    ? CONVERSATION_CLOSED
           : c->claimed_by != 0 ? CONVERSATION_CLAIMED
           : c->human_requested ? CONVERSATION_WAITING
                                : CONVERSATION_OPEN;
}

struct store_message {
    struct ulid id;
    enum message_role role;
    int64_t created_at;
    bool low_confidence;        /* of an answer */
    struct str text, citations; /* citations: JSON array, empty: none */
    struct str client_id, page_url,
        page_context; /* of a visitor; empty: none; page_context is JSON */
};

/*
 * What one visitor sent under a lead's address. Addresses are not verified, so what one visitor
 * sends never changes, shows or deletes what another one sent.
 */
struct store_sender {
    struct ulid visitor, conversation; /* conversation: of the last time it was sent */
    int64_t created_at, updated_at;
    struct str email, name, phone,
        fields; /* email: in this sender's spelling; fields: JSON object, empty: none */
};

struct store_lead {
    struct ulid id, agent;
    const struct store_sender *senders; /* first sender first; at least one */
    size_t senders_n;
};

struct store_event_row {
    struct ulid id, agent, visitor, conversation;
    int64_t created_at, at;   /* at: by the visitor's clock; 0: not sent */
    struct str kind, payload; /* payload: JSON, empty: none */
};

struct store_rating {
    struct ulid id, agent, visitor, conversation;
    unsigned rating; /* 1–5 */
    int64_t created_at, updated_at;
    struct str comment;
};

struct store;

/* ---- reading ---- */

typedef void store_agent_fn(void *arg, enum store_status status, const struct store_agent *agent);
typedef void store_conversation_fn(void *arg, enum store_status status,
                                   const struct store_conversation *conversation);

/*
 * store_agent_get(s, id, done, arg): in any workspace that exists. store_agent_each: as
 * store_key_each.
 */
void store_agent_get(struct store *s, const struct ulid *id, store_agent_fn *done, void *arg);
void store_agent_each(struct store *s, uint64_t workspace, store_agent_fn *each, void *arg);

/*
 * store_session_get(s, agent, visitor, conversation, done, arg): what a visitor's token names, if
 * all three exist and belong together. The caller checks whether the agent is published.
 */
typedef void store_session_fn(void *arg, enum store_status status, const struct store_agent *agent,
                              const struct store_conversation *conversation);
void store_session_get(struct store *s, const struct ulid *agent, const struct ulid *visitor,
                       const struct ulid *conversation, store_session_fn *done, void *arg);

/*
 * store_visitor_resume(s, agent, secret, begun_after, done, arg): the conversation that the visitor
 * with this secret (its digest, 32 bytes) continues: begun after that time and not closed by the
 * visitor.
 */
void store_visitor_resume(struct store *s, const struct ulid *agent, const uint8_t secret[32],
                          int64_t begun_after, store_conversation_fn *done, void *arg);

/* store_conversation_get(s, workspace, id, done, arg): for an operator. */
void store_conversation_get(struct store *s, uint64_t workspace, const struct ulid *id,
                            store_conversation_fn *done, void *arg);

typedef void store_message_fn(void *arg, enum store_status status,
                              const struct store_message *message);

/*
 * store_message_each(s, query, each, arg): messages after ${after} and before ${before} (none: no
 * bound), at most ${limit}, until their texts reach ${bytes} (0: no bound). With ${newest} the
 * newest ones, newest first; otherwise the oldest ones, oldest first. Then once with NULL and
 * STORE_NOT_FOUND (there are no more) or STORE_OK (a limit was reached). store_message_get: one.
 */
struct store_messages_query {
    struct ulid conversation, after, before;
    bool newest;
    unsigned limit;
    size_t bytes;
};
void store_message_each(struct store *s, const struct store_messages_query *query,
                        store_message_fn *each, void *arg);
void store_message_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                       store_message_fn *done, void *arg);

/* A note of an operator for other operators; visitors never see it. Texts are borrowed. */
struct store_note {
    struct ulid id;
    uint64_t key; /* of the operator */
    int64_t created_at;
    struct str name, text; /* name: empty: not sent */
};
typedef void store_note_fn(void *arg, enum store_status status, const struct store_note *note);

/*
 * store_note_each(s, query, each, arg): as store_message_each, without ${bytes}. store_note_get:
 * one.
 */
void store_note_each(struct store *s, const struct store_messages_query *query, store_note_fn *each,
                     void *arg);
void store_note_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                    store_note_fn *done, void *arg);

/* What an operator lists. */
enum store_rows { ROWS_CONVERSATIONS, ROWS_LEADS, ROWS_EVENTS, ROWS_RATINGS };
struct store_rows_query {
    uint64_t workspace;
    struct ulid agent;    /* none: all of the workspace */
    unsigned class;       /* of conversations: status + 1; 0: all */
    struct ulid after;    /* last id of the previous page; none: the first page */
    int64_t since, until; /* created from … to before …; 0: no bound */
    unsigned limit;
};

/*
 * One row; one pointer is set. All are NULL when many records on the way belong to an erased
 * visitor and wait to be deleted. Borrowed for the call.
 */
struct store_row {
    struct ulid id;
    const struct store_conversation *conversation;
    const struct store_lead *lead;
    const struct store_event_row *event;
    const struct store_rating *rating;
};

/*
 * store_rows_each(s, rows, query, each, arg): newest first, then once with NULL as
 * store_message_each. ${each} returns false to refuse the row: the list ends before it, with
 * STORE_OK.
 */
typedef bool store_row_fn(void *arg, enum store_status status, const struct store_row *row);
void store_rows_each(struct store *s, enum store_rows rows, const struct store_rows_query *query,
                     store_row_fn *each, void *arg);

/* ---- search in conversations ---- */

#define STORE_PATTERN_CHARS 200 /* of the search pattern */
#define STORE_SEARCH_ROWS 100   /* maximum of a page */

/*
 * BY_TEXT: messages, notes and the names of their authors. BY_VISITOR: addresses and names that the
 * visitor left, or the visitor's id. Case and accents are ignored.
 */
enum store_search_by { SEARCH_BY_TEXT, SEARCH_BY_VISITOR };

struct store_search {
    struct store_rows_query rows; /* which conversations */
    enum store_search_by by;
    struct str pattern;  /* UTF-8 */
    uint64_t budget;     /* about how many messages, notes, leads and conversations may be read */
    store_stop_fn *stop; /* as in a store_list_query */
    void *stop_arg;
    bool stopped; /* out: the budget was used up before the page was full */
};

/*
 * store_conversation_search(s, query, each, arg): as store_rows_each, of conversations. The last
 * call may have STORE_AGAIN: the query was stopped and its rows are incomplete. A conversation is
 * always read to its end, so the budget may be exceeded by one. When the page or the budget ends
 * it, the last row has only the id after which to continue.
 */
void store_conversation_search(struct store *s, struct store_search *query, store_row_fn *each,
                               void *arg);

/* event_pack(out, kind, payload, at): append a row to the data of a CHANGE_EVENTS. */
void event_pack(struct buf *out, struct str kind, struct str payload, int64_t at);

#endif
