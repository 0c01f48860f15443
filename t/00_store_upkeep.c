/*
 * The upkeep of the reports' indexes beside deletes, cut off anywhere, and where room is scarce.
 */
#include "00_store_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct kit k;

/* How often this process waited for the disk: these stand before the C library's for LMDB, too. */
static unsigned syncs;
static bool sync_fails;

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
    errno = EIO;
    return sync_fails ? -1 : (int)syscall(SYS_fdatasync, fd);
}

static void setup(void)
{
    kit_segment_rows = 64;
    kit_chunk_shift = 6;
    kit_log_entries = 8;
    kit_open(&k);
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_chunk_shift = kit_log_entries = kit_part_bytes = kit_good = kit_decent = 0;
}

static bool one_slice(uint64_t limit)
{
    enum store_status status = kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = limit});
    if (status != STORE_NOT_FOUND)
        ck_status(status, STORE_OK);
    return status == STORE_OK;
}

START_TEST(a_deleted_workspaces_index_goes_in_slices_of_any_size_cut_off_anywhere)
{
    enum { REPORTS = 300 };
    kit_part_bytes = (uint32_t)_i % 2; /* each part in parts.dat, or as usual */
    kit_reopen(&k);
    uint64_t w = kit_workspace(&k, "going"), other = kit_workspace(&k, "staying");
    for (int i = 0; i < REPORTS; i++)
        kit_create(&k, i % 10 == 0 ? other : w, "https://a.com/x", i % 2 ? "a.com" : "b.com");
    kit_purge(&k, 1);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w}), STORE_OK);
    while (one_slice(1 + (uint64_t)_i)) {
        kit_check_clean(k.s);
        kit_reopen(&k);
    }
    struct store_list_query q = {.workspace = other, .sort = REPORT_BY_ID, .page = 1, .per_page = 100};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 10);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(rating_that_was_undone_is_not_taken_for_done)
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
    for (int i = 0; i < 2; i++) /* the second finds that all are */
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10}, k.now, &a);
    store_abort(t);
    k.now += 60000;
    kit_purge(&k, 10);
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    ck_assert_int_eq(r.result, RESULT_BAD);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_grade_by_the_bounds_of_before_is_brought_to_those_of_now)
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

/* Until a create is refused, with the upkeep that the writer does between. */
static void fill(uint64_t w)
{
    char url[200], project[32];
    for (uint64_t i = 0;; i++) {
        snprintf(url, sizeof(url), "https://host%u.example/some/where/%llu/else", (unsigned)(i % 40), (unsigned long long)i * 7919);
        snprintf(project, sizeof(project), "p%u", (unsigned)(i % 40));
        struct store_change c = kit_create_change(w, url, project);
        struct store_answer answer = kit_apply(&k, &c);
        if (answer.status != STORE_OK) {
            ck_status(answer.status, STORE_FULL);
            return;
        }
        if (i % 4 == 0)
            kit_done(&k, answer.id, 1, (int)(i / 4 % 100));
        if (i % 50 == 0)
            kit_purge(&k, 200);
    }
}

/* Columns: the map, rows of a segment, the log's length that is merged, from how many bytes a part is in parts.dat */
static const struct {
    uint64_t map;
    uint32_t rows, entries, part_bytes;
} maps[] = {
    {(uint64_t)16 << 20, 1024, 64, 0},
    {(uint64_t)16 << 20, 256, 64, 1},
    {(uint64_t)32 << 20, 0, 1000, 0},
    {(uint64_t)64 << 20, 0, 4096, 0},
};

START_TEST(a_full_store_deletes_whatever_its_upkeep_is_at)
{
    kit_segment_rows = maps[_i].rows;
    kit_chunk_shift = 0;
    kit_log_entries = maps[_i].entries;
    kit_part_bytes = maps[_i].part_bytes;
    store_close(k.s);
    kit_remove(k.dir);
    kit_dir(k.dir);
    k.s = kit_store(k.dir, STORE_WRITE, maps[_i].map);
    uint64_t w = kit_workspace(&k, "full");
    fill(w);
    kit_good = 95; /* and rating has something to do, too */
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
        ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = id}), STORE_OK);
        kit_purge(&k, 200);
    }
    kit_check_clean(k.s);
    kit_create(&k, w, "https://a.com/", "a");
}
END_TEST

static bool pause_always(void *arg)
{
    ++*(unsigned *)arg;
    return true;
}

