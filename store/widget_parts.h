/*
 * What the files of the widget's records share. Private to store/.
 */
#ifndef ASSAY_STORE_WIDGET_PARTS_H
#define ASSAY_STORE_WIDGET_PARTS_H

#include "store/internal.h"

/*
 * Lists: each record has an entry in every scope it belongs to: its workspace, its agent, its visitor. Walked by id, they are walked by
 * time. A class narrows a list (conversations by status + 1); in class 0 are all. Also how a scope's records are found when it is erased.
 */
enum listed_kind {
    LISTED_AGENT = 1,
    LISTED_VISITOR, /* in the agent's scope alone */
    LISTED_CONVERSATION,
    LISTED_LEAD,
    LISTED_EVENT,
    LISTED_RATING,
    LISTED_KINDS
};

/* scope_of_workspace(id): a workspace as a scope; it is no ULID's value, since those have a time. */
struct ulid scope_of_workspace(uint64_t workspace);

void listed_prefix(struct key *k, enum listed_kind kind, const struct ulid *scope, unsigned class);
void listed_put(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                unsigned class, const struct ulid *id);
void listed_drop(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                 unsigned class, const struct ulid *id);
/* listed_id(w, out): the id that the walk's present entry names; false when the entry is malformed. */
bool listed_id(const struct walk *w, struct ulid *out);
/* listed_first(t, kind, scope, out): the first of class 0; false when there is none. */
bool listed_first(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                  struct ulid *out);

static inline void key_ulid(struct key *k, const struct ulid *u)
{
    key_bytes(k, u->b, ULID_BYTES);
}

static inline void key_of(struct key *k, enum space space, const struct ulid *u)
{
    key_space(k, space);
    key_ulid(k, u);
}

/* event_ulid(t, kind, workspace, u): tell the workers about the record ${u}. */
void event_ulid(struct store_txn *t, enum store_event_kind kind, uint64_t workspace,
                const struct ulid *u);

/* append(to, s): copy and step on. */
static inline char *append_str(char *to, struct str s)
{
    if (s.n != 0)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

/* taken(at, n): the next ${n} bytes of a record, and step on; p NULL when ${n} is 0. */
static inline struct str taken(const char **at, size_t n)
{
    struct str s = {n == 0 ? NULL : *at, n};
    *at += n;
    return s;
}

/* ---- agent.c ---- */

bool schema_read_agent(MDB_val value, struct store_agent *out);
/* agent_read(s, txn, id, out): a living one, of a living workspace; borrowed. */
enum store_status agent_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                             struct store_agent *out);
/* agent_language(a): the tag of its default language, borrowed from ${a}; empty: none. */
struct str agent_language(const struct store_agent *a);

/* ---- visitor.c ---- */

bool schema_read_visitor(MDB_val value, const struct visitor_record **out);
/* visitor_there(s, txn, id): the visitor's record is there. */
bool visitor_there(struct store *s, MDB_txn *txn, const struct ulid *id);
/* visitor_mark_lead(t, id): it has left an address. visitor_remove(t, id): the record and its indexes, if it is there. */
void visitor_mark_lead(struct store_txn *t, const struct ulid *id);
void visitor_remove(struct store_txn *t, const struct ulid *id);

/* ---- conversation.c ---- */

bool schema_read_conversation(MDB_val value, struct store_conversation *out);
/* conversation_read(s, txn, id, out): whoever's, if its workspace, agent and visitor are there; borrowed. */
enum store_status conversation_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                                    struct store_conversation *out);
/*
 * conversation_open(t, c, out): the one a change is about, a copy in t->copy: the visitor's who sends it, or of the operator's workspace.
 * conversation_write(t, old_status, c): put, next version, its lists, the event. ${old_status} CONVERSATION_STATUSES: it is new.
 */
enum store_status conversation_open(struct store_txn *t, const struct store_change *c,
                                    struct store_conversation *out);
