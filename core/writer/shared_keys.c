#include "core/writer/shared_keys.h"

#include "core/auth/secret_file.h"
#include "core/auth/signing_keys.h"
#include "core/base/log.h"
#include "core/cluster/sealed.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_MS 1000

typedef bool work_fn(struct shared_keys *k, const struct channel_tls_key *key, const char *path,
                     char *why, size_t why_size);

/* Logs each reason once, until the keys can be used again. */
static void log_outcome(struct shared_keys *k, bool good, const char *why)
{
    if (strcmp(k->logged, good ? "" : why) == 0)
        return;
    snprintf(k->logged, sizeof(k->logged), "%s", good ? "" : why);
    if (good)
        log_info("the cluster: its signing keys are used again");
    else
        log_error("the cluster: its signing keys cannot be used: %s", why);
}

static bool with_key(struct shared_keys *k, work_fn *work)
{
    char path[SECRETS_PATH], why[SHARED_KEYS_WHY] = "";
    struct channel_tls_key key;
    const struct conf *conf = k->process->conf;
    signing_keys_path(conf, path);
    bool good = secret_file_key(conf->cluster_key_file, key.bytes, why, sizeof(why)) &&
                work(k, &key, path, why, sizeof(why));
    explicit_bzero(&key, sizeof(key));
    log_outcome(k, good, why);
    return good;
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
    item->change = (struct store_change){.kind = CHANGE_SIGNING_KEYS, .data = buf_view(&sealed)};
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

/* The row exists once an offer was committed. A batch that fails drops the offer. */
static bool row_is_there(struct shared_keys *k)
{
    struct str sealed;
    enum store_status status = store_signing_keys(k->store, &sealed);
    store_read_end(k->store);
    return status == STORE_OK;
}

void shared_keys_offer(struct shared_keys *k)
{
    k->offers = true;
    k->offer_at_ms = 0;
}

static void offer_again(struct shared_keys *k, uint64_t now)
{
    if (!k->offers || now < k->offer_at_ms)
        return;
    k->offers = !row_is_there(k);
    k->offer_at_ms = now + RETRY_MS;
    if (k->offers)
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
    else if (!good)
        refuse(why, why_size, store_status_text(status));
    store_read_end(k->store);
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
    buf_free(&text);
    return good;
}

static void follow(struct shared_keys *k, uint64_t now)
{
    if (!k->changed || now < k->install_at_ms)
        return;
    k->changed = !with_key(k, install);
    k->install_at_ms = k->changed ? now + RETRY_MS : 0;
}

void shared_keys_step(struct shared_keys *k)
{
    const uint64_t now = clock_mono_ms();
    offer_again(k, now);
    follow(k, now);
}