START_TEST(what_is_read_ahead_of_a_purge_is_what_it_deletes_and_pauses_end)
{
    enum { REPORTS = 300, LIMIT = 50 };
    unsigned pauses = 0, turns = 0, slices = 0;
    uint64_t w = kit_workspace(&k, "acme");
    for (int i = 0; i < REPORTS; i++)
        kit_create(&k, w, "https://a.com/x", i % 3 == 0 ? "stays.com" : "goes.com");
    kit_reopen(&k);
    ck_assert_uint_eq(store_purge_ahead(k.s, LIMIT, NULL, NULL), LIMIT);
    struct store_project p;
    ck_status(kit_project(k.s, w, "goes.com", &p), STORE_OK);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id}), STORE_OK);
    kit_reopen(&k);
    for (bool more = true; more; slices++) {
        size_t ready = 0;
        for (; ready == 0; turns++)
            ready = store_purge_ahead(k.s, LIMIT, pause_always, &pauses);
        ck_assert_uint_le(ready, LIMIT);
        ck_assert_uint_lt(turns, 10 * REPORTS);
        more = one_slice(ready);
    }
    ck_assert_uint_gt(pauses, 0);
    ck_assert_uint_gt(turns, slices); /* its index first */
    ck_assert_uint_gt(slices, REPORTS / 3);
    struct store_list_query q = {.workspace = w, .sort = REPORT_BY_ID, .page = 1, .per_page = 10};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 3);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

/* One CHANGE_PURGE that is to pause wherever it is asked; false when nothing was left. */
static bool paused_slice(unsigned *pauses)
{
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    store_txn_pause(t, pause_always, pauses);
    store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 1000}, k.now, &a);
    ck_status(store_commit(t), STORE_OK);
    if (a.status != STORE_NOT_FOUND)
        ck_status(a.status, STORE_OK);
    return a.status == STORE_OK;
}

static void delete_project(uint64_t w, const char *name)
{
    struct store_project p;
    ck_status(kit_project(k.s, w, name, &p), STORE_OK);
    uint64_t id = p.id;
    store_read_end(k.s);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = id}), STORE_OK);
}

static uint64_t records(void)
{
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    store_read_end(k.s);
    return u.reports + u.projects;
}

START_TEST(work_in_the_background_ends_its_slice_with_each_record_where_a_pause_is_due)
{
    enum { REPORTS = 200 };
    unsigned pauses = 0, slices = 0;
    uint64_t w = kit_workspace(&k, "acme");
    for (int i = 0; i < REPORTS; i++)
        kit_done(&k, kit_create(&k, w, "https://a.com/x", i % 2 ? "goes.com" : "stays.com"), 1, 60);
    kit_purge(&k, 1000);
    delete_project(w, "goes.com");
    kit_good = 55; /* and half of them are to be rated */
    kit_decent = 50;
    kit_reopen(&k);
    for (uint64_t before = records(), now; paused_slice(&pauses); before = now, slices++) {
        now = records();
        ck_assert_uint_le(before - now, 1);
        if (slices % 20 == 0)
            kit_check_clean(k.s);
    }
    ck_assert_uint_ge(slices, REPORTS / 2 + 1 + REPORTS / 2);
    ck_assert_uint_ge(pauses, REPORTS / 2 + 1 + REPORTS / 2);
    struct store_list_query q = {.workspace = w, .result = RESULT_GOOD, .page = 1, .per_page = 10};
    ck_assert_uint_eq(kit_reports(k.s, &q).total, REPORTS / 2);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

static struct store_upkeep upkeep_now(void)
{
    struct store_upkeep u;
    ck_status(store_upkeep(k.s, &u), STORE_OK);
    store_read_end(k.s);
    return u;
}

START_TEST(no_work_in_the_background_waits_for_the_end_of_another)
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
    ck_assert_str_eq(upkeep_now().what, "rating");
    ck_assert_uint_eq(upkeep_now().done, 0);
    ck_assert_uint_eq(upkeep_now().total, REPORTS);
    for (int i = 0; i < 4; i++) /* a step of each, and of merging what they logged */
        ck_assert(one_slice(10));
    ck_assert_uint_gt(upkeep_now().done, 0);
    ck_assert_uint_lt(records(), there);
    ck_assert_uint_gt(records(), REPORTS / 2 + 1);
    kit_purge(&k, 100);
    ck_assert_str_eq(upkeep_now().what, "");
    kit_good = 65; /* and bounds that come after others are told before the first step by them, too */
    kit_reopen(&k);
    ck_assert_str_eq(upkeep_now().what, "rating");
    ck_assert_uint_eq(upkeep_now().done, 0);
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

/* from how many bytes a part is in parts.dat */
static const uint32_t part_bytes[] = {UINT32_MAX, 1};

START_TEST(what_nobody_waits_for_is_synced_once_and_what_a_caller_waits_for_twice)
{
    kit_part_bytes = part_bytes[_i];
    kit_reopen(&k);
    uint64_t w = kit_workspace(&k, "acme");
    struct store_change create = kit_create_change(w, "https://a.com/", "a.com");
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(syncs_of(create), 2);
    unsigned before, steps = 0;
    do {
        bool waited; /* what is long is on the disk before the transaction that names it */
        ck_status(store_file_ahead(k.s, &waited), STORE_OK);
        before = syncs;
        if (!one_slice(5))
            break;
        ck_assert_uint_le(syncs - before, 1); /* none: it only looked */
        steps += syncs - before;
    } while (true);
    ck_assert_uint_ge(steps, 3);
    ck_assert_uint_eq(syncs_of(create), 2);
    struct store_txn *t; /* both in one: a caller waits */
    struct store_answer a;
    before = syncs;
    ck_status(store_begin(k.s, &t), STORE_OK);
    store_apply(t, &create, NOW, &a);
    store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 5}, NOW, &a);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(syncs - before, 2);
    kit_check_clean(k.s);
}
END_TEST

