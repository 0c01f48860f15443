/*
 * What a worker remembers between requests so that the second one like the first costs little: who
 * a credential is, and the body of a report that was served. Nothing is believed for longer than
 * the store stays unchanged: each memory carries the store's version it was learnt at, and is
 * looked up anew once that has moved on. Worker processes only; bounded.
 */
#ifndef ASSAY_HTTP_MEMO_H
#define ASSAY_HTTP_MEMO_H

#include "core/http/request.h"
#include "core/credential.h"

struct memo;

struct memo *memo_new(void);
void memo_free(struct memo *m);

/* A credential as it came, its digest, and the key it is. */
struct memo_key {
    size_t size; /* of ${text}; 0: empty */
    char text[CREDENTIAL_SIZE];
    uint8_t hash[CREDENTIAL_HASH];
    uint64_t seen;        /* store_version when ${key} was read; 0: not yet */
    struct store_key key; /* without its name */
    enum credential_kind kind;
};

/*
 * memo_key(m, token, kind, out): the place of ${token}, with its digest, good until the next call.
 * 1: there; 0: ${token} is nothing anybody could have been given as a credential of ${kind} (told
 * by prefix and checksum); -1: OpenSSL failed. Compares in a time that tells nothing but the
 * length.
 * memo_key_learn(m, key, seen): what the store had for a digest at version ${seen}, if that digest
 * is still remembered.
 */
int memo_key(struct memo *m, struct str token, enum credential_kind kind,
             const struct memo_key **out);
void memo_key_learn(struct memo *m, const struct store_key *key, uint64_t seen);

/*
 * The whole body of GET /api/v1/reports/{id}, in memory a request can share (h2o_mem_link_shared).
 */
struct memo_report {
    uint64_t workspace, id, version; /* of the record */
    uint64_t seen;                   /* store_version */
    h2o_iovec_t body;                /* base NULL: empty */
};

/*
 * memo_report(m, workspace, id): what is remembered of it, or NULL. memo_report_put: remember a
 * copy of ${body}; what was there before is let go once nobody sends it any more.
 */
struct memo_report *memo_report(struct memo *m, uint64_t workspace, uint64_t id);
struct memo_report *memo_report_put(struct memo *m, uint64_t workspace, uint64_t id,
                                    uint64_t version, uint64_t seen, struct str body);

#endif
