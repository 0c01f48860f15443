/*
 * What the files of the widget's records share. Private to store/.
 */
#ifndef ASSAY_STORE_WIDGET_PARTS_H
#define ASSAY_STORE_WIDGET_PARTS_H

#include "internal.h"

/*
 * Lists: each record has an entry in every scope it belongs to: its workspace, its agent, its visitor. Walked by id, they are walked by
 * time. A class narrows a list (conversations by status + 1); in class 0 are all. Also how a scope's records are found when it is erased.
 */
enum listed_kind { LISTED_AGENT = 1, LISTED_KINDS };

/* scope_of_workspace(id): a workspace as a scope; it is no ULID's value, since those have a time. */
struct ulid scope_of_workspace(uint64_t workspace);

void listed_prefix(struct key *k, enum listed_kind kind, const struct ulid *scope, unsigned class);
void listed_put(struct store_txn *t, enum listed_kind kind, const struct ulid *scope, unsigned class, const struct ulid *id);
void listed_drop(struct store_txn *t, enum listed_kind kind, const struct ulid *scope, unsigned class, const struct ulid *id);
/* listed_id(w, out): the id that the walk's present entry names; false when the entry is malformed. */
bool listed_id(const struct walk *w, struct ulid *out);
/* listed_first(t, kind, scope, out): the first of class 0; false when there is none. */
bool listed_first(struct store_txn *t, enum listed_kind kind, const struct ulid *scope, struct ulid *out);

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
void event_ulid(struct store_txn *t, enum store_event_kind kind, uint64_t workspace, const struct ulid *u);

/* append(to, s): copy and step on. */
static inline char *append_str(char *to, struct str s)
{
    if (s.n != 0)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

/* ---- agent.c ---- */

bool schema_read_agent(MDB_val value, struct store_agent *out);
/* agent_read(s, txn, id, out): a living one, of a living workspace; borrowed. */
enum store_status agent_read(struct store *s, MDB_txn *txn, const struct ulid *id, struct store_agent *out);

/* ---- erase.c: what belongs to a visitor, an agent, a workspace goes ---- */

/* erase_mark(t, scope): everything listed under ${scope} is to be purged, in slices. */
void erase_mark(struct store_txn *t, const struct ulid *scope);
/* erase_workspace(t, workspace, left): all of a dying workspace's agents and theirs, at most *left records. */
void erase_workspace(struct store_txn *t, uint64_t workspace, uint64_t *left);
/* erase_slice(t, left): of what was marked, at most *left records. */
void erase_slice(struct store_txn *t, uint64_t *left);

#endif
