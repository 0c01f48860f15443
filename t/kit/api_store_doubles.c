/* The store of api_doubles.h: functions of store.h that answer from ${played}. */
#include "t/kit/api_doubles.h"

#include <check.h>

struct store_report *played_report(uint64_t id, enum report_status status, const char *results)
{
    struct store_report *r = &played.reports[played.reports_count++];
    *r = (struct store_report){
        .id = id,
        .workspace = 7,
        .version = 5,
        .status = status,
        .score = status == REPORT_DONE ? 84 : -1,
        .result = status == REPORT_DONE ? RESULT_GOOD : RESULT_NONE,
        .url = STR("https://example.com/"),
        .project_name = STR("example.com"),
        .created_at = 1778158800000,
        .updated_at = 1778158800000,
    };
    r->results = str_of(results);
    return r;
}

struct store_project *played_project(uint64_t id, const char *name)
{
    struct store_project *p = &played.projects[played.projects_count++];
    *p = (struct store_project){.id = id,
                                .workspace = 7,
                                .version = 2,
                                .name = str_of(name),
                                .created_at = 1778158800000,
                                .updated_at = 1778158800000};
    return p;
}

void store_workspace_get(struct store *s, uint64_t workspace, store_workspace_fn *done, void *arg)
{
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(workspace, 7);
    done(arg, STORE_OK, &played.workspace);
}

void store_report_get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                      store_report_fn *done, void *arg)
{
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(workspace, 7);
    for (size_t i = 0; i < played.reports_count; ++i) {
        if (played.reports[i].id == id) {
            struct store_report r = played.reports[i];
            if (!with_results)
                r.results = (struct str){NULL, 0};
            done(arg, STORE_OK, &r);
            return;
        }
    }
    done(arg, STORE_NOT_FOUND, NULL);
}

void store_grading_list(struct store *s, uint64_t workspace, uint64_t report,
                        const struct store_gradings_query *query, store_grading_list_fn *done,
                        void *arg)
{
    size_t first = 0, count = 0;
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(workspace, 7);
    ck_assert_uint_eq(report, 41);
    played.gradings_query = *query;
    while (first < played.gradings_count && query->before != 0 &&
           played.gradings[first].number >= query->before)
        first++;
    while (first + count < played.gradings_count && count < query->limit)
        count++;
    done(arg, played.gradings_status, played.gradings + first,
         played.gradings_status == STORE_OK ? count : 0);
}

static void project_give(const struct store_project *p, store_project_fn *done, void *arg)
{
    done(arg, p == NULL ? STORE_NOT_FOUND : STORE_OK, p);
}

void store_project_get(struct store *s, uint64_t workspace, uint64_t id, store_project_fn *done,
                       void *arg)
{
    const struct store_project *found = NULL;
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(workspace, 7);
    for (size_t i = 0; i < played.projects_count; ++i)
        if (played.projects[i].id == id)
            found = &played.projects[i];
    project_give(found, done, arg);
}

void store_project_find(struct store *s, uint64_t workspace, struct str name,
                        store_project_fn *done, void *arg)
{
    const struct store_project *found = NULL;
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(workspace, 7);
    for (size_t i = 0; i < played.projects_count; ++i)
        if (str_eq(played.projects[i].name, name))
            found = &played.projects[i];
    project_give(found, done, arg);
}

/* The query is gone with its answer. */
static void note_query(const struct store_list_query *query)
{
    static char search[4096];
    ck_assert_uint_lt(query->search.n, sizeof(search));
    if (query->search.n > 0)
        memcpy(search, query->search.p, query->search.n);
    played.lists++;
    played.query = *query;
    played.query.search = (struct str){query->search.p == NULL ? NULL : search, query->search.n};
}

void store_report_list(struct store *s, const struct store_list_query *query,
                       store_report_list_fn *done, void *arg)
{
    ck_assert_ptr_null(s);
    note_query(query);
    if (played.list_turns > 0) {
        played.list_turns--;
        done(arg, STORE_AGAIN, 0, NULL, 0);
        return;
    }
    bool good = played.list_status == STORE_OK;
    done(arg, played.list_status, good ? played.total : 0, good ? played.reports : NULL,
         good ? played.reports_count : 0);
}

void store_project_list(struct store *s, const struct store_list_query *query,
                        store_project_list_fn *done, void *arg)
{
    ck_assert_ptr_null(s);
    note_query(query);
    done(arg, STORE_OK, played.total, played.projects, played.projects_count);
}
