/* Reading reports. Writing them: reports_change.c. */
#include "api.h"
#include "render.h"
#include "../http/form.h"
#include "../http/memo.h"
#include "../worker.h"

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

static void serve(struct request *r, const struct memo_report *known)
{
    if (!reply_etag(r, known->version))
        reply_shared(r, 200, known->body);
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
        serve(r, memo_report_put(r->worker->memo, r->workspace, report->id, report->version,
                                 store_snapshot_version(r->store), buf_view(body)));
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}

/* the store has moved on: is it still this version of the record? */
static void version_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    struct memo_report *known = memo_report(r->worker->memo, r->workspace, report->id);
    if (known == NULL || known->version != report->version) {
        store_report_get(r->store, r->workspace, report->id, true, report_found, r);
        return;
    }
    known->seen = store_snapshot_version(r->store);
    serve(r, known);
}

void reports_get(struct request *r)
{
    uint64_t id;
    if (!api_id(r->args[0], &id)) {
        reply_error(r, ERR_NOT_FOUND, NULL);
        return;
    }
    struct memo_report *known = memo_report(r->worker->memo, r->workspace, id);
    if (known == NULL)
        store_report_get(r->store, r->workspace, id, true, report_found, r);
    else if (known->seen == r->seen)
        serve(r, known);
    else
        store_report_get(r->store, r->workspace, id, false, version_found, r);
}

static void list_begin(struct request *r);

static void list_found(void *arg, enum store_status status, uint64_t total, const struct store_report *items, size_t count)
{
    struct request *r = arg;
    const struct store_list_query *query = r->state;
    if (status == STORE_AGAIN) {
        request_later(r, list_begin);
        return;
    }
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    struct str base_url = request_base_url(r);
    struct buf *out = api_list_begin(r);
    for (size_t i = 0; i < count && out->n <= API_LIST_MAX; ++i) {
        buf_adds(out, i == 0 ? "" : ",");
        render_report(&items[i], base_url, query->with_results, out);
    }
    api_list_reply(r, out, STR("/api/v1/reports"), query, total, count);
}

static void list_project_found(void *arg, enum store_status status, const struct store_project *project)
{
    struct request *r = arg;
    struct store_list_query *query = r->state;
    if (status == STORE_NOT_FOUND) {
        list_found(r, STORE_OK, 0, NULL, 0);
    } else if (status != STORE_OK) {
        list_found(r, status, 0, NULL, 0);
    } else {
        query->project = project->id;
        store_report_list(r->store, query, list_found, r);
    }
}

static void list_workspace_found(void *arg, enum store_status status, const struct store_workspace *workspace)
{
    struct request *r = arg;
    struct str project = r->values[REPORTS_PROJECT].text;
    uint64_t id;
    if (status != STORE_OK)
        reply_store_error(r, status);
    else if (reply_etag(r, api_version(workspace->id, workspace->version)))
        return;
    else if (project.p == NULL)
        store_report_list(r->store, r->state, list_found, r);
    else if (!api_is_number(project))
        store_project_find(r->store, r->workspace, api_lower(r, project), list_project_found, r);
    else if (api_id(project, &id))
        store_project_get(r->store, r->workspace, id, list_project_found, r);
    else
        list_project_found(r, STORE_NOT_FOUND, NULL);
}

/* A later slice begins here, too: the store may have moved on. */
static void list_begin(struct request *r)
{
    store_workspace_get(r->store, r->workspace, list_workspace_found, r);
}

void reports_list(struct request *r)
{
    struct store_list_query *query = request_alloc(r, sizeof(*query));
    const struct value *v = r->values;
    *query = (struct store_list_query){
        .workspace = r->workspace,
        .search = v[REPORTS_SEARCH].text,
        .sort = (unsigned)v[REPORTS_SORT_BY].number,
        .ascending = v[REPORTS_SORT].number == 1,
        .result = v[REPORTS_RESULT].sent ? (enum report_result)(v[REPORTS_RESULT].number + 1) : RESULT_NONE,
        .status = v[REPORTS_STATUS].sent ? (unsigned)v[REPORTS_STATUS].number + 1 : 0,
        .page = v[REPORTS_PAGE].number,
        .per_page = api_per_page[v[REPORTS_PER_PAGE].number],
        .with_results = v[REPORTS_INCLUDE].sent,
        .pause = request_pause,
        .waited = request_waited,
        .pause_arg = r,
    };
    r->state = query;
    request_slice(r, list_begin);
}