void conversation_write(struct store_txn *t, enum conversation_status old_status,
                        struct store_conversation *c);
/* conversation_remove(t, id, left): its messages, then itself, at most *left records. */
void conversation_remove(struct store_txn *t, const struct ulid *id, uint64_t *left);
/* listed_everywhere(t, put, kind, workspace, agent, visitor, id): its entries of class 0 in all three scopes, put or taken away. */
void listed_everywhere(struct store_txn *t, bool put, enum listed_kind kind, uint64_t workspace,
                       const struct ulid *agent, const struct ulid *visitor, const struct ulid *id);

/* ---- message.c ---- */

/* once_look(t, c, kind, key, answer): STORE_NOT_FOUND: not seen; else the first answer again, or STORE_KEY_REUSED. once_put: note it. */
enum once_kind { ONCE_CLIENT_ID = 1, ONCE_IDEMPOTENCY = 2 };
enum store_status once_look(struct store_txn *t, const struct store_change *c, enum once_kind kind,
                            struct store_answer *answer);
void once_put(struct store_txn *t, const struct store_change *c, enum once_kind kind,
              const struct store_answer *answer);

/* ---- note.c ---- */

/* note_look(k, v, out): is that key and value a note? */
bool note_look(MDB_val k, MDB_val v, struct store_note *out);

/* ---- lead.c, kept.c ---- */

/* What the store itself asks of a lead's record. ${visitor}: its first sender. ${hash}: of the lower-cased address. */
#define LEAD_HASH_BYTES 32
struct lead_at {
    struct ulid id, agent, visitor;
    uint64_t workspace;
    uint8_t hash[LEAD_HASH_BYTES];
};
bool lead_look(MDB_val value, struct lead_at *out);
/* lead_read(value, senders, out): all of it; its senders are in ${senders}. False when it is malformed. */
#define LEAD_SENDERS_MAX 8
bool lead_read(MDB_val value, struct store_sender senders[LEAD_SENDERS_MAX],
               struct store_lead *out);
/* lead_remove(t, id, scope): what the visitor ${scope} said, and the lead with its last sender; any other scope: the lead as a whole. */
void lead_remove(struct store_txn *t, const struct ulid *id, const struct ulid *scope);
void kept_remove(struct store_txn *t, enum listed_kind kind, const struct ulid *id);
/* lead_said(value, visitor, email, name): what that sender of a lead said; false when it is malformed or not a sender. Borrowed. */
bool lead_said(MDB_val value, const struct ulid *visitor, struct str *email, struct str *name);
/*
 * rows_walk(s, txn, w, rows, q, visitor): to the first entry of the list that ${q} asks for; of that visitor's alone, whatever their
 * agent and class, unless NULL. STORE_NOT_FOUND: there is none.
 */
enum store_status rows_walk(struct store *s, MDB_txn *txn, struct walk *w, enum store_rows rows,
                            const struct store_rows_query *q, const struct ulid *visitor);
/* rows_owners(rows, value, agent, visitor): whose a listed record is; false when it is malformed. */
bool rows_owners(enum store_rows rows, MDB_val value, struct ulid *agent, struct ulid *visitor);

/* ---- erase.c: what belongs to a visitor, an agent, a workspace goes ---- */

/* erase_mark(t, scope): everything listed under ${scope} is to be purged, in slices. */
void erase_mark(struct store_txn *t, const struct ulid *scope);
/* erase_scope(t, scope, left): everything listed under a scope, at most *left records; true when nothing is left of it. */
bool erase_scope(struct store_txn *t, const struct ulid *scope, uint64_t *left);
/* erase_workspace(t, workspace, left): all of a dying workspace's agents and theirs, at most *left records. */
void erase_workspace(struct store_txn *t, uint64_t workspace, uint64_t *left);
/* erase_slice(t, left): of what was marked, at most *left records. */
void erase_slice(struct store_txn *t, uint64_t *left);

#endif
