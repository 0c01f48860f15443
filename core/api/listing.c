#include "core/api/listing.h"

#include "core/http/http.h"
#include "core/async/writer_client.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define LOGGED_MS 10000 /* minimum time between two log lines about damage */

bool listing_found(struct listing *l, enum store_status status, uint64_t total, size_t count)
{
    l->status = status;
    l->total = total;
    l->count = count;
    if (status != STORE_OK)
        return false;
    api_list_begin(&l->body);
    return true;
}

static void workspace_found(void *arg, enum store_status status,
                            const struct store_workspace *workspace)
{
    struct listing *l = arg;
    l->status = status;
    if (status != STORE_OK)
        return;
    l->version = api_version(workspace->id, workspace->version);
    l->find(l, l->store);
    if (l->status != STORE_DAMAGED)
        return;
    l->lost = store_lost_segment(l->store);
    snprintf(l->why, sizeof(l->why), "%s", store_why(l->store));
}

static bool run(struct query *q, struct store *s)
{
    struct listing *l = (struct listing *)q;
    l->store = s;
    store_workspace_get(s, l->list.workspace, workspace_found, l);
    return l->status != STORE_AGAIN;
}

static void have_index_rebuilt(struct request *r, const struct listing *l)
{
    const struct store_change change = {
        .kind = CHANGE_INDEX_LOST, .workspace = l->list.workspace, .id = l->lost};
    static uint64_t logged_ms; /* every list requests the rebuild until the writer has started it */
    if (logged_ms == 0 || r->http->loop->now_ms - logged_ms >= LOGGED_MS) {
        logged_ms = r->http->loop->now_ms;
        log_error("requesting the rebuild of the index of reports of workspace %llu: %s",
                  (unsigned long long)l->list.workspace, l->why);
    }
    writer_client_send(r->http->writer, &change);
}

static void reply_rebuilding(struct request *r)
{
    reply_header(r, "retry-after", STR("2"));
    reply_error(
        r, ERR_UNAVAILABLE,
        "The index of this workspace's reports is being rebuilt. Try again in a few seconds.");
}

static void reply(struct request *r, struct listing *l)
{
    if (!l->query.done)
        query_late(r);
    else if (l->status == STORE_REBUILDING || l->status == STORE_DAMAGED)
        reply_rebuilding(r);
    else if (l->status != STORE_OK)
        reply_store_error(r, l->status);
    else if (!reply_etag(r, l->version))
        api_list_reply(r, &l->body, l->path, &l->list, l->total, l->count);
}

static void over(struct query *q, struct waiter *w)
{
    struct request *r = request_of(w);
    struct listing *l = (struct listing *)q;
    if (r != NULL && l->status == STORE_DAMAGED)
        have_index_rebuilt(r, l);
    if (r != NULL)
        reply(r, l);
    buf_free(&l->body);
    free(l);
}

static struct str keep(char **at, struct str s)
{
    struct str copy = {s.p == NULL ? NULL : *at, s.n};
    if (s.p != NULL)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

static void listing_begin(struct request *r, const struct store_list_query *list, struct str path,
                          struct str name, listing_find_fn *find)
{
    const struct str base_url = request_base_url(r);
    struct listing *l = malloc(sizeof(*l) + list->search.n + name.n + base_url.n);
    if (l == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *l = (struct listing){.query = {.workspace = r->workspace,
                                    .search = list->search.n > 0,
                                    .run = run,
                                    .over = over},
                          .list = *list,
                          .find = find,
                          .path = path};
    char *at = l->text;
    l->list.search = keep(&at, list->search);
    l->list.pause = query_pause;
    l->list.pause_arg = &l->query;
    l->name = keep(&at, name);
    l->base_url = keep(&at, base_url);
    request_query(r, &l->query);
}

struct known {
    struct request *r;
    bool replied;
};

/* If the caller has the current version, 304 is sent at once. */
static void look_at_version(void *arg, enum store_status status,
                            const struct store_workspace *workspace)
{
    struct known *known = arg;
    known->replied = true;
    if (status != STORE_OK)
        reply_store_error(known->r, status);
    else
        known->replied = reply_etag(known->r, api_version(workspace->id, workspace->version));
}

void listing_send(struct request *r, const struct store_list_query *list, struct str path,
                  struct str name, listing_find_fn *find)
{
    struct known known = {.r = r};
    store_workspace_get(r->store, r->workspace, look_at_version, &known);
    if (!known.replied)
        listing_begin(r, list, path, name, find);
}
