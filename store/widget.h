/*
 * The widget's records: agents, visitors, conversations, messages, leads, events, ratings. A part of store.h, which includes it; what is
 * said there about snapshots, borrowed values, callbacks and changes holds here too. api.md §6.
 *
 * Ids are ULIDs that grow over the whole store, so that whoever has seen one id has seen all below it: a cursor skips nothing.
 */
#ifndef ASSAY_STORE_WIDGET_H
#define ASSAY_STORE_WIDGET_H

#include "store/ulid.h"

#define STORE_ORIGINS_MAX 8192   /* bytes of an agent's allowed origins, one a line */
#define STORE_SETTINGS_MAX 32768 /* bytes of its settings */
#define STORE_TEXT_MAX                                                                             \
    32768 /* bytes of a message's text, of a payload, of what else a visitor sends */

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
    struct str origins; /* allowed ones, one a line, each line ended; "*" is any */
    struct str
        settings; /* JSON members without braces: "theme":…,"starter_prompts":…,"lead_form_fields":…,"language_default":… */
};

struct store_conversation {
    struct ulid id, agent, visitor;
    struct ulid last;    /* its newest message; none: there is none */
    struct ulid cleared; /* the visitor has cleared away the messages up to this one */
    struct ulid read;    /* the visitor has read up to this one */
    struct ulid rating_id;
    uint64_t workspace, version, messages;
    uint64_t claimed_by; /* key of the operator who has it; 0: nobody */
    uint64_t closed_by; /* key of the operator who closed it; 0: the visitor, or it is not closed */
    bool human_requested, lead_captured;
    unsigned rating; /* 1–5; 0: none */
    int64_t created_at, updated_at, closed_at;
    struct str page_url;
    struct str claimed_name; /* what the operator who has it is called; empty: not told */
};

/* conversation_status(c): what its members make of it. */
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
    bool low_confidence;        /* an answer's */
    struct str text, citations; /* citations: JSON array, empty: none */
    struct str client_id, page_url,
        page_context; /* a visitor's; empty: none; page_context is JSON */
};

/*
 * What one visitor said of itself under a lead's address. Nobody has proved that an address is theirs, so nothing that one visitor sends
 * changes, shows or takes away what another did.
 */
struct store_sender {
    struct ulid visitor, conversation; /* conversation: the one it was sent in last */
    int64_t created_at, updated_at;
    struct str email, name, phone,
        fields; /* email: as this one spells it; fields: JSON object, empty: none */
};

struct store_lead {
    struct ulid id, agent;
    const struct store_sender *senders; /* who sent the address, first come first; at least one */
    size_t senders_n;
};

