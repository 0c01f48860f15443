/*
 * A backup is data.mdb alone, also with segment files and during writes. A restore rebuilds the
 * segment files and keeps all records.
 */
#include "t/kit/store.h"

#include "store/index/segment_file_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORTS 400

static struct kit k;
static uint64_t w;
static char copy[64], why[512];

static struct store_txn *begin(void)
{
    struct store_txn *t;
    ck_status(store_begin(k.s, &t), STORE_OK);
    return t;
}

/*
 * In one transaction every report gets the score of the round, so that all scores are equal in any
 * state.
 */
static void grade_all(unsigned round)
{
    struct store_answer a;
    struct store_txn *t = begin();
    for (uint64_t id = 1; id <= REPORTS; id++) {
        struct store_change c = {
            .kind = CHANGE_REPORT_UPDATE, .workspace = w, .id = id, .fields = CHANGE_REGENERATE};
        if (round != 0)
            store_apply(t, &c, k.now, &a);
        c = kit_done_change(id, round + 1, (int)(round % 101));
        store_apply(t, &c, k.now + round, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
}

static struct ulid agent;

/* Its texts, and its row in the log of changed documents. */
static void put_document(uint64_t number)
{
    struct buf rows = {0};
    char text[4000];
    uint8_t hash[16] = {(uint8_t)number};
    size_t n = 0;
    for (unsigned i = 0; i < 600; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " w%u", i);
    const struct store_synced d = {.title = STR("A document"),
                                   .text = {text, n},
                                   .url = STR("https://a.com/"),
                                   .price = MONEY_NONE};
    sync_pack(&rows, SYNC_UPSERT, number, hash, 0, &d);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_SYNC,
                                                    .workspace = w,
                                                    .agent = agent,
                                                    .name = STR("a.com"),
                                                    .status = SYNCED_POST,
                                                    .text = STR(""),
                                                    .data = buf_view(&rows)}),
              STORE_OK);
    buf_free(&rows);
}

static void setup(void)
{
    struct store_answer a;
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 20;
    kit_open(&k);
    kit_dir(copy);
    w = kit_workspace(&k, "acme");
    agent = kit_agent(&k, w, "{}");
    struct store_txn *t = begin();
    for (unsigned i = 0; i < REPORTS; i++) {
        char url[64];
        snprintf(url, sizeof(url), "https://a.com/page/%u", i * 7 % REPORTS);
        struct store_change c = kit_create_change(w, url, i % 2 ? "a.com" : "b.com");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    grade_all(0);
    put_document(1);
    kit_purge(&k, 50);
}

static void teardown(void)
{
    kit_close(&k);
    kit_remove(copy);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}

static bool there(const char *dir, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void move(const char *from, const char *name, const char *to, const char *as)
{
    char old[128], new[128];
    snprintf(old, sizeof(old), "%s/%s", from, name);
    snprintf(new, sizeof(new), "%s/%s", to, as);
    ck_assert_int_eq(rename(old, new), 0);
}

static void count_document(void *arg, enum store_status status, const struct store_synced *document)
{
    size_t *count = arg;
    ck_status(status, document != NULL ? STORE_OK : STORE_NOT_FOUND);
    *count += document != NULL;
}

static void note_found(void *arg, enum store_status status, const struct store_found *found)
{
    ck_status(status, STORE_OK);
    *(struct store_found *)arg = *found;
}

static struct store_found find_document(void)
{
    struct store_found found;
    const struct store_question q = {
        .agent = agent, .text = STR("w17 w599"), .limit = 4, .excerpt_bytes = 80};
    store_find(k.s, &q, note_found, &found);
    store_read_end(k.s);
    return found;
}

/*
 * Every report, all with one score, sorted, and found by search; and the document. Returns the
 * score.
 */
static int expect_whole(struct store *s)
{
    struct store_list_query q = {
        .workspace = w, .sort = REPORT_BY_URL, .ascending = true, .page = 1, .per_page = REPORTS};
    struct kit_list l = kit_reports(s, &q);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, REPORTS);
    ck_assert_uint_eq(l.count, REPORTS);
    int score = l.reports[0].score;
    for (size_t i = 0; i < l.count; i++) {
        kit_assert(l.reports[i].score == score);
        kit_assert(i == 0 || memcmp(l.reports[i - 1].url.p, l.reports[i].url.p, 19) <= 0);
    }
    q.search = STR("AGE/39");
    ck_assert_uint_eq(kit_reports(s, &q).total, 11);
    size_t documents = 0;
    store_synced_each(s, &agent, SYNCED_POST, count_document, &documents);
    ck_assert_uint_eq(documents, 1);
    store_read_end(s);
    kit_check_clean(s);
    return score;
}

static bool count_file(void *arg, uint64_t workspace, uint64_t number)
{
    (void)workspace;
    (void)number;
    ++*(size_t *)arg;
    return true;
}

static size_t segment_files(const char *dir)
{
    size_t count = 0;
    ck_assert_int_eq(segment_file_each(dir, count_file, &count), 0);
    return count;
}

/* The copy as a store by itself: read, written to, and merged after its indexes are built. */
static int expect_copy(int round)
{
    ck_assert(there(copy, "data.mdb") && !there(copy, "index") && !there(copy, "data.mdb.part"));
    struct store *ours = k.s;
    k.s = kit_store(copy, STORE_WRITE, MAP_BYTES);
    ck_assert_uint_eq(kit_problems(k.s), 1);
    ck_assert_msg(strstr(kit_problem, "is missing") != NULL, "%s", kit_problem);
    kit_purge(&k, 50);
    int score = expect_whole(k.s);
    ck_assert_uint_gt(segment_files(copy), 0);
    grade_all((unsigned)round + 1);
    kit_purge(&k, 50);
    ck_assert_int_eq(expect_whole(k.s), round + 1);
    store_close(k.s);
    k.s = ours;
    return score;
}

struct seen {
    uint64_t calls, done, total;
};

static bool progress(void *arg, uint64_t done, uint64_t total)
{
    struct seen *s = arg;
    kit_assert(done >= s->done && total >= done);
    *s = (struct seen){s->calls + 1, done, total};
    return true;
}

START_TEST(a_backup_is_data_mdb_alone_and_opens_as_a_store)
{
    struct seen seen = {0};
    grade_all(1);
    kit_purge(&k, 50);
    ck_assert_uint_gt(segment_files(k.dir), 0);
    ck_status(store_backup(k.s, copy, progress, &seen), STORE_OK);
    ck_assert_uint_gt(seen.calls, 1);
    ck_assert_int_eq(expect_copy(1), 1);
    ck_assert_int_eq(expect_whole(k.s), 1);
}
END_TEST

static bool until(void *arg, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return --*(int *)arg > 0;
}

START_TEST(a_stopped_backup_leaves_no_file)
{
    int left = _i + 1;
    enum store_status status = store_backup(k.s, copy, until, &left);
    if (left > 0) {
        ck_status(status, STORE_OK);
        ck_assert_int_ge(_i, 1); /* it was reported more than once */
        return;
    }
    ck_status(status, STORE_IO);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "stopped"));
    ck_assert(!there(copy, "data.mdb") && !there(copy, "data.mdb.part"));
    expect_whole(k.s);
}
END_TEST

