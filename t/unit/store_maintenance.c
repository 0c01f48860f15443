/*
 * Maintenance of the report index during deletes, interrupted at any point, and with little free
 * space.
 */
#include "t/kit/store.h"

#include "store/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct kit k;

/*
 * How often this process waited for the disk: these definitions replace the C library's for LMDB,
 * too.
 */
static unsigned syncs;

static ssize_t write_at(int fd, const void *p, size_t n, off_t at)
{
    syncs += (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    return syscall(SYS_pwrite64, fd, p, n, at);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return write_at(fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return write_at(fd, p, n, at);
}

int fdatasync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

static void setup(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 8;
    kit_open(&k);
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = kit_good = kit_decent = 0;
}

static bool one_batch(uint64_t limit)
{
    enum store_status status =
        kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = limit});
    if (status != STORE_NOT_FOUND)
        ck_status(status, STORE_OK);
    return status == STORE_OK;
}

START_TEST(a_deleted_workspaces_index_is_purged_in_interruptible_batches)
{
    enum { REPORTS = 300 };
    uint64_t w = kit_workspace(&k, "going"), other = kit_workspace(&k, "staying");
    struct store_usage u;
    unsigned rounds = 0;
    for (int i = 0; i < REPORTS; i++)
        kit_create(&k, i % 10 == 0 ? other : w, "https://a.com/x", i % 2 ? "a.com" : "b.com");
    kit_purge(&k, 1);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w}),
              STORE_OK);
    do {
        kit_maintain(&k, 1 + (uint64_t)_i, 4);
        kit_check_clean(k.s);
        kit_reopen(&k);
        ck_status(store_usage(k.s, &u), STORE_OK);
        ck_assert_uint_lt(rounds++, 3000);
    } while (u.workspaces == 2);
    kit_purge(&k, 100);
    struct store_list_query q = {
        .workspace = other, .sort = REPORT_BY_ID, .page = 1, .per_page = 100};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 10);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_purge_does_not_wait_for_the_rebuild_of_another_workspace)
{
    enum { REPORTS = 20 };
    struct store_usage u;
    uint64_t ids[] = {kit_workspace(&k, "rebuilding"), kit_workspace(&k, "going")};
    for (int i = 0; i < 2 * REPORTS; i++)
        kit_create(&k, ids[i % 2], "https://a.com/x", "a.com");
    kit_purge(&k, 10);
    for (int i = 0; i < 2; i++)
        ck_status(
            kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = ids[i]}),
            STORE_OK);
    ck_status(
        kit_status(&k, &(struct store_change){.kind = CHANGE_INDEX_LOST, .workspace = ids[0]}),
        STORE_OK);
    kit_maintain(&k, 100, 2); /* the start, and the first step */
    ck_status(store_usage(k.s, &u), STORE_OK);
    store_read_end(k.s);
    ck_assert_uint_eq(u.reports, REPORTS);
    kit_purge(&k, 10);
    ck_status(store_usage(k.s, &u), STORE_OK);
    store_read_end(k.s);
    ck_assert_uint_eq(u.workspaces, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(an_aborted_reclassification_is_not_taken_as_done)
{
    struct store_txn *t;
    struct store_answer a;
    struct store_report r;
    uint64_t w = kit_workspace(&k, "acme"), id = kit_create(&k, w, "https://a.com/", "a.com");
    kit_done(&k, id, 1, 85);
    kit_good = 99;
    kit_decent = 98;
    kit_reopen(&k);
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < 2; i++) /* the second call finds that all are */
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10}, k.now, &a);
    store_abort(t);
    k.now += 60000;
    kit_purge(&k, 10);
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    ck_assert_int_eq(r.result, RESULT_BAD);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_result_of_old_bounds_is_reclassified)
{
    struct store_report r;
    uint64_t w = kit_workspace(&k, "acme"), id = kit_create(&k, w, "https://a.com/", "a.com");
    kit_good = 99;
    kit_decent = 98;
    kit_reopen(&k);
    kit_purge(&k, 10);
    kit_done(&k, id, 1, 85); /* by an auditor from before the reload */
    kit_purge(&k, 10);
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    ck_assert_int_eq(r.result, RESULT_BAD);
    kit_check_clean(k.s);
}
END_TEST

static bool has_much_space(void)
{
    struct store_space space;
    ck_status(store_space(k.s, &space), STORE_OK);
    store_read_end(k.s);
    return space.growth_bytes > space.map_bytes / 16;
}

static struct store_answer create_one(uint64_t w, uint64_t i)
{
    char url[200], project[32];
    snprintf(url, sizeof(url), "https://host%u.example/some/where/%llu/else", (unsigned)(i % 40),
             (unsigned long long)i * 7919);
    snprintf(project, sizeof(project), "p%u", (unsigned)(i % 40));
    struct store_change c = kit_create_change(w, url, project);
    struct store_answer answer = kit_apply(&k, &c);
    if (answer.status == STORE_OK && i % 4 == 0)
        kit_done(&k, answer.id, 1, (int)(i / 4 % 100));
    return answer;
}

