#include "core/api/api_internal.h"
#include "core/api/list_job_internal.h"
#include "core/api/render_internal.h"

#include <inttypes.h>

/* ---- list ---- */

static void list_found(void *arg, enum store_status status, uint64_t total,
                       const struct store_project *items, size_t count)
{
    struct list_job *job = arg;
    if (!list_job_result(job, status, total, count))
        return;
    for (size_t i = 0; i < count; ++i) {
        buf_adds(&job->body, i == 0 ? "" : ",");
        render_project(&items[i], &job->body);
    }
}

static void list_find(struct list_job *job, struct store *s)
{
    store_project_list(s, &job->list, list_found, job);
}

void projects_list(struct request *r)
{
    const struct value *v = r->values;
    const struct store_list_query query = {
        .workspace = r->workspace,
        .search = v[PROJECTS_SEARCH].text,
        .sort = (unsigned)v[PROJECTS_SORT_BY].number,
        .ascending = v[PROJECTS_SORT].number == 1,
        .page = v[PROJECTS_PAGE].number,
        .per_page = api_per_page[v[PROJECTS_PER_PAGE].number],
    };
    list_job_start(r, &query, STR("/api/v1/projects"), (struct str){0}, list_find);
}

/* ---- one project ---- */

/* {project} is an id or a name; a name is never all digits. */
static void find_project(struct request *r, store_project_fn *found)
{
    struct str project = r->args[0];
    uint64_t id;
    if (!api_is_number(project))
        store_project_find(r->store, r->workspace, api_lower(r, project), found, r);
    else if (api_id(project, &id))
        store_project_get(r->store, r->workspace, id, found, r);
    else
        found(r, STORE_NOT_FOUND, NULL);
}

static void project_found(void *arg, enum store_status status, const struct store_project *project)
{
    struct request *r = arg;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    if (reply_etag(r, api_version(project->id, project->version)))
        return;
    struct buf *out = api_body(r);
    buf_adds(out, "{\"data\":");
    render_project(project, out);
    buf_adds(out, ",\"status\":200}");
    api_reply(r, 200, out);
}

void projects_get(struct request *r)
{
    find_project(r, project_found);
}

/* ---- delete ---- */

struct project_deletion {
    struct store_change change;
    struct str name;
};

static void deleted(struct request *r, const struct store_answer *answer)
{
    const struct project_deletion *deletion = r->state;
    if (answer->status != STORE_OK) {
        reply_store_error(r, answer->status);
        return;
    }
    /* a host name has no characters that JSON escapes */
    struct str body = request_printf(
        r,
        "{\"id\":%" PRIu64
        ",\"object\":\"project\",\"project\":\"%.*s\",\"deleted\":true,\"status\":200}",
        deletion->change.id, (int)deletion->name.n, deletion->name.p);
    reply_json(r, 200, &body, 1);
}

static void delete_found(void *arg, enum store_status status, const struct store_project *project)
{
    struct request *r = arg;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    struct project_deletion *deletion = request_alloc(r, sizeof(*deletion));
    *deletion = (struct project_deletion){
        .change = {.kind = CHANGE_PROJECT_DELETE, .workspace = r->workspace, .id = project->id},
        .name = api_copy(r, project->name),
    };
    r->state = deletion;
    request_if_match(r, &deletion->change);
    api_version_match(r, &deletion->change, project->id);
    request_change(r, &deletion->change, deleted);
}

void projects_delete(struct request *r)
{
    find_project(r, delete_found);
}