static int open_part(size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb.part", copy);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    return fd;
}

START_TEST(a_backup_replaces_the_file_of_a_killed_one_but_not_of_a_running_one)
{
    enum { MORE_THAN_THE_STORE = 64 << 20 };
    int other = open_part(MORE_THAN_THE_STORE);
    grade_all(1);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    ck_status(store_backup(k.s, copy, NULL, NULL), STORE_IO);
    ck_assert_msg(strstr(store_why(k.s), "another backup writes to") != NULL, "%s", store_why(k.s));
    ck_assert(there(copy, "data.mdb.part"));
    close(other);
    ck_status(store_backup(k.s, copy, NULL, NULL), STORE_OK);
    ck_assert(!there(copy, "data.mdb.part"));
    expect_copy(1);
}
END_TEST

START_TEST(a_backup_during_merges_is_one_snapshot)
{
    int up[2], status;
    char c;
    volatile int *stop = kit_shared(sizeof(*stop));
    store_close(k.s);
    k.s = NULL;
    ck_assert_int_eq(pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        kit_child();
        k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
        for (unsigned round = 1; *stop == 0; round++) {
            grade_all(round);
            kit_maintain(&k, 10, 20);
            if (round == 2)
                kit_assert(write(up[1], "r", 1) == 1);
        }
        store_close(k.s);
        _exit(0);
    }
    ck_assert_int_eq(read(up[0], &c, 1), 1);
    int last = 0;
    for (int i = 0; i < 5; i++) {
        k.s = kit_store(k.dir, STORE_READ, 0);
        struct kit_list l =
            kit_reports(k.s, &(struct store_list_query){.workspace = w, .page = 1, .per_page = 1});
        ck_status(l.status, STORE_OK);
        int before = (int)l.reports[0].attempt;
        store_read_end(k.s);
        ck_status(store_backup(k.s, copy, NULL, NULL), STORE_OK);
        store_close(k.s);
        struct store *s = kit_store(copy, STORE_WRITE, MAP_BYTES);
        ck_status(store_rebuild(s, false, NULL, NULL), STORE_OK);
        l = kit_reports(s,
                        &(struct store_list_query){.workspace = w, .page = 1, .per_page = REPORTS});
        ck_assert_uint_eq(l.count, REPORTS);
        last = (int)l.reports[0].attempt;
        ck_assert_int_ge(last, before);
        for (size_t j = 0; j < l.count; j++)
            kit_assert((int)l.reports[j].attempt == last);
        expect_whole(s);
        store_close(s);
        kit_remove(copy);
        kit_dir(copy);
    }
    k.s = NULL;
    *stop = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(last, 2);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    expect_whole(k.s);
}
END_TEST

/* ---- restore ---- */