static bool never(void *arg)
{
    (void)arg;
    return false;
}

START_TEST(no_transaction_of_a_purge_makes_the_file_longer)
{
    enum { REPORTS = 3000 };
    struct stat before, after;
    char path[128];
    kit_part_bytes = UINT32_MAX; /* that needs room in it */
    kit_reopen(&k);
    uint64_t w = kit_workspace(&k, "acme");
    unsigned grown = 0;
    snprintf(path, sizeof(path), "%s/data.mdb", k.dir);
    for (int i = 0; i < REPORTS; i++)
        kit_create(&k, w, "https://a.com/a-path-of-some-length/that-fills-the-pages/of-a-store", i % 2 ? "a.com" : "b.com");
    delete_project(w, "a.com");
    for (bool more = true; more;) {
        bool longer;
        ck_status(store_file_ahead(k.s, &longer), STORE_OK);
        grown += longer;
        size_t ready = store_purge_ahead(k.s, 20, never, NULL);
        ck_assert_int_eq(stat(path, &before), 0);
        more = one_slice(ready);
        ck_assert_int_eq(stat(path, &after), 0);
        ck_assert_int_eq(before.st_size, after.st_size);
    }
    ck_assert_uint_ge(grown, 1);
    kit_check_clean(k.s);
}
END_TEST

/* The system tells of it once: whoever waits for the next commit would not hear of it. */
START_TEST(a_disk_that_loses_what_makes_the_file_longer_is_told_of)
{
    bool longer = false;
    uint64_t w = kit_workspace(&k, "acme");
    enum store_status status = STORE_OK;
    for (int i = 0; i < 20000 && status == STORE_OK && !longer; i++) {
        sync_fails = false;
        kit_create(&k, w, "https://a.com/a-path-of-some-length/that-fills-the-pages/of-a-store", "a.com");
        sync_fails = true;
        status = store_file_ahead(k.s, &longer);
    }
    sync_fails = false;
    ck_assert(longer);
    ck_status(status, STORE_IO);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "sync"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store upkeep");
    TCase *tc = tcase_create("upkeep");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_deleted_workspaces_index_goes_in_slices_of_any_size_cut_off_anywhere, 0, 5);
    tcase_add_test(tc, a_grade_by_the_bounds_of_before_is_brought_to_those_of_now);
    tcase_add_test(tc, what_is_read_ahead_of_a_purge_is_what_it_deletes_and_pauses_end);
    tcase_add_test(tc, rating_that_was_undone_is_not_taken_for_done);
    tcase_add_test(tc, work_in_the_background_ends_its_slice_with_each_record_where_a_pause_is_due);
    tcase_add_test(tc, no_work_in_the_background_waits_for_the_end_of_another);
    tcase_add_loop_test(tc, a_full_store_deletes_whatever_its_upkeep_is_at, 0, (int)(sizeof(maps) / sizeof(*maps)));
    tcase_add_loop_test(tc, what_nobody_waits_for_is_synced_once_and_what_a_caller_waits_for_twice, 0, 2);
    tcase_add_test(tc, no_transaction_of_a_purge_makes_the_file_longer);
    tcase_add_test(tc, a_disk_that_loses_what_makes_the_file_longer_is_told_of);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