/* Until a create is refused, with the writer's maintenance between. */
static void fill(uint64_t w)
{
    struct store_answer answer = {.status = STORE_OK};
    for (uint64_t i = 0; answer.status == STORE_OK;) {
        const bool batch = has_much_space();
        if (batch)
            kit_batch_begin(&k);
        for (uint64_t end = i + 50; answer.status == STORE_OK && i < end; i++)
            answer = create_one(w, i);
        if (batch)
            kit_batch_end(&k);
        kit_purge(&k, 200);
    }
    ck_status(answer.status, STORE_FULL);
}

/* Columns: the map, rows of a segment, the tail length that triggers a merge */
static const struct {
    uint64_t map;
    uint32_t rows, entries;
} maps[] = {
    {(uint64_t)16 << 20, 1024, 64},
    {(uint64_t)16 << 20, 256, 64},
    {(uint64_t)32 << 20, 0, 1000},
    {(uint64_t)64 << 20, 0, 4096},
};

START_TEST(a_full_store_deletes_in_any_state_of_maintenance)
{
    kit_segment_rows = maps[_i].rows;
    kit_ngram_block_shift = 0;
    kit_log_entries = maps[_i].entries;
    store_close(k.s);
    kit_remove(k.dir);
    kit_dir(k.dir);
    k.s = kit_store(k.dir, STORE_WRITE, maps[_i].map);
    uint64_t w = kit_workspace(&k, "full");
    fill(w);
    kit_good = 95; /* and reclassification has work as well */
    kit_decent = 5;
    store_close(k.s);
    k.s = kit_store(k.dir, STORE_WRITE, maps[_i].map);
    struct store_project p;
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof(name), "p%d", i);
        ck_status(kit_project(k.s, w, name, &p), STORE_OK);
        uint64_t id = p.id;
        store_read_end(k.s);
        ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                                        .workspace = w,
                                                        .id = id}),
                  STORE_OK);
        kit_purge(&k, 200);
    }
    kit_check_clean(k.s);
    kit_create(&k, w, "https://a.com/", "a");
}
END_TEST

static bool stop_always(void *arg)
{
    ++*(unsigned *)arg;
    return true;
}

static unsigned stops;

/* Run a change that stops at every check. */
static struct store_answer stopped(const struct store_change *c)
{
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    store_txn_stop_when(t, stop_always, &stops);
    store_apply(t, c, k.now, &a);
    ck_status(store_commit(t), STORE_OK);
    return a;
}

static void delete_project(uint64_t w, const char *name)
{
    struct store_project p;
    ck_status(kit_project(k.s, w, name, &p), STORE_OK);
    uint64_t id = p.id;
    store_read_end(k.s);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = id}),
        STORE_OK);
}

static uint64_t records(void)
{
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    store_read_end(k.s);
    return u.reports + u.projects;
}

START_TEST(background_work_ends_its_batch_after_a_record_when_it_must_stop)
{
    enum { REPORTS = 200 };
    uint64_t w = kit_workspace(&k, "acme"), ids[REPORTS / 2];
    struct store_project p;
    for (int i = 0; i < REPORTS; i++) {
        uint64_t id = kit_create(&k, w, "https://a.com/x", i % 2 ? "goes.com" : "stays.com");
        kit_done(&k, id, 1, 60);
        if (i % 2)
            ids[i / 2] = id;
    }
    kit_purge(&k, 1000);
    ck_status(kit_project(k.s, w, "goes.com", &p), STORE_OK);
    delete_project(w, "goes.com");
    stops = 0;
    for (size_t i = 0; i < REPORTS / 2; i++) {
        uint64_t before = records();
        struct store_change purge = {
            .kind = CHANGE_PURGE_DELETED,
            .workspace = w,
            .id = p.id,
            .data = {(const char *)&ids[i], sizeof(ids) - i * sizeof(*ids)}};
        struct store_answer a = stopped(&purge);
        ck_status(a.status, STORE_OK);
        ck_assert_uint_eq(a.id, 1);
        ck_assert_uint_eq(before - records(), 1);
        if (i % 20 == 0)
            kit_check_clean(k.s);
    }
    kit_purge(&k, 1000);
    kit_good = 55; /* and the rest is to be reclassified */
    kit_decent = 50;
    kit_reopen(&k);
    unsigned batches = 0;
    while (stopped(&(struct store_change){.kind = CHANGE_PURGE, .limit = 1000}).status == STORE_OK)
        batches++;
    ck_assert_uint_ge(batches, REPORTS / 2);
    ck_assert_uint_ge(stops, REPORTS);
    struct store_list_query q = {.workspace = w, .result = RESULT_GOOD, .page = 1, .per_page = 10};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 2);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