/* A backup of round 1, and a store in round 2. */
static void back_up_and_go_on(void)
{
    grade_all(1);
    kit_purge(&k, 50);
    ck_status(store_backup(k.s, copy, NULL, NULL), STORE_OK);
    grade_all(2);
    kit_purge(&k, 50);
    ck_assert_uint_gt(segment_files(k.dir), 0);
    store_close(k.s);
    k.s = NULL;
}

static void restore(void)
{
    ck_assert_msg(store_restore(copy, k.dir, NULL, NULL, why, sizeof(why)) == STORE_OK, "%s", why);
}

static bool exit_halfway(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    raise(SIGKILL);
    return false;
}

static void open_and_go_on(int score)
{
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_assert_int_eq(expect_whole(k.s), score);
    grade_all((unsigned)score + 1);
    kit_purge(&k, 50);
    ck_assert_int_eq(expect_whole(k.s), score + 1);
    ck_assert_uint_gt(segment_files(k.dir), 0);
    store_close(k.s);
    k.s = NULL;
}

/* Another workspace, with enough reports for segment files. */
static void make_large(void)
{
    enum { LARGE = 5000 };
    struct store_answer a;
    uint64_t large = kit_workspace(&k, "large");
    struct store_txn *t = begin();
    for (unsigned i = 0; i < LARGE; i++) {
        struct store_change c = kit_create_change(large, "https://large.example/", "large.example");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
}

START_TEST(a_restore_builds_segment_files_and_keeps_the_old_store)
{
    make_large();
    back_up_and_go_on();
    size_t before = segment_files(k.dir);
    restore();
    ck_assert(there(k.dir, "data.mdb.before-restore") && !there(k.dir, "restore.part"));
    /* of the large workspace, with the usual sizes */
    ck_assert_uint_eq(segment_files(k.dir), before + 1);
    struct store *s = kit_store(k.dir, STORE_READ, 0); /* nothing is left to build */
    ck_assert_int_eq(expect_whole(s), 1);
    store_close(s);
    open_and_go_on(1);
    move(k.dir, "data.mdb.before-restore", k.dir, "data.mdb");
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    kit_purge(&k, 50); /* its segment files were deleted, and are rebuilt */
    store_close(k.s);
    open_and_go_on(2);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
}
END_TEST

START_TEST(a_second_restore_keeps_the_first_restored_store)
{
    back_up_and_go_on();
    restore();
    restore();
    ck_assert(there(k.dir, "data.mdb.before-restore"));
    open_and_go_on(1);
    restore();
    open_and_go_on(1);
    ck_assert(there(k.dir, "data.mdb.before-restore-1") &&
              there(k.dir, "data.mdb.before-restore-2"));
    move(k.dir, "data.mdb.before-restore", k.dir, "data.mdb");
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_status(store_rebuild(k.s, false, NULL, NULL), STORE_OK);
    store_close(k.s);
    open_and_go_on(2);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
}
END_TEST

START_TEST(the_next_restore_removes_files_of_a_killed_one)
{
    char part[80];
    back_up_and_go_on();
    snprintf(part, sizeof(part), "%s/restore.part", k.dir);
    pid_t pid = fork();
    if (pid == 0) {
        store_restore(copy, k.dir, exit_halfway, NULL, why, sizeof(why));
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && there(part, "data.mdb") && there(part, "lock.mdb"));
    open_and_go_on(2);
    restore();
    ck_assert(!there(k.dir, "restore.part"));
    open_and_go_on(1);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
}
END_TEST

START_TEST(data_mdb_of_a_stopped_store_is_a_backup)
{
    back_up_and_go_on();
    kit_remove(copy);
    kit_dir(copy);
    move(k.dir, "data.mdb", copy, "data.mdb");
    restore();
    open_and_go_on(2);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
}
END_TEST

START_TEST(a_backup_excludes_answer_files_and_a_restore_rebuilds_them)
{
    kit_follow(&k, 1000);
    ck_assert_uint_eq(find_document().count, 1);
    back_up_and_go_on();
    ck_assert(!there(copy, "answers"));
    restore();
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_assert_uint_eq(find_document().count, 0); /* the existing file belongs to the other store */
    ck_assert_uint_eq(find_document().lost, 1);
    kit_follow(&k, 1000);
    ck_assert_uint_eq(find_document().count, 1);
    expect_whole(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_backup");
    TCase *tc = tcase_create("backup");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_backup_is_data_mdb_alone_and_opens_as_a_store);
    tcase_add_loop_test(tc, a_stopped_backup_leaves_no_file, 0, 5);
    tcase_add_test(tc, a_backup_replaces_the_file_of_a_killed_one_but_not_of_a_running_one);
    tcase_add_test(tc, a_backup_during_merges_is_one_snapshot);
    tcase_add_test(tc, a_restore_builds_segment_files_and_keeps_the_old_store);
    tcase_add_test(tc, a_second_restore_keeps_the_first_restored_store);
    tcase_add_test(tc, the_next_restore_removes_files_of_a_killed_one);
    tcase_add_test(tc, data_mdb_of_a_stopped_store_is_a_backup);
    tcase_add_test(tc, a_backup_excludes_answer_files_and_a_restore_rebuilds_them);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
