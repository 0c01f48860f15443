/*
 * Several processes on one LMDB environment: readers during writes, exhausted reader slots, a map
 * that grows, backups during writes.
 */
#include "t/kit/store_children.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- readers during writes ---- */

#define READERS 4
#define COMMITS 400

/*
 * Every snapshot of a reader must be consistent (totals, counters, newest report) and never older
 * than the one before.
 */
static void reader_run(int from, volatile uint64_t *stop)
{
    struct store *s = store_of(STORE_READ, 0, 0);
    uint64_t last = 0;
    (void)from;
    while (*stop == 0) {
        struct store_workspace w;
        struct store_project p;
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        struct store_list_query q = {.workspace = 1, .page = 1, .per_page = 5};
        struct kit_list l = kit_reports(s, &q);
        kit_assert(l.total == w.reports);
        kit_assert(w.reports >= last);
        if (w.reports > 0) {
            kit_assert(l.reports[0].id == w.reports);
            ck_status(kit_report(s, 1, w.reports, NULL), STORE_OK);
            ck_status(kit_report(s, 1, w.reports + 1, NULL), STORE_NOT_FOUND);
            ck_status(kit_project(s, 1, "a.com", &p), STORE_OK);
            kit_assert(p.reports == w.reports);
            q = (struct store_list_query){.workspace = 1,
                                          .sort = REPORT_BY_URL,
                                          .ascending = true,
                                          .search = STR("/Page/"),
                                          .page = w.reports,
                                          .per_page = 1};
            l = kit_reports(s, &q);
            kit_assert(l.total == w.reports && l.count == 1);
            kit_assert(l.reports[0].id == w.reports); /* URLs are in id order */
        }
        last = w.reports;
        store_read_end(s);
    }
    store_close(s);
}

START_TEST(readers_see_only_whole_transactions)
{
    struct child children[READERS];
    int from, to;
    volatile uint64_t *stop =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert((void *)(uintptr_t)stop != MAP_FAILED);
    kit_segment_rows = 200; /* merged repeatedly while readers read */
    kit_ngram_block_shift = 6;
    kit_log_entries = 20;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    store_close(k.s);
    k.s = NULL;
    for (int i = 0; i < READERS; i++) {
        if (child_start(&children[i], &from, &to)) {
            reader_run(from, stop);
            _exit(0);
        }
    }
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    for (int i = 0; i < COMMITS; i++) {
        struct store_txn *t;
        struct store_answer a;
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (int j = 0; j <= i % 7; j++) {
            char url[64];
            snprintf(url, sizeof(url), "https://a.com/page/%08d", i * 8 + j);
            struct store_change c = kit_create_change(1, url, "a.com");
            store_apply(t, &c, NOW, &a);
            ck_status(a.status, STORE_OK);
        }
        ck_status(store_commit(t), STORE_OK);
        kit_maintain(&k, 5, 1);
    }
    kit_check_clean(k.s);
    *stop = 1;
    for (int i = 0; i < READERS; i++)
        child_ends_well(&children[i]);
    munmap((void *)(uintptr_t)stop, 4096);
}
END_TEST

START_TEST(a_store_check_during_writes_finds_no_error)
{
    struct child c;
    int from, to;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        struct store_change done = {0};
        k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
        send_byte(to, 'r');
        fcntl(from, F_SETFL, O_NONBLOCK);
        for (uint64_t id = 1; receive(from) == 0; id++) {
            kit_create(&k, 1, "https://a.com/page", id % 50 ? "a.com" : "b.com");
            done = kit_done_change(id, 1, (int)(id % 101));
            if (id % 2)
                kit_apply(&k, &done);
            if (id % 3 == 0)
                kit_apply(&k, &(struct store_change){
                                  .kind = CHANGE_REPORT_DELETE, .workspace = 1, .id = id / 2 + 1});
        }
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    struct store *s = store_of(STORE_READ, 0, 0);
    for (int i = 0; i < 20; i++)
        kit_check_clean(s);
    send_byte(c.to, 's');
    child_ends_well(&c);
    kit_check_clean(s);
    store_close(s);
}
END_TEST