static struct store_maintenance_status maintain_now(void)
{
    struct store_maintenance_status u;
    ck_status(store_maintenance_status(k.s, &u), STORE_OK);
    store_read_end(k.s);
    return u;
}

START_TEST(reclassification_reports_progress_and_does_not_delay_a_purge)
{
    enum { REPORTS = 1200 };
    uint64_t w = kit_workspace(&k, "acme");
    for (int i = 0; i < REPORTS; i++)
        kit_done(&k, kit_create(&k, w, "https://a.com/x", i % 2 ? "goes.com" : "stays.com"), 1, 60);
    kit_purge(&k, 1000);
    delete_project(w, "goes.com");
    kit_good = 55;
    kit_decent = 50;
    kit_reopen(&k);
    uint64_t there = records();
    ck_assert_str_eq(maintain_now().what, "rating");
    ck_assert_uint_eq(maintain_now().done, 0);
    ck_assert_uint_eq(maintain_now().total, REPORTS);
    ck_assert(one_batch(10));
    kit_maintain(&k, 10, 8);
    ck_assert_uint_gt(maintain_now().done, 0);
    ck_assert_uint_lt(records(), there);
    ck_assert_uint_gt(records(), REPORTS / 2 + 1);
    kit_purge(&k, 100);
    ck_assert_str_eq(maintain_now().what, "");
    /* and bounds that follow others are reported before their first step as well */
    kit_good = 65;
    kit_reopen(&k);
    ck_assert_str_eq(maintain_now().what, "rating");
    ck_assert_uint_eq(maintain_now().done, 0);
    kit_purge(&k, 100);
    kit_check_clean(k.s);
}
END_TEST

static unsigned syncs_of(struct store_change c)
{
    unsigned before = syncs;
    ck_status(kit_status(&k, &c), STORE_OK);
    return syncs - before;
}

START_TEST(maintenance_commits_sync_once_and_callers_commits_twice)
{
    uint64_t w = kit_workspace(&k, "acme");
    struct store_change create = kit_create_change(w, "https://a.com/", "a.com");
    uint64_t id = kit_apply(&k, &create).id;
    struct store_project p;
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(syncs_of(create), 2);
    ck_status(kit_project(k.s, w, "a.com", &p), STORE_OK);
    delete_project(w, "a.com");
    const struct store_change purge = {.kind = CHANGE_PURGE_DELETED,
                                       .workspace = w,
                                       .id = p.id,
                                       .data = {(const char *)&id, sizeof(id)}};
    ck_assert_uint_eq(syncs_of(purge), 1);
    ck_assert_uint_eq(syncs_of(create), 2);
    struct store_txn *t; /* both in one transaction: a caller waits */
    struct store_answer a;
    unsigned before = syncs;
    ck_status(store_begin(k.s, &t), STORE_OK);
    store_apply(t, &create, NOW, &a);
    store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 5}, NOW, &a);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(syncs - before, 2);
    kit_purge(&k, 10);
    kit_check_clean(k.s);
}
END_TEST

/* With a change of local spaces alone in the same transaction: twice. */
START_TEST(a_commit_that_the_log_has_syncs_once)
{
    uint64_t w = kit_workspace(&k, "acme");
    const struct store_change create = kit_create_change(w, "https://a.com/", "a.com"),
                              lost = {.kind = CHANGE_INDEX_LOST, .workspace = w};
    for (int with_local = 0; with_local < 2; with_local++) {
        struct store_txn *t;
        struct store_answer a;
        ck_status(store_begin(k.s, &t), STORE_OK);
        store_apply(t, &create, NOW, &a);
        ck_status(a.status, STORE_OK);
        if (with_local)
            store_apply(t, &lost, NOW, &a);
        ck_status(a.status, STORE_OK);
        store_mark_in_log(t);
        unsigned before = syncs;
        ck_status(store_commit(t), STORE_OK);
        ck_assert_uint_eq(syncs - before, 1 + with_local);
    }
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_maintenance");
    TCase *tc = tcase_create("maintenance");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_deleted_workspaces_index_is_purged_in_interruptible_batches, 0, 5);
    tcase_add_test(tc, a_result_of_old_bounds_is_reclassified);
    tcase_add_test(tc, a_purge_does_not_wait_for_the_rebuild_of_another_workspace);
    tcase_add_test(tc, an_aborted_reclassification_is_not_taken_as_done);
    tcase_add_test(tc, background_work_ends_its_batch_after_a_record_when_it_must_stop);
    tcase_add_test(tc, reclassification_reports_progress_and_does_not_delay_a_purge);
    tcase_add_loop_test(tc, a_full_store_deletes_in_any_state_of_maintenance, 0,
                        (int)(sizeof(maps) / sizeof(*maps)));
    tcase_add_test(tc, maintenance_commits_sync_once_and_callers_commits_twice);
    tcase_add_test(tc, a_commit_that_the_log_has_syncs_once);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
