/* Do all nodes have the same records, and do they answer the same? */
#include "t/kit/nodes.h"
#include "t/kit/space_rows.h"

#include "core/conf/conf.h"
#include "store/rows.h"

#include <pthread.h>

enum { MAP_BYTES = 1 << 30 };

/* ---- the stores ---- */

enum { SAME_MS = 30000 };

static struct store *store_of(const struct server *s)
{
    char why[512];
    struct store *store = NULL;
    const struct store_options options = {.dir = s->data,
                                          .map_size = MAP_BYTES,
                                          .max_readers = CONF_STORE_READERS,
                                          .mode = STORE_READ};
    ck_assert_msg(store_open(&options, &store, why, sizeof(why)) == STORE_OK, "%s", why);
    return store;
}

/* LMDB has an environment once in a process. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

uint64_t node_position(const struct nodes *n, unsigned i)
{
    struct store_position position = {0};
    char *path = text("%s/data.mdb", n->node[i].server->data);
    bool there = access(path, F_OK) == 0;
    free(path);
    if (!there)
        return 0;
    pthread_mutex_lock(&one_at_a_time);
    struct store *store = store_of(n->node[i].server);
    enum store_status status = store_position_get(store, &position);
    ck_assert_msg(status == STORE_OK || status == STORE_NOT_FOUND, "%s", store_why(store));
    store_read_end(store);
    store_close(store);
    pthread_mutex_unlock(&one_at_a_time);
    return position.sequence;
}

static void expect_equal_rows(const struct server *one, const struct server *other)
{
    struct store *a = store_of(one), *b = store_of(other);
    for (enum space space = 0; space < SPACE_COUNT; space++) {
        struct buf of_a = {0}, of_b = {0};
        if (!space_follows_log(space))
            continue;
        space_rows(a, space, &of_a);
        space_rows(b, space, &of_b);
        ck_assert_msg(str_eq(buf_view(&of_a), buf_view(&of_b)),
                      "space %s of %s and %s: %zu and %zu bytes", space_name(space), one->data,
                      other->data, of_a.n, of_b.n);
        buf_free(&of_a);
        buf_free(&of_b);
    }
    store_close(a);
    store_close(b);
}

/* ---- the answers ---- */

struct asked {
    const struct nodes *n;
    const char *path;
    char *why; /* the answers that differed last */
};

static bool is_same_answer(void *arg)
{
    struct asked *a = arg;
    struct response *first = http_get(a->n->node[0].server, a->path);
    bool same = true;
    for (unsigned i = 1; same && i < a->n->count; i++) {
        struct response *r = http_get(a->n->node[i].server, a->path);
        same = r->status == first->status && !strcmp(r->body, first->body);
        if (!same)
            a->why = text("node 0 and node %u:\n%s\n%s", i, response_text(first), response_text(r));
        response_free(r);
    }
    response_free(first);
    return same;
}

/* Pages may still be graded: the answers are equal at some time. */
static void expect_same_answer(const struct nodes *n, const char *path)
{
    struct asked a = {.n = n, .path = path};
    ck_assert_msg(wait_until(is_same_answer, &a, SAME_MS), "%s of %s", path, a.why);
}

/* Each report of this page of the list; whether there are more. */
static bool expect_same_page(const struct nodes *n, int page)
{
    char *path = text("/api/v1/reports?per_page=100&sort=asc&page=%d", page);
    struct response *list = http_get(n->node[0].server, path);
    expect_status(list, 200);
    expect_same_answer(n, path);
    size_t count = len_at(list, "data");
    for (size_t i = 0; i < count; i++) {
        char *report = report_path(int_at(list, text("data.%zu.id", i)));
        expect_same_answer(n, report);
        expect_same_answer(n, text("%s/history", report));
    }
    response_free(list);
    return count == 100;
}

static void expect_same_answers(const struct nodes *n)
{
    for (int page = 1; expect_same_page(n, page);)
        page++;
    expect_same_answer(n, "/api/v1/projects?per_page=100");
    expect_same_answer(n, "/api/v1/reports?search=good&sort_by=score&sort=desc&per_page=100");
    expect_same_answer(n, "/api/v1/reports?project=127.0.0.1&per_page=100");
}

/* ---- all of it ---- */

static void expect_clean(const struct nodes *n, unsigned i, const char *when)
{
    struct run run = assay(n->node[i].server, "check", NULL);
    ck_assert_msg(run.status == 0, "node %u: check, %s: %s%s\n%s", i, when, run.out, run.err,
                  nodes_logs(n));
    free(run.out);
    free(run.err);
}

/* All nodes are paused. False: they are not at the same entry, since one of them was late. */
static bool are_together(const struct nodes *n)
{
    for (unsigned i = 1; i < n->count; i++)
        if (node_position(n, i) != node_position(n, 0))
            return false;
    return true;
}

/* Pauses all nodes, so that the stores do not change meanwhile. */
static void expect_equal_stores(struct nodes *n)
{
    for (bool together = false; !together;) {
        nodes_catch_up(n);
        for (unsigned i = 0; i < n->count; i++)
            node_pause(n, i);
        together = are_together(n);
        for (unsigned i = 1; together && i < n->count; i++)
            expect_equal_rows(n->node[0].server, n->node[i].server);
        for (unsigned i = 0; i < n->count; i++)
            node_resume(n, i);
    }
}

void nodes_expect_equal(struct nodes *n)
{
    nodes_catch_up(n);
    expect_same_answers(n);
    for (unsigned i = 0; i < n->count; i++)
        expect_clean(n, i, "online");
    expect_equal_stores(n);
    for (unsigned i = 0; i < n->count; i++)
        node_stop(n, i);
    for (unsigned i = 0; i < n->count; i++)
        expect_clean(n, i, "at rest");
}
