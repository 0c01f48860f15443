/* Keys and events with ULIDs, and texts that follow a record. */
#ifndef ASSAY_STORE_RECORDS_ULID_KEYS_H
#define ASSAY_STORE_RECORDS_ULID_KEYS_H

#include "store/engine/txn.h"

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

/* append_str(to, s): copy ${s}; returns the end. */
static inline char *append_str(char *to, struct str s)
{
    if (s.n != 0)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

/* taken(at, n): the next ${n} bytes of a record, and advance; p is NULL when ${n} is 0. */
static inline struct str taken(const char **at, size_t n)
{
    struct str s = {n == 0 ? NULL : *at, n};
    *at += n;
    return s;
}

#endif
