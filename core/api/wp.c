/* Handshake and status of bulk sync, and functions that its handlers share. */
#include "core/api/wp_internal.h"
#include "core/api/render_widget_internal.h"

#include "core/audit/url.h"
#include "core/text/json_out.h"

#include <inttypes.h>

/* lower case, punycode, without www. and port; false if ${text} is not an http or https URL */
static bool site_host(struct request *r, struct str text, struct str *out)
{
    struct url url;
    const char *why;
    bool good = url_judge(text, NULL, r->conf, &url, &why) ||
                url.forbidden; /* intranet addresses are allowed: nothing is fetched */
    struct str host = good && url.host != NULL ? str_of(url.host) : (struct str){"", 0};
    if (host.n > 4 && memcmp(host.p, "www.", 4) == 0)
        host = (struct str){host.p + 4, host.n - 4};
    good = host.n > 0 && host.n <= STORE_SITE_MAX;
    if (good)
        *out = api_copy(r, host);
    url_free(&url);
    return good;
}

void wp_check_sender(struct request *r, const struct value *site, const struct value *plugin,
                     struct str *host, struct buf *errors)
{
    if (!site->sent || !site_host(r, site->text, host))
        fields_error(errors, "site_url",
                     site->sent ? "must be an http or https address" : "is required");
    if (!plugin->sent)
        fields_error(errors, "plugin_version", "is required");
}

static void reply_and_free(struct request *r, enum store_status status, struct buf *body)
{
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        reply_store_error(r, status);
    else
        api_reply_data_buf(r, 200, body);
    buf_free(body);
}

/* ---- handshake ---- */

struct handshake {
    struct buf body;
    enum store_status status;
    bool any;
};

static void add_named(struct handshake *h, const char *name, uint64_t id, struct str text)
{
    buf_printf(&h->body, "%s{\"id\":%" PRIu64 ",\"name\":", name, id);
    json_string(&h->body, text);
}

static void add_workspace(void *arg, enum store_status status,
                          const struct store_workspace *workspace)
{
    struct handshake *h = arg;
    h->status = status;
    if (status == STORE_OK)
        add_named(h, "{\"workspace\":", workspace->id, workspace->name);
}

static void add_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct handshake *h = arg;
    if (agent == NULL) {
        h->status = status;
        return;
    }
    buf_adds(&h->body, h->any ? "," : "");
    render_agent(agent, &h->body);
    h->any = true;
}

static void add_token(void *arg, enum store_status status, const struct store_key *key)
{
    struct handshake *h = arg;
    h->status = status;
    if (status == STORE_OK)
        add_named(h, "],\"token\":", key->id, key->name);
}

void wp_handshake(struct request *r)
{
    struct buf errors = {0};
    struct str site;
    const struct value *v = r->values;
    wp_check_sender(r, &v[WP_HANDSHAKE_SITE], &v[WP_HANDSHAKE_PLUGIN], &site, &errors);
    if (errors.n > 0) {
        reply_fields_error(r, &errors);
        return;
    }
    struct handshake h = {0};
    store_workspace_get(r->store, r->workspace, add_workspace, &h);
    if (h.status == STORE_OK) {
        buf_adds(&h.body, "},\"agents\":[");
        store_agent_each(r->store, r->workspace, add_agent, &h);
    }
    if (h.status == STORE_NOT_FOUND) /* end of the agents */
        store_key_get(r->store, r->key, add_token, &h);
    if (h.status == STORE_NOT_FOUND)
        h.status = STORE_BUSY; /* the token was just revoked and purged */
    buf_printf(
        &h.body,
        ",\"abilities\":[\"wp:sync\"]},\"limits\":{\"batch_items\":%d,\"batch_bytes\":%" PRIu64
        "}}",
        STORE_BATCH_MAX, r->conf->sync_max_bytes);
    reply_and_free(r, h.status, &h.body);
}

/* ---- status ---- */

const char *const wp_kind_names[SYNCED_KINDS] = {
    [SYNCED_POST] = "posts", [SYNCED_PRODUCT] = "products", [SYNCED_COUPON] = "coupons"};

struct sync_status {
    struct request *r;
    struct ulid only; /* no id: all agents of the workspace */
    bool found, unindexed;
    enum store_status status;
    struct buf collections, last_id[SYNCED_KINDS]; /* last_id: sync_id of the last complete sync */
    uint64_t counts[SYNCED_KINDS];
    int64_t completed_at[SYNCED_KINDS];
};

