/*
 * Readers of one environment in several threads while another process writes, grows the map and
 * merges. Run it under ThreadSanitizer too.
 */
#include "t/kit/store.h"
#include "t/kit/suite.h"
#include "store/engine/environment.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, FIRST = 400, BATCH = 200, MAPS = 4, LISTS = 1000 };
#define STEP_BYTES ((uint64_t)2 << 20)

static char dir[64];
static uint64_t workspace;
static atomic_bool ending;
static atomic_uint lists;

static void write_batch(struct store *s, unsigned from, unsigned count)
{
    char url[64];
    struct store_txn *t;
    struct store_answer a;
    kit_assert(store_begin(s, &t) == STORE_OK);
    for (unsigned i = from; i < from + count; i++) {
        snprintf(url, sizeof(url), "https://a.com/%u/%s", i * 7919 % 10007,
                 i % 3 == 0 ? "needle" : "hay");
        struct store_change create = kit_create_change(workspace, url, "a.com");
        store_apply(t, &create, NOW, &a);
        kit_assert(a.status == STORE_OK);
        struct store_change done = kit_done_change(a.id, 1, (int)(i % 100));
        store_apply(t, &done, NOW, &a);
    }
    kit_assert(store_commit(t) == STORE_OK);
}

/* Without merges the tail would grow faster than three threads on a busy machine read it. */
static void merge(struct store *s)
{
    struct kit k = {.s = s, .now = NOW};
    kit_maintain(&k, UINT64_MAX, UINT_MAX);
}

static uint64_t used_bytes(struct store *s)
{
    struct store_space room;
    kit_assert(store_space(s, &room) == STORE_OK);
    store_read_end(s);
    return room.used_bytes;
}

/* At each opening of the store the map is larger, and filled past the size before. */
static void write_on(void)
{
    unsigned reports = FIRST;
    for (uint64_t size = 2 * STEP_BYTES;; size += STEP_BYTES) {
        struct store *s = kit_store(dir, STORE_WRITE, size);
        for (; used_bytes(s) < size / 2; reports += BATCH) {
            write_batch(s, reports, BATCH);
            merge(s);
        }
        store_close(s);
    }
}

struct seen {
    enum store_status status;
    uint64_t total;
    size_t count;
    bool sorted;
};

static void take(void *arg, enum store_status status, uint64_t total,
                 const struct store_report *items, size_t count)
{
    struct seen *seen = arg;
    *seen = (struct seen){status, total, count, true};
    for (size_t i = 1; i < count; i++)
        seen->sorted = seen->sorted && items[i - 1].score <= items[i].score;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void *read_on(void *arg)
{
    struct store *s = arg;
    uint64_t last[2] = {0, 0};
    for (unsigned i = 0; !atomic_load(&ending); i++) {
        struct seen seen = {.status = STORE_AGAIN};
        const struct store_list_query q = {.workspace = workspace,
                                           .search = i % 2 != 0 ? STR("needle") : STR(""),
                                           .sort = REPORT_BY_SCORE,
                                           .ascending = true,
                                           .page = 1,
                                           .per_page = 100,
                                           .stop = never};
        while (seen.status == STORE_AGAIN) {
            store_report_list(s, &q, take, &seen);
            store_read_end(s);
        }
        kit_assert(seen.status == STORE_OK && seen.count == 100 && seen.sorted &&
                   seen.total >= last[i % 2]);
        last[i % 2] = seen.total;
        kit_assert(store_version(s) > 0);
        atomic_fetch_add(&lists, 1);
    }
    return NULL;
}

START_TEST(threads_read_while_another_process_writes_and_grows_the_map)
{
    char why[512];
    pthread_t ids[THREADS];
    struct store *readers[THREADS];
    pid_t writer = fork();
    if (writer == 0)
        write_on();
    readers[0] = kit_store(dir, STORE_READ, STEP_BYTES);
    for (int i = 1; i < THREADS; i++)
        ck_assert_int_eq(store_share(readers[0], &readers[i], why, sizeof(why)), STORE_OK);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&ids[i], NULL, read_on, readers[i]), 0);
    while (atomic_load(&readers[0]->shared->maps) < MAPS || atomic_load(&lists) < LISTS)
        usleep(10000); /* until the test's time is over */
    atomic_store(&ending, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    for (int i = 0; i < THREADS; i++) /* the first one can end before the others */
        store_close(readers[i]);
}
END_TEST

static void *read_workspace(void *arg)
{
    struct store *s = arg;
    struct store_workspace found;
    enum store_status status = kit_get_workspace(s, 1, &found);
    store_read_end(s);
    return status == STORE_OK ? s : NULL;
}

/* As the follower's thread runs beside the writer's loop. */
START_TEST(another_thread_reads_a_store_during_writes)
{
    char why[512], own[64];
    pthread_t id;
    void *found;
    kit_dir(own);
    struct store *s = kit_store(own, STORE_WRITE, MAP_BYTES), *other;
    struct store_txn *t;
    struct store_answer answer;
    ck_assert_int_eq(store_share(s, &other, why, sizeof(why)), STORE_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(store_begin(s, &t), STORE_OK);
        store_apply(t,
                    &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE,
                                           .name = str_of(i == 0 ? "a" : "b")},
                    NOW, &answer);
        ck_assert_int_eq(pthread_create(&id, NULL, read_workspace, other), 0);
        pthread_join(id, &found);
        ck_assert_ptr_eq(found, i == 0 ? NULL : other); /* not before the commit */
        ck_assert_int_eq(store_commit(t), STORE_OK);
    }
    ck_assert_int_eq(store_begin(other, &t), STORE_INVALID);
    store_close(s);
    store_close(other);
    kit_remove(own);
}
END_TEST

static void setup(void)
{
    struct kit k = {.now = NOW};
    kit_segment_rows = 512;
    kit_ngram_block_shift = 6;
    kit_log_entries = 64;
    kit_dir(dir);
    k.s = kit_store(dir, STORE_WRITE, STEP_BYTES);
    workspace = kit_workspace(&k, "acme");
    write_batch(k.s, 0, FIRST);
    store_close(k.s);
}

static void teardown(void)
{
    kit_remove(dir);
}

int main(void)
{
    Suite *suite = suite_create("store_threads");
    TCase *tc = tcase_create("threads");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, threads_read_while_another_process_writes_and_grows_the_map);
    tcase_add_test(tc, another_thread_reads_a_store_during_writes);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
