/*
 * The keys that sign visitors' tokens and the cookies of reports: a small file with a line
 * `KID MILLISECONDS HEX` for each key, oldest first. The master creates it before it forks.
 * `assay secret rotate` replaces it, by a rename, with one that has a further key; every worker
 * reads it within SECRETS_LOOK_MS. A new key signs only SECRETS_SETTLE_MS after its creation, when
 * all workers know it. Older keys are accepted for as long as what they signed may live.
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
    int64_t made_ms; /* wall clock; in a cluster: by the clock of its log, when it may sign */
    uint8_t key[SECRET_BYTES];
};

/* signing_keys_path(conf, out): the file: jwt.secrets_file, or one in data_dir. */
#define SECRETS_PATH 4200
void signing_keys_path(const struct conf *conf, char out[SECRETS_PATH]);

/*
 * signing_keys_make(path, now_ms, why, why_size): create the file with one key and mode 0600,
 * unless it exists; it is durable on return.
 * signing_keys_rotate(path, now_ms, keep_ms, …): add a key, and remove those whose successor is
 * older than ${keep_ms}.
 * Both: 0, or -1 with a sentence.
 */
int signing_keys_make(const char *path, int64_t now_ms, char *why, size_t why_size)
    __attribute__((warn_unused_result));
int signing_keys_rotate(const char *path, int64_t now_ms, int64_t keep_ms, char *why,
                        size_t why_size) __attribute__((warn_unused_result));

/*
 * signing_keys_read(path, out, …): append the text of the file. signing_keys_next(path, text,
 * now_ms, keep_ms, out, …): append the text that a rotation makes of ${text}.
 * signing_keys_install(path, text, …): make ${text} the file, if it is another text. All: 0, or -1
 * with a sentence. The caller wipes ${out}.
 */
int signing_keys_next(const char *path, struct str text, int64_t now_ms, int64_t keep_ms,
                      struct buf *out, char *why, size_t why_size)
    __attribute__((warn_unused_result));
int signing_keys_read(const char *path, struct buf *out, char *why, size_t why_size)
    __attribute__((warn_unused_result));
int signing_keys_install(const char *path, struct str text, char *why, size_t why_size)
    __attribute__((warn_unused_result));

struct signing_keys;

/* signing_keys_open(path, why, why_size): read the file; NULL with a sentence. */
struct signing_keys *signing_keys_open(const char *path, char *why, size_t why_size);
void signing_keys_free(struct signing_keys *s);

/*
 * signing_keys_reload(s): read the file again if it was replaced; if that fails, keep the keys.
 * signing_keys_generation(s): grows with each reload that read other keys.
 */
void signing_keys_reload(struct signing_keys *s);
uint64_t signing_keys_generation(const struct signing_keys *s);

/*
 * signing_keys_signing(s, now_ms): the newest key that may sign.
 * signing_keys_find(s, kid, now_ms, life_ms): the key ${kid}, if tokens that live ${life_ms} may
 * still be signed with it, or NULL.
 */
const struct secret *signing_keys_signing(const struct signing_keys *s, int64_t now_ms);
const struct secret *signing_keys_find(const struct signing_keys *s, struct str kid, int64_t now_ms,
                                       int64_t life_ms);

#endif