static void add_last(struct buf *out, struct str sync_id, int64_t completed_at)
{
    if (completed_at == 0) {
        buf_adds(out, "null");
        return;
    }
    buf_adds(out, "{\"sync_id\":");
    json_text(out, sync_id.n > 0 ? sync_id : (struct str){NULL, 0});
    buf_adds(out, ",\"completed_at\":");
    json_time(out, completed_at);
    buf_adds(out, "}");
}

static void add_collection(void *arg, enum store_status status, const struct store_collection *c)
{
    struct sync_status *sync = arg;
    char id[ULID_TEXT];
    if (c == NULL) {
        if (status != STORE_NOT_FOUND)
            sync->status = status;
        return;
    }
    sync->counts[c->kind] += c->count;
    if (c->completed_at > sync->completed_at[c->kind]) {
        sync->completed_at[c->kind] = c->completed_at;
        buf_reset(&sync->last_id[c->kind]);
        buf_str(&sync->last_id[c->kind], c->sync_id);
    }
    ulid_text(&c->agent, id);
    buf_printf(&sync->collections, "%s{\"agent_id\":\"%.*s\",\"kind\":\"%s\",\"site\":",
               sync->collections.n > 0 ? "," : "", ULID_TEXT, id, wp_kind_names[c->kind]);
    json_text(&sync->collections, c->site.n > 0 ? c->site : (struct str){NULL, 0});
    buf_printf(&sync->collections, ",\"count\":%" PRIu64 ",\"last_batch_at\":", c->count);
    json_time(&sync->collections, c->synced_at);
    buf_adds(&sync->collections, ",\"last_complete\":");
    add_last(&sync->collections, c->sync_id, c->completed_at);
    buf_adds(&sync->collections, "}");
}

static void add_index_status(struct sync_status *sync, const struct ulid *agent)
{
    struct store_answers a;
    enum store_status status = store_answers_get(sync->r->store, agent, &a);
    if (status == STORE_OK)
        sync->unindexed = sync->unindexed || a.state != ANSWERS_BUILT || a.indexed != a.last;
    else if (status != STORE_NOT_FOUND)
        sync->status = status;
}

static void add_agent_status(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct sync_status *sync = arg;
    if (agent == NULL) {
        if (status != STORE_NOT_FOUND)
            sync->status = status;
        return;
    }
    if (agent->workspace != sync->r->workspace ||
        (!ulid_none(&sync->only) && !ulid_eq(&sync->only, &agent->id)))
        return;
    sync->found = true;
    struct ulid id = agent->id;
    store_collection_each(sync->r->store, &id, add_collection, sync);
    add_index_status(sync, &id);
}

static void status_render(struct buf *out, const struct sync_status *sync)
{
    for (unsigned kind = 0; kind < SYNCED_KINDS; kind++) {
        buf_printf(out, "%s\"%s\":{\"count\":%" PRIu64 ",\"last_complete\":", kind == 0 ? "{" : ",",
                   wp_kind_names[kind], sync->counts[kind]);
        add_last(out, buf_view(&sync->last_id[kind]), sync->completed_at[kind]);
        buf_adds(out, "}");
    }
    buf_printf(out, ",\"indexed\":%s,\"collections\":[", sync->unindexed ? "false" : "true");
    buf_str(out, buf_view(&sync->collections));
    buf_adds(out, "]}");
    if (!buf_ok(&sync->collections))
        out->failed = true;
}

uint64_t wp_version(struct str s)
{
    return api_hash(API_HASH_START, s.p, s.n) >> 1; /* etag.h reserves one value */
}

void wp_status(struct request *r)
{
    struct sync_status sync = {.r = r};
    const struct value *agent = &r->values[WP_STATUS_AGENT];
    struct buf body = {0};
    bool named = agent->sent;
    if (named && ulid_parse(agent->text, &sync.only))
        store_agent_get(r->store, &sync.only, add_agent_status, &sync);
    else if (!named)
        store_agent_each(r->store, r->workspace, add_agent_status, &sync);
    if (named && !sync.found && sync.status == STORE_OK) {
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
        return;
    }
    status_render(&body, &sync);
    if (sync.status != STORE_OK || !buf_ok(&body) || !reply_etag(r, wp_version(buf_view(&body))))
        reply_and_free(r, sync.status, &body);
    else
        buf_free(&body);
    buf_free(&sync.collections);
    for (unsigned kind = 0; kind < SYNCED_KINDS; kind++)
        buf_free(&sync.last_id[kind]);
}
