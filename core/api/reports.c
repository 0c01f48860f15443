/* Reads reports. Changes: reports_change.c. */
#include "core/api/api_internal.h"
#include "core/api/list_job_internal.h"
#include "core/api/render_internal.h"
#include "core/text/form.h"
#include "core/http/response_cache.h"
#include "core/http/http.h"

static struct buf *report_body(struct request *r, const struct store_report *report, int status)
{
    struct buf *out = api_body(r);
    buf_adds(out, "{\"data\":");
    render_report(report, request_base_url(r), true, out);
    buf_adds(out, ",\"status\":");
    buf_u64(out, (uint64_t)status);
    buf_adds(out, "}");
    return out;
}

void api_report_reply(struct request *r, int status, const struct store_report *report)
{
    api_reply(r, status, report_body(r, report, status));
}

static void serve(struct request *r, struct cached_report *cached)
{
    if (!reply_etag(r, cached->version))
        reply_cached(r, 200, "application/json", r->http->responses, cached);
}

static void report_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    const struct buf *body = report_body(r, report, 200);
    if (buf_ok(body))
        serve(r, response_cache_put(
                     r->http->responses,
                     &(struct cached_report){.variant = r->workspace,
                                             .id = report->id,
                                             .version = report->version,
                                             .store_version = store_snapshot_version(r->store)},
                     buf_view(body)));
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}

/* the store has changed: is this still the current version of the record? */
static void version_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    struct cached_report *cached =
        response_cache_find(r->http->responses, r->workspace, report->id);
    if (cached == NULL || cached->version != report->version) {
        store_report_get(r->store, r->workspace, report->id, true, report_found, r);
        return;
    }
    cached->store_version = store_snapshot_version(r->store);
    serve(r, cached);
}

void reports_get(struct request *r)
{
    uint64_t id;
    if (!api_id(r->args[0], &id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    struct cached_report *cached = response_cache_find(r->http->responses, r->workspace, id);
    if (cached == NULL)
        store_report_get(r->store, r->workspace, id, true, report_found, r);
    else if (cached->store_version == r->store_version)
        serve(r, cached);
    else
        store_report_get(r->store, r->workspace, id, false, version_found, r);
}

static void list_found(void *arg, enum store_status status, uint64_t total,
                       const struct store_report *items, size_t count)
{
    struct list_job *job = arg;
    if (!list_job_result(job, status, total, count))
        return;
    for (size_t i = 0; i < count && job->body.n <= API_LIST_MAX; ++i) {
        buf_adds(&job->body, i == 0 ? "" : ",");
        render_report(&items[i], job->base_url, job->list.with_results, &job->body);
    }
}

static void list_project_found(void *arg, enum store_status status,
                               const struct store_project *project)
{
    struct list_job *job = arg;
    if (status == STORE_NOT_FOUND) {
        list_found(job, STORE_OK, 0, NULL, 0);
    } else if (status != STORE_OK) {
        list_found(job, status, 0, NULL, 0);
    } else {
        job->list.project = project->id;
        store_report_list(job->store, &job->list, list_found, job);
    }
}

static void list_find(struct list_job *job, struct store *s)
{
    uint64_t id;
    job->list.project = 0;
    if (job->name.p == NULL)
        store_report_list(s, &job->list, list_found, job);
    else if (!api_is_number(job->name))
        store_project_find(s, job->list.workspace, job->name, list_project_found, job);
    else if (api_id(job->name, &id))
        store_project_get(s, job->list.workspace, id, list_project_found, job);
    else
        list_project_found(job, STORE_NOT_FOUND, NULL);
}

void reports_list(struct request *r)
{
    const struct value *v = r->values;
    const struct str project = v[REPORTS_PROJECT].text;
    const struct store_list_query query = {
        .workspace = r->workspace,
        .search = v[REPORTS_SEARCH].text,
        .sort = (unsigned)v[REPORTS_SORT_BY].number,
        .ascending = v[REPORTS_SORT].number == 1,
        .result = v[REPORTS_RESULT].sent ? (enum report_result)(v[REPORTS_RESULT].number + 1)
                                         : RESULT_NONE,
        .status = v[REPORTS_STATUS].sent ? (unsigned)v[REPORTS_STATUS].number + 1 : 0,
        .page = v[REPORTS_PAGE].number,
        .per_page = api_per_page[v[REPORTS_PER_PAGE].number],
        .with_results = v[REPORTS_INCLUDE].sent,
    };
    list_job_start(r, &query, STR("/api/v1/reports"),
                   project.p == NULL ? project : api_lower(r, project), list_find);
}
