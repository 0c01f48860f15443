#include "core/api/list_job_internal.h"

#include "core/http/http.h"
#include "core/async/writer_client.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define LOGGED_MS 10000 /* minimum time between two log lines about damage */

bool list_job_result(struct list_job *job, enum store_status status, uint64_t total, size_t count)
{
    job->status = status;
    job->total = total;
    job->count = count;
    if (status != STORE_OK)
        return false;
    api_list_begin(&job->body);
    return true;
}

static void workspace_found(void *arg, enum store_status status,
                            const struct store_workspace *workspace)
{
    struct list_job *job = arg;
    job->status = status;
    if (status != STORE_OK)
        return;
    job->version = api_version(workspace->id, workspace->version);
    job->find(job, job->store);
    if (job->status == STORE_DAMAGED)
        job->lost = store_lost_segment(job->store);
}

static bool run(struct query *q, struct store *s)
{
    struct list_job *job = (struct list_job *)q;
    job->store = s;
    store_workspace_get(s, job->list.workspace, workspace_found, job);
    if (job->status != STORE_OK)
        snprintf(job->why, sizeof(job->why), "%s", store_why(s));
    return job->status != STORE_AGAIN;
}

static void request_index_rebuild(struct request *r, const struct list_job *job)
{
    const struct store_change change = {
        .kind = CHANGE_INDEX_LOST, .workspace = job->list.workspace, .id = job->lost};
    static uint64_t logged_ms; /* every list requests the rebuild until the writer has started it */
    if (logged_ms == 0 || r->http->loop->now_ms - logged_ms >= LOGGED_MS) {
        logged_ms = r->http->loop->now_ms;
        log_error("requesting the rebuild of the index of reports of workspace %llu: %s",
                  (unsigned long long)job->list.workspace, job->why);
    }
    writer_client_send_local(r->http->writer, &change);
}

static void reply_rebuilding(struct request *r)
{
    reply_header(r, "retry-after", STR("2"));
    reply_error(
        r, ERR_UNAVAILABLE,
        "The index of this workspace's reports is being rebuilt. Try again in a few seconds.");
}

static void reply(struct request *r, struct list_job *job)
{
    if (!job->query.done)
        query_late(r);
    else if (job->status == STORE_REBUILDING || job->status == STORE_DAMAGED)
        reply_rebuilding(r);
    else if (job->status != STORE_OK)
        reply_store_failure(r, job->status, job->why);
    else if (!reply_etag(r, job->version))
        api_list_reply(r, &job->body, job->path, &job->list, job->total, job->count);
}

static void over(struct query *q, struct waiter *w)
{
    struct request *r = request_of(w);
    struct list_job *job = (struct list_job *)q;
    if (r != NULL && job->status == STORE_DAMAGED)
        request_index_rebuild(r, job);
    if (r != NULL)
        reply(r, job);
    buf_free(&job->body);
    free(job);
}

static struct str append(char **at, struct str s)
{
    struct str copy = {s.p == NULL ? NULL : *at, s.n};
    if (s.p != NULL)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

static void start(struct request *r, const struct store_list_query *list, struct str path,
                  struct str name, list_job_fn *find)
{
    const struct str base_url = request_base_url(r);
    struct list_job *job = malloc(sizeof(*job) + list->search.n + name.n + base_url.n);
    if (job == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *job = (struct list_job){.query = {.workspace = r->workspace,
                                       .search = list->search.n > 0,
                                       .run = run,
                                       .over = over},
                             .list = *list,
                             .find = find,
                             .path = path};
    char *at = job->text;
    job->list.search = append(&at, list->search);
    job->list.stop = query_must_stop;
    job->list.stop_arg = &job->query;
    job->name = append(&at, name);
    job->base_url = append(&at, base_url);
    request_query(r, &job->query);
}

struct version_check {
    struct request *r;
    bool replied;
};

/* If the caller has the current version, 304 is sent at once. */
static void check_version(void *arg, enum store_status status,
                          const struct store_workspace *workspace)
{
    struct version_check *check = arg;
    check->replied = true;
    if (status != STORE_OK)
        reply_store_error(check->r, status);
    else
        check->replied = reply_etag(check->r, api_version(workspace->id, workspace->version));
}

void list_job_start(struct request *r, const struct store_list_query *list, struct str path,
                    struct str name, list_job_fn *find)
{
    struct version_check check = {.r = r};
    store_workspace_get(r->store, r->workspace, check_version, &check);
    if (!check.replied)
        start(r, list, path, name, find);
}
