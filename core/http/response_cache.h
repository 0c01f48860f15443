/*
 * What a worker remembers between requests so that the second one like the first costs little: who
 * a credential is, and the body of a report that was served. Nothing is believed for longer than
 * the store stays unchanged: each memory carries the store's version it was learnt at, and is
 * looked up anew once that has moved on. Worker processes only; bounded.
 */
#ifndef ASSAY_HTTP_RESPONSE_CACHE_H
#define ASSAY_HTTP_RESPONSE_CACHE_H

#include "core/http/request.h"
#include "core/auth/credential.h"

struct response_cache;

struct response_cache *response_cache_new(void);
void response_cache_free(struct response_cache *m);

/* A credential as it came, its digest, and the key it is. */
struct cached_key {
    size_t size; /* of ${text}; 0: empty */
    char text[CREDENTIAL_SIZE];
    uint8_t hash[CREDENTIAL_HASH];
    uint64_t seen;        /* store_version when ${key} was read; 0: not yet */
    struct store_key key; /* without its name */
    enum credential_kind kind;
};

/*
 * cached_key(m, token, kind, out): the place of ${token}, with its digest, good until the next call.
 * 1: there; 0: ${token} is nothing anybody could have been given as a credential of ${kind} (told
 * by prefix and checksum); -1: OpenSSL failed. Compares in a time that tells nothing but the
 * length.
 * cached_key_learn(m, key, seen): what the store had for a digest at version ${seen}, if that digest
 * is still remembered.
 */
int cached_key(struct response_cache *m, struct str token, enum credential_kind kind,
               const struct cached_key **out);
void cached_key_learn(struct response_cache *m, const struct store_key *key, uint64_t seen);

/*
 * The whole body of GET /api/v1/reports/{id}, in memory a request can share (h2o_mem_link_shared).
 */
struct cached_report {
    uint64_t workspace, id, version; /* of the record */
    uint64_t seen;                   /* store_version */
    h2o_iovec_t body;                /* base NULL: empty */
};

/*
 * cached_report(m, workspace, id): what is remembered of it, or NULL. cached_report_put: remember a
 * copy of ${body}; what was there before is let go once nobody sends it any more.
 */
struct cached_report *cached_report(struct response_cache *m, uint64_t workspace, uint64_t id);
struct cached_report *cached_report_put(struct response_cache *m, uint64_t workspace, uint64_t id,
                                        uint64_t version, uint64_t seen, struct str body);

#endif
