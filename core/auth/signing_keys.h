/*
 * The secrets that sign visitors' tokens: a small file, each line `KID MILLISECONDS HEX`, oldest first. The master sees to it that it is
 * there before it forks; `assay secret rotate` puts a new one in its place, with one more line, by a rename; every worker notices within
 * SECRETS_LOOK_MS. A new secret signs only SECRETS_SETTLE_MS after it was made, so that by then everybody knows it; the ones before it stay
 * good for as long as tokens they signed may live.
 */
#ifndef ASSAY_AUTH_SIGNING_KEYS_H
#define ASSAY_AUTH_SIGNING_KEYS_H

#include "core/conf/conf.h"
#include "store/bytes.h"

#define SECRETS_MAX 8
#define SECRET_BYTES 32
#define SECRET_KID 12 /* characters */
#define SECRETS_LOOK_MS 250
#define SECRETS_SETTLE_MS 500

struct secret {
    char kid[SECRET_KID + 1];
    int64_t made_ms; /* wall clock */
    uint8_t key[SECRET_BYTES];
};

/* signing_keys_path(conf, out): the file in use: jwt.secrets_file, or one in data_dir. */
#define SECRETS_PATH 4200
void signing_keys_path(const struct conf *conf, char out[SECRETS_PATH]);

/*
 * signing_keys_make(path, now_ms, why, why_size): make the file with one secret, mode 0600, where there is none; durable when it returns.
 * signing_keys_rotate(path, now_ms, keep_ms, …): add one and leave out those whose successor is older than ${keep_ms}. 0, or -1 with a sentence.
 */
int signing_keys_make(const char *path, int64_t now_ms, char *why, size_t why_size)
    __attribute__((warn_unused_result));
int signing_keys_rotate(const char *path, int64_t now_ms, int64_t keep_ms, char *why,
                        size_t why_size) __attribute__((warn_unused_result));

struct signing_keys;

/* signing_keys_open(path, why, why_size): read them; NULL with a sentence. signing_keys_free(NULL) does nothing. */
struct signing_keys *signing_keys_open(const char *path, char *why, size_t why_size);
void signing_keys_free(struct signing_keys *s);

/*
 * signing_keys_look(s): read the file again if it is another one. A file that cannot be read leaves what is known. signing_keys_generation(s): grows
 * whenever something else was read.
 */
void signing_keys_look(struct signing_keys *s);
uint64_t signing_keys_generation(const struct signing_keys *s);

/*
 * signing_keys_signing(s, now_ms): the newest that has settled. signing_keys_find(s, kid, now_ms, life_ms): the one of that name, if a token that
 * lives ${life_ms} may still be signed with it; NULL.
 */
const struct secret *signing_keys_signing(const struct signing_keys *s, int64_t now_ms);
const struct secret *signing_keys_find(const struct signing_keys *s, struct str kid, int64_t now_ms,
                                       int64_t life_ms);

#endif