/* ---- exhaustion ---- */

START_TEST(a_read_without_a_reader_slot_is_busy_and_a_dead_readers_slot_is_reused)
{
    struct child children[2];
    int from, to;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 2);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = NULL;
    for (int i = 0; i < 2; i++) {
        if (child_start(&children[i], &from, &to)) {
            struct store *s = store_of(STORE_READ, 0, 2);
            ck_status(kit_get_workspace(s, 1, NULL), STORE_OK);
            send_byte(to, 'r');
            receive(from);
            _exit(0);
        }
        ck_assert_int_eq(receive(children[i].from), 'r');
    }
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = k.dir, .max_readers = 2, .mode = STORE_READ};
    ck_status(store_open(&o, &s, why, sizeof(why)), STORE_BUSY);
    ck_assert_ptr_nonnull(strstr(why, "slot"));
    kill(children[0].pid, SIGKILL);
    waitpid(children[0].pid, NULL, 0);
    ck_status(store_open(&o, &s, why, sizeof(why)), STORE_OK);
    ck_status(kit_get_workspace(s, 1, NULL), STORE_OK);
    ck_assert_uint_eq(store_reader_check(s), 0);
    store_close(s);
    send_byte(children[1].to, 's');
    child_ends_well(&children[1]);
}
END_TEST

/* ---- a map that grows ---- */

START_TEST(a_reader_follows_a_map_enlarged_by_another_process)
{
    struct child c;
    int from, to;
    unsigned made;
    k.s = store_of(STORE_WRITE, 1 << 20, 16);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        struct store *s = store_of(STORE_READ, 0, 0);
        struct store_workspace w;
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        kit_assert(w.reports == 0);
        store_read_end(s);
        send_byte(to, 'r');
        kit_assert(receive(from) == 'g');
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        kit_assert(w.reports > 100);
        for (uint64_t id = 1; id <= w.reports; id++)
            ck_status(kit_report(s, 1, id, NULL), STORE_OK);
        kit_check_clean(s);
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    ck_status(fill(1, &made).status, STORE_FULL);
    ck_assert_uint_gt(made, 300);
    send_byte(c.to, 'g');
    child_ends_well(&c);
}
END_TEST

START_TEST(a_smaller_configured_map_does_not_shrink_the_stored_one)
{
    struct store_usage u;
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = store_of(STORE_WRITE, 1 << 20, 16);
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.space.map_bytes, 16 << 20);
}
END_TEST

/* ---- backup and restore ---- */

static bool no_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return false;
}

struct seen {
    uint64_t calls, done, total;
};

static bool progress(void *arg, uint64_t done, uint64_t total)
{
    struct seen *s = arg;
    ck_assert_uint_ge(done, s->done);
    ck_assert_uint_ge(total, done);
    *s = (struct seen){s->calls + 1, done, total};
    return true;
}

