#include "core/writer/shared_keys.h"

#include "core/auth/secret_file.h"
#include "core/auth/signing_keys.h"
#include "core/base/log.h"
#include "core/cluster/sealed.h"

#include <stdlib.h>

typedef bool work_fn(struct shared_keys *k, const struct channel_tls_key *key, const char *path,
                     char *why, size_t why_size);

static void with_key(struct shared_keys *k, work_fn *work)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256] = "";
    struct channel_tls_key key;
    const struct conf *conf = k->process->conf;
    signing_keys_path(conf, path);
    if (!secret_file_key(conf->cluster_key_file, key.bytes, why, sizeof(why)) ||
        !work(k, &key, path, why, sizeof(why)))
        log_error("the cluster: its signing keys cannot be used: %s", why);
    explicit_bzero(&key, sizeof(key));
}

static bool refuse(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "%s", reason);
    return false;
}

/* ---- from the file to the store ---- */

static bool add_change(struct shared_keys *k, const struct channel_tls_key *key, struct str text)
{
    struct buf sealed = {0};
    if (!seal(key, text, &sealed)) {
        buf_free(&sealed);
        return false;
    }
    struct item *item = batch_add(k->batch, NULL, 0);
    item->payload = sealed.p;
    item->change = (struct store_change){
        .kind = CHANGE_SIGNING_KEYS, .fields = SIGNING_KEYS_FIRST, .data = buf_view(&sealed)};
    return true;
}

static bool offer(struct shared_keys *k, const struct channel_tls_key *key, const char *path,
                  char *why, size_t why_size)
{
    struct buf text = {0};
    bool read = signing_keys_read(path, &text, why, why_size) == 0,
         good = read && (add_change(k, key, buf_view(&text)) ||
                         refuse(why, why_size, "they cannot be sealed"));
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
    buf_free(&text);
    return good;
}

void shared_keys_offer(struct shared_keys *k)
{
    struct str sealed;
    bool none = store_signing_keys(k->store, &sealed) == STORE_NOT_FOUND;
    store_read_end(k->store);
    if (none)
        with_key(k, offer);
}

/* ---- from the store to the file ---- */

static bool install(struct shared_keys *k, const struct channel_tls_key *key, const char *path,
                    char *why, size_t why_size)
{
    struct buf text = {0};
    struct str sealed;
    enum store_status status = store_signing_keys(k->store, &sealed);
    bool good = status == STORE_NOT_FOUND;
    if (status == STORE_OK)
        good = unseal(key, sealed, &text)
                   ? signing_keys_install(path, buf_view(&text), why, why_size) == 0
                   : refuse(why, why_size,
                            "they were sealed with another key; use the same cluster.key_file on "
                            "every node");
    store_read_end(k->store);
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
    buf_free(&text);
    return good;
}

void shared_keys_follow(struct shared_keys *k)
{
    if (!k->changed)
        return;
    k->changed = false;
    with_key(k, install);
}
