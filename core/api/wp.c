/* Handshake and status of bulk sync, and functions that its handlers share. */
#include "core/api/wp_internal.h"
#include "core/api/render_widget_internal.h"

#include "core/async/query_threads.h"
#include "core/audit/url.h"
#include "core/text/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

/* ---- what a query thread reads: the cost grows with the agents of the workspace ---- */

struct wp_query {
    struct query query;
    void (*read)(struct wp_query *q);
    struct store *store; /* the thread's, while the query runs */
    uint64_t workspace, key, batch_bytes;
    struct ulid agent; /* no id: all agents of the workspace */
    bool versioned;
    /* result */
    enum store_status status;
    bool no_agent;
    struct buf body;
    char why[512]; /* store_why of the thread's store, unless STORE_OK */
};

static bool run(struct query *query, struct store *s)
{
    struct wp_query *q = (struct wp_query *)query;
    q->store = s;
    q->read(q);
    if (q->status != STORE_OK)
        snprintf(q->why, sizeof(q->why), "%s", store_why(s));
    return true;
}

static void reply(struct request *r, struct wp_query *q)
{
    const struct str body = buf_view(&q->body);
    if (!q->query.done)
        query_late(r);
    else if (q->status != STORE_OK)
        reply_store_failure(r, q->status, q->why);
    else if (q->no_agent)
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
    else if (!q->versioned || !buf_ok(&q->body) || !reply_etag(r, wp_version(body)))
        api_reply_data_buf(r, 200, &q->body);
}

static void over(struct query *query, struct waiter *w)
{
    struct request *r = request_of(w);
    struct wp_query *q = (struct wp_query *)query;
    if (r != NULL)
        reply(r, q);
    buf_free(&q->body);
    free(q);
}

static void start(struct request *r, struct wp_query query)
{
    struct wp_query *q = malloc(sizeof(*q));
    if (q == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *q = query;
    q->query = (struct query){.workspace = r->workspace, .run = run, .over = over};
    q->workspace = r->workspace;
    q->key = r->key;
    q->batch_bytes = r->conf->sync_max_bytes;
    request_query(r, &q->query);
}

/* ---- handshake ---- */

static void add_named(struct wp_query *q, const char *name, uint64_t id, struct str text)
{
    buf_printf(&q->body, "%s{\"id\":%" PRIu64 ",\"name\":", name, id);
    json_string(&q->body, text);
}

static void add_workspace(void *arg, enum store_status status,
                          const struct store_workspace *workspace)
{
    struct wp_query *q = arg;
    q->status = status;
    if (status == STORE_OK)
        add_named(q, "{\"workspace\":", workspace->id, workspace->name);
}

struct agents {
    struct wp_query *q;
    bool any;
};

static void add_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct agents *agents = arg;
    if (agent == NULL) {
        agents->q->status = status == STORE_NOT_FOUND ? STORE_OK : status;
        return;
    }
    buf_adds(&agents->q->body, agents->any ? "," : "");
    render_agent(agent, &agents->q->body);
    agents->any = true;
}

static void add_token(void *arg, enum store_status status, const struct store_key *key)
{
    struct wp_query *q = arg;
    q->status = status;
    if (status == STORE_OK)
        add_named(q, "],\"token\":", key->id, key->name);
}

static void read_handshake(struct wp_query *q)
{
    struct agents agents = {.q = q};
    store_workspace_get(q->store, q->workspace, add_workspace, q);
    if (q->status == STORE_OK) {
        buf_adds(&q->body, "},\"agents\":[");
        store_agent_each(q->store, q->workspace, add_agent, &agents);
    }
    if (q->status == STORE_OK)
        store_key_get(q->store, q->key, add_token, q);
    if (q->status == STORE_NOT_FOUND)
        q->status = STORE_BUSY; /* the token or the workspace was just deleted */
    buf_printf(
        &q->body,
        ",\"abilities\":[\"wp:sync\"]},\"limits\":{\"batch_items\":%d,\"batch_bytes\":%" PRIu64
        "}}",
        STORE_BATCH_MAX, q->batch_bytes);
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
    start(r, (struct wp_query){.read = read_handshake});
}

/* ---- status ---- */

const char *const wp_kind_names[SYNCED_KINDS] = {
    [SYNCED_POST] = "posts", [SYNCED_PRODUCT] = "products", [SYNCED_COUPON] = "coupons"};

struct sync_status {
    struct wp_query *q;
    bool found, unindexed;
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
            sync->q->status = status;
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
    enum store_status status = store_answers_get(sync->q->store, agent, &a);
    if (status == STORE_OK)
        sync->unindexed = sync->unindexed || a.state != ANSWERS_BUILT || a.indexed != a.last;
    else if (status != STORE_NOT_FOUND)
        sync->q->status = status;
}

static void add_agent_status(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct sync_status *sync = arg;
    if (agent == NULL) {
        if (status != STORE_NOT_FOUND)
            sync->q->status = status;
        return;
    }
    if (agent->workspace != sync->q->workspace ||
        (!ulid_none(&sync->q->agent) && !ulid_eq(&sync->q->agent, &agent->id)))
        return;
    sync->found = true;
    struct ulid id = agent->id;
    store_collection_each(sync->q->store, &id, add_collection, sync);
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

static void read_status(struct wp_query *q)
{
    struct sync_status sync = {.q = q};
    if (ulid_none(&q->agent))
        store_agent_each(q->store, q->workspace, add_agent_status, &sync);
    else
        store_agent_get(q->store, &q->agent, add_agent_status, &sync);
    q->no_agent = !ulid_none(&q->agent) && !sync.found;
    status_render(&q->body, &sync);
    buf_free(&sync.collections);
    for (unsigned kind = 0; kind < SYNCED_KINDS; kind++)
        buf_free(&sync.last_id[kind]);
}

void wp_status(struct request *r)
{
    struct wp_query q = {.read = read_status, .versioned = true};
    const struct value *agent = &r->values[WP_STATUS_AGENT];
    if (agent->sent && (!ulid_parse(agent->text, &q.agent) || ulid_none(&q.agent)))
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
    else
        start(r, q);
}