struct store_event_row {
    struct ulid id, agent, visitor, conversation;
    int64_t created_at, at;   /* at: when it happened, by the visitor's clock; 0: not told */
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

/* store_agent_get(s, id, done, arg): whatever its workspace, which must live. store_agent_each: as store_key_each. */
void store_agent_get(struct store *s, const struct ulid *id, store_agent_fn *done, void *arg);
void store_agent_each(struct store *s, uint64_t workspace, store_agent_fn *each, void *arg);

/*
 * store_session_get(s, agent, visitor, conversation, done, arg): what a visitor's token names, if all three are there and belong together.
 * Whether the agent is published is for the caller to judge.
 */
typedef void store_session_fn(void *arg, enum store_status status, const struct store_agent *agent,
                              const struct store_conversation *conversation);
void store_session_get(struct store *s, const struct ulid *agent, const struct ulid *visitor,
                       const struct ulid *conversation, store_session_fn *done, void *arg);

/*
 * store_visitor_resume(s, agent, secret, begun_after, done, arg): the conversation that the visitor with this secret (its digest, 32 bytes)
 * goes on with: begun after that time and not closed by the visitor.
 */
void store_visitor_resume(struct store *s, const struct ulid *agent, const uint8_t secret[32],
                          int64_t begun_after, store_conversation_fn *done, void *arg);

/* store_conversation_get(s, workspace, id, done, arg): an operator's look. */
void store_conversation_get(struct store *s, uint64_t workspace, const struct ulid *id,
                            store_conversation_fn *done, void *arg);

typedef void store_message_fn(void *arg, enum store_status status,
                              const struct store_message *message);

/*
 * store_message_each(s, query, each, arg): messages above ${after} and below ${before} (none: no bound), at most ${limit}, and no more
 * behind that whose texts reach ${bytes} (0: no bound): the newest of them, newest first, or the oldest of them, oldest first. Then once
 * with STORE_NOT_FOUND (no more there are) or STORE_OK (a limit was reached) and NULL. store_message_get: one.
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

/* What an operator wrote for other operators: no visitor sees it. Its texts are borrowed. */
struct store_note {
    struct ulid id;
    uint64_t key; /* the operator's */
    int64_t created_at;
    struct str name, text; /* name: empty: not told */
};
typedef void store_note_fn(void *arg, enum store_status status, const struct store_note *note);

/* store_note_each(s, query, each, arg): as store_message_each, but for ${bytes}. store_note_get: one. */
void store_note_each(struct store *s, const struct store_messages_query *query, store_note_fn *each,
                     void *arg);
void store_note_get(struct store *s, const struct ulid *conversation, const struct ulid *id,
                    store_note_fn *done, void *arg);

/* What an operator lists. */
enum store_rows { ROWS_CONVERSATIONS, ROWS_LEADS, ROWS_EVENTS, ROWS_RATINGS };
struct store_rows_query {
    uint64_t workspace;
    struct ulid agent;    /* none: all of the workspace's */
    unsigned class;       /* of conversations: status + 1; 0: all */
    struct ulid after;    /* the last id of the page before; none: the first page */
    int64_t since, until; /* made from … up to before …; 0: no bound */
    unsigned limit;
};

/* What one is: all NULL where many on the way are of somebody who is gone and wait to be purged. Borrowed for the call. */
struct store_row {
    struct ulid id;
    const struct store_conversation *conversation;
    const struct store_lead *lead;
    const struct store_event_row *event;
    const struct store_rating *rating;
};

/*
 * store_rows_each(s, rows, query, each, arg): newest first; then once with STORE_OK or STORE_NOT_FOUND and NULL, as store_message_each.
 * ${each} returns false when it does not take the row: the list ends before it, with STORE_OK.
 */
typedef bool store_row_fn(void *arg, enum store_status status, const struct store_row *row);
void store_rows_each(struct store *s, enum store_rows rows, const struct store_rows_query *query,
                     store_row_fn *each, void *arg);

/* ---- search in conversations ---- */

#define STORE_PATTERN_CHARS 200 /* of what is searched for */
#define STORE_SEARCH_ROWS 100   /* that a page may have */

/*
 * BY_TEXT: what was said in the conversation, the notes and their authors' names included. BY_VISITOR:
 * the addresses and names that its visitor left, or the visitor's id. Upper and lower case and accents
 * make no difference.
 */
enum store_search_by { SEARCH_BY_TEXT, SEARCH_BY_VISITOR };

struct store_search {
    struct store_rows_query rows; /* which conversations */
    enum store_search_by by;
    struct str pattern; /* UTF-8 */
    uint64_t budget; /* how many messages, notes, leads and conversations may be looked at, about */
    store_pause_fn *pause; /* as in a store_list_query */
    void *pause_arg;
    bool stopped; /* out: the budget was spent before the page was full */
};

/*
 * store_conversation_search(s, query, each, arg): as store_rows_each, of conversations. The last
 * call may say STORE_AGAIN: the query was stopped, and its rows are not all. A conversation is
 * looked at whole, so the budget may be exceeded by one. Where the page or the budget ends it,
 * ${each} is given a row that has the id behind which to go on, and no more.
 */
void store_conversation_search(struct store *s, struct store_search *query, store_row_fn *each,
                               void *arg);

/* event_pack(out, kind, payload, at): append a row to the data of a CHANGE_EVENTS. */
void event_pack(struct buf *out, struct str kind, struct str payload, int64_t at);

#endif
