/* Readers of store.h: each returns what a callback of the store got. */
#include "t/kit/store.h"

#include <string.h>

#define GOT(type)                                                                                  \
    struct got_##type {                                                                            \
        int calls;                                                                                 \
        enum store_status status;                                                                  \
        struct store_##type record;                                                                \
    };                                                                                             \
    static void got_##type(void *arg, enum store_status status, const struct store_##type *record) \
    {                                                                                              \
        struct got_##type *g = arg;                                                                \
        g->calls++;                                                                                \
        g->status = status;                                                                        \
        kit_assert((status == STORE_OK) == (record != NULL));                                      \
        if (record != NULL)                                                                        \
            g->record = *record;                                                                   \
    }
GOT(report)
GOT(project)
GOT(key)
GOT(workspace)

#define ANSWER(got, out)                                                                           \
    kit_assert((got).calls == 1);                                                                  \
    if ((out) != NULL)                                                                             \
        *(out) = (got).record;                                                                     \
    return (got).status

enum store_status kit_report(struct store *s, uint64_t workspace, uint64_t id,
                             struct store_report *out)
{
    struct got_report g = {0};
    store_report_get(s, workspace, id, true, got_report, &g);
    ANSWER(g, out);
}

enum store_status kit_project(struct store *s, uint64_t workspace, const char *name,
                              struct store_project *out)
{
    struct got_project g = {0};
    store_project_find(s, workspace, str_of(name), got_project, &g);
    ANSWER(g, out);
}

enum store_status kit_find_key(struct store *s, uint8_t seed, struct store_key *out)
{
    struct got_key g = {0};
    uint8_t hash[32];
    memset(hash, seed, sizeof(hash));
    store_key_find(s, hash, got_key, &g);
    ANSWER(g, out);
}

enum store_status kit_get_workspace(struct store *s, uint64_t id, struct store_workspace *out)
{
    struct got_workspace g = {0};
    store_workspace_get(s, id, got_workspace, &g);
    ANSWER(g, out);
}

static void got_gradings(void *arg, enum store_status status, const struct store_grading *items,
                         size_t count)
{
    struct kit_gradings *g = arg;
    g->calls++;
    g->status = status;
    g->count = count;
    kit_assert(status == STORE_OK || count == 0);
    memcpy(g->items, items, count * sizeof(*items));
}

struct kit_gradings kit_gradings(struct store *s, uint64_t workspace, uint64_t report,
                                 uint32_t before, unsigned limit)
{
    struct kit_gradings g = {0};
    const struct store_gradings_query query = {.before = before, .limit = limit};
    store_grading_list(s, workspace, report, &query, got_gradings, &g);
    kit_assert(g.calls == 1);
    return g;
}

static void got_reports(void *arg, enum store_status status, uint64_t total,
                        const struct store_report *items, size_t count)
{
    struct kit_list *l = arg;
    *l = (struct kit_list){l->calls + 1, status, total, count, items, NULL};
}

static void got_projects(void *arg, enum store_status status, uint64_t total,
                         const struct store_project *items, size_t count)
{
    struct kit_list *l = arg;
    *l = (struct kit_list){l->calls + 1, status, total, count, NULL, items};
}

struct kit_list kit_reports(struct store *s, const struct store_list_query *q)
{
    struct kit_list l = {0};
    store_report_list(s, q, got_reports, &l);
    kit_assert(l.calls == 1);
    return l;
}

struct kit_list kit_projects(struct store *s, const struct store_list_query *q)
{
    struct kit_list l = {0};
    store_project_list(s, q, got_projects, &l);
    kit_assert(l.calls == 1);
    return l;
}

static void got_job(void *arg, const struct store_job *job)
{
    kit_assert(job->url.n > 0);
    ++*(size_t *)arg;
}

bool kit_stop(void *arg)
{
    struct kit_stop *stop = arg;
    return ++stop->asked >= stop->at && stop->at != 0;
}

size_t kit_jobs(struct store *s)
{
    size_t count = 0;
    ck_status(store_job_each(s, got_job, &count), STORE_OK);
    return count;
}