START_TEST(a_backup_during_writes_is_one_snapshot_and_restores)
{
    struct child c;
    int from, to;
    char backup[64], fresh[64], why[512] = "";
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    kit_workspace(&k, "acme");
    for (int i = 0; i < 500; i++)
        kit_create(&k, 1, "https://a.com/page", "a.com");
    store_close(k.s);
    k.s = NULL;
    kit_dir(backup);
    kit_dir(fresh);
    if (child_start(&c, &from, &to)) {
        k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
        send_byte(to, 'r');
        fcntl(from, F_SETFL, O_NONBLOCK);
        while (receive(from) == 0)
            kit_create(&k, 1, "https://a.com/page", "a.com");
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    struct store *s = store_of(STORE_READ, 0, 0);
    struct seen seen = {0};
    ck_status(store_backup(s, backup, progress, &seen), STORE_OK);
    ck_assert_uint_gt(seen.calls, 0);
    ck_status(store_backup(s, backup, NULL, NULL), STORE_INVALID);
    ck_assert_ptr_nonnull(strstr(store_why(s), "empty"));
    send_byte(c.to, 's');
    child_ends_well(&c);
    store_close(s);
    seen = (struct seen){0};
    ck_assert_msg(store_restore(backup, fresh, progress, &seen, why, sizeof(why)) == STORE_OK, "%s",
                  why);
    ck_assert_uint_gt(seen.calls, 0);
    s = kit_store(fresh, STORE_WRITE, MAP_BYTES);
    kit_check_clean(s);
    struct store_workspace w;
    ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
    ck_assert_uint_ge(w.reports, 500);
    store_close(s);
    kit_remove(backup);
    kit_remove(fresh);
}
END_TEST

static bool fill_between(void *arg, uint64_t done, uint64_t total)
{
    unsigned made;
    (void)done;
    (void)total;
    if (*(int *)arg == 0)
        ck_status(fill(1, &made).status, STORE_FULL);
    *(int *)arg = 1;
    return true;
}

START_TEST(a_backup_stops_before_the_writer_runs_out_of_pages)
{
    char backup[64], path[128];
    int filled = 0;
    kit_dir(backup);
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    ck_status(store_backup(k.s, backup, fill_between, &filled), STORE_FULL);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "cancelled"));
    snprintf(path, sizeof(path), "%s/data.mdb", backup);
    ck_assert_int_ne(access(path, F_OK), 0);
    kit_remove(backup);
}
END_TEST

START_TEST(a_restore_keeps_the_old_store_and_refuses_one_in_use_or_a_damaged_backup)
{
    char backup[64], path[128], why[512] = "";
    struct child c;
    int from, to;
    struct stat st;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_create(&k, w, "https://a.com/1", "a.com");
    kit_dir(backup);
    ck_status(store_backup(k.s, backup, no_progress, NULL), STORE_IO);
    ck_status(store_backup(k.s, backup, NULL, NULL), STORE_OK);
    kit_create(&k, w, "https://a.com/2", "a.com");
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        k.s = store_of(STORE_READ, 0, 0);
        send_byte(to, 'r');
        receive(from);
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    ck_status(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)), STORE_BUSY);
    ck_assert_ptr_nonnull(strstr(why, "in use"));
    send_byte(c.to, 's');
    child_ends_well(&c);
    ck_assert_msg(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)) == STORE_OK, "%s",
                  why);
    snprintf(path, sizeof(path), "%s/data.mdb.before-restore", k.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    struct store_workspace got;
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 1);
    store_close(k.s);
    k.s = NULL;
    snprintf(path, sizeof(path), "%s/data.mdb", backup);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, "damaged", 7, 3 * 4096 + 16), 7);
    close(fd);
    ck_status(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)), STORE_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why, "damaged"));
    ck_status(store_restore(k.dir, "/nonexistent", NULL, NULL, why, sizeof(why)), STORE_NOT_FOUND);
    ck_status(store_restore("/nonexistent", k.dir, NULL, NULL, why, sizeof(why)), STORE_NOT_FOUND);
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 1);
    kit_remove(backup);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_processes");
    TCase *tc = tcase_create("processes");
    tcase_add_checked_fixture(tc, children_setup, children_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, readers_see_only_whole_transactions, 0, 2);
    tcase_add_test(tc, a_store_check_during_writes_finds_no_error);
    tcase_add_test(tc, a_read_without_a_reader_slot_is_busy_and_a_dead_readers_slot_is_reused);
    tcase_add_test(tc, a_reader_follows_a_map_enlarged_by_another_process);
    tcase_add_test(tc, a_smaller_configured_map_does_not_shrink_the_stored_one);
    tcase_add_test(tc, a_backup_during_writes_is_one_snapshot_and_restores);
    tcase_add_test(tc, a_backup_stops_before_the_writer_runs_out_of_pages);
    tcase_add_test(tc, a_restore_keeps_the_old_store_and_refuses_one_in_use_or_a_damaged_backup);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
