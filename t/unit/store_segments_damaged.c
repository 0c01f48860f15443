/* Damaged and missing segment files: what is detected, what lists do, and how they are rebuilt. */
#include "t/kit/store_segments.h"
#include "store/engine/snapshot.h"
#include "store/index/merge.h"
#include "store/index/context_internal.h"
#include "store/index/snapshot.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- damage ---- */

static void flip(const char *path, off_t at, int bit)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= (uint8_t)(1 << bit);
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* For any flipped bit, check names the file once, and a list is the same or reports damage. */
START_TEST(any_flipped_bit_is_detected_and_changes_no_list)
{
    enum { FLIPS = 150 };
    struct stat st;
    uint64_t right[1000], now[1000];
    uint64_t seed = 42;
    create(100);
    kit_purge(&k, 100);
    size_t count = list_all(k.s, right, 1000);
    char *path = strdup(first_file());
    ck_assert_int_eq(stat(path, &st), 0);
    store_close(k.s);
    for (int i = 0; i < FLIPS; i++) {
        off_t at = (off_t)(kit_random(&seed) % (uint64_t)st.st_size);
        int bit = (int)(kit_random(&seed) % 8);
        flip(path, at, bit);
        struct store *s = kit_store(k.dir, STORE_READ, 0);
        bool unused = at >= 200 && at < SEGMENT_HEAD_BYTES; /* zeros after the head */
        ck_assert(unused || kit_problems(s) == 1);
        ck_assert(unused || strstr(kit_problem, path) != NULL);
        store_close(s);
        s = kit_store(k.dir, STORE_READ, 0);
        for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
            struct store_list_query q = {.workspace = w, .sort = sort, .page = 1, .per_page = 1000};
            struct kit_list l = kit_reports(s, &q);
            if (l.status != STORE_DAMAGED) {
                ck_status(l.status, STORE_OK);
                ck_assert_uint_eq(l.count, 100);
                for (size_t j = 0; j < l.count; j++)
                    now[j] = l.reports[j].id;
                ck_assert_int_eq(memcmp(now, right + sort * 100, sizeof(*now) * 100), 0);
            }
            store_read_end(s);
        }
        store_close(s);
        flip(path, at, bit);
    }
    ck_assert_uint_eq(count, 400);
    free(path);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    kit_check_clean(k.s);
}
END_TEST

static void delete_it(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

static void cut_it(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
}

static void empty_it(const char *path)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}

static void swap_it(const char *path)
{
    struct files f = files();
    char *other = strdup(path_of(f.workspace[1], f.number[1]));
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(link(path, other), 0);
    free(other);
}

static void flip_it(const char *path)
{
    flip(path, SEGMENT_HEAD_BYTES + 300, 1);
}

static void (*const damages[])(const char *path) = {delete_it, cut_it, empty_it, swap_it, flip_it};

START_TEST(a_damaged_segment_is_named_and_rebuilt_from_the_reports)
{
    uint64_t right[4000], now[4000];
    create(200);
    for (uint64_t id = 1; id <= 150; id++)
        kit_done(&k, id, 1, (int)(id % 101));
    kit_purge(&k, 100);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = 5}),
        STORE_OK);
    size_t count = list_all(k.s, right, 4000);
    index_snapshot_forget(k.s);
    char *path = strdup(first_file());
    damages[_i](path);
    ck_status(list_status(k.s, REPORT_BY_SCORE, ""), STORE_DAMAGED);
    ck_assert_msg(strstr(store_why(k.s), path) != NULL, "%s", store_why(k.s));
    struct store_change lost = {
        .kind = CHANGE_INDEX_LOST, .workspace = w, .id = store_lost_segment(k.s)};
    ck_status(kit_status(&k, &lost), STORE_OK);
    ck_status(kit_status(&k, &lost), STORE_STALE); /* it is not in use */
    ck_status(list_status(k.s, REPORT_BY_ID, ""), STORE_REBUILDING);
    kit_check_clean(k.s);
    /* changes during that time are in the tail, also to reports that are being read */
    create(30);
    kit_done(&k, 170, 1, 77);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = 7}),
        STORE_OK);
    kit_purge(&k, 100);
    kit_check_clean(k.s);
    ck_assert_uint_eq(list_all(k.s, now, 4000), count + 4 * (30 - 1));
    ck_assert_int_ne(access(path, F_OK), 0);
    free(path);
}
END_TEST

START_TEST(damage_to_a_verified_block_is_found_by_a_reader_that_has_the_file_mapped)
{
    struct stat st;
    create(200);
    kit_purge(&k, 100);
    ck_status(list_status(k.s, REPORT_BY_URL, "page"), STORE_OK); /* verifies the n-gram blocks */
    struct files f = files();
    const char *path = path_of(w, f.number[f.count / 2]);
    ck_assert_int_eq(stat(path, &st), 0);
    flip(path, st.st_size - 100, 1); /* in the last n-gram block */
    ck_status(list_status(k.s, REPORT_BY_URL, ""), STORE_OK);
    for (unsigned i = 0; i < STORE_TIDY_TURNS; i++)
        ck_assert(store_tidy(k.s));
    ck_status(list_status(k.s, REPORT_BY_URL, ""), STORE_DAMAGED);
    ck_assert_uint_eq(store_lost_segment(k.s), f.number[f.count / 2]);
}
END_TEST

START_TEST(a_merge_copies_no_block_that_was_damaged_after_it_was_verified)
{
    uint64_t ids[4000];
    struct store *reader;
    struct builder b;
    struct buf out = {0};
    char why[512];
    kit_segment_rows = 512;
    kit_reopen(&k);
    create(100);
    kit_purge(&k, 100);
    list_all(k.s, ids, 4000);
    ck_status(store_share(k.s, &reader, why, sizeof(why)), STORE_OK);
    create(100);
    flip_it(first_file());
    builder_init(&b, reader, w);
    ck_status(merge_make(&b, &out), STORE_DAMAGED);
    builder_undo(&b);
    builder_free(&b);
    buf_free(&out);
    store_close(reader);
    kit_purge(&k, 100);
    ck_assert_uint_eq(list_all(k.s, ids, 4000), 800);
    kit_check_clean(k.s);
}
END_TEST

static void spoil_head(struct store_txn *t, struct key *key)
{
    txn_put(t, SPACE_REPORT, key, "no head", 7);
}

static void delete_head(struct store_txn *t, struct key *key)
{
    txn_del(t, SPACE_REPORT, key);
}

static void (*const head_damages[])(struct store_txn *t, struct key *key) = {spoil_head,
                                                                             delete_head};

START_TEST(a_list_with_a_damaged_head_rebuilds_the_index_without_its_report)
{
    uint64_t ids[4000];
    struct store_txn *t;
    struct key key;
    create(200);
    kit_purge(&k, 100);
    key_id(&key, SPACE_REPORT, 9);
    ck_status(store_begin(k.s, &t), STORE_OK);
    head_damages[_i](t, &key);
    ck_status(store_commit(t), STORE_OK);
    ck_status(list_status(k.s, REPORT_BY_ID, ""), STORE_DAMAGED);
    ck_assert_msg(strstr(store_why(k.s), "report 9,") != NULL, "%s", store_why(k.s));
    struct store_change lost = {
        .kind = CHANGE_INDEX_LOST, .workspace = w, .id = store_lost_segment(k.s)};
    ck_assert_uint_eq(lost.id, 0);
    ck_status(kit_status(&k, &lost), STORE_OK);
    kit_purge(&k, 100);
    ck_assert_uint_eq(list_all(k.s, ids, 4000), 4 * (200 - 1));
    ck_assert_uint_gt(kit_problems(k.s), 0);
}
END_TEST

START_TEST(missing_files_are_found_at_startup)
{
    uint64_t ids[4000];
    create(200);
    kit_purge(&k, 100);
    struct files f = files();
    for (size_t i = 0; i < f.count; i++)
        ck_assert_int_eq(unlink(path_of(f.workspace[i], f.number[i])), 0);
    kit_reopen(&k);
    ck_assert_uint_ge(kit_maintain(&k, 100, 1), 1);
    ck_status(list_status(k.s, REPORT_BY_ID, ""), STORE_REBUILDING);
    kit_purge(&k, 100);
    ck_assert_uint_eq(list_all(k.s, ids, 4000), 800);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_project_is_purged_after_its_index_is_rebuilt)
{
    struct store_project p;
    create(200);
    kit_purge(&k, 100);
    ck_status(kit_project(k.s, w, "b.com", &p), STORE_OK);
    struct store_change del = {.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id};
    ck_status(kit_status(&k, &del), STORE_OK);
    delete_it(first_file());
    kit_reopen(&k);
    kit_purge(&k, 10);
    kit_check_clean(k.s);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.projects, 1);
}
END_TEST

/* A full disk, and a file size limit. */
START_TEST(a_failed_file_write_leaves_no_file_and_lists_work)
{
    uint64_t ids[4000];
    struct rlimit limit, small;
    create(200);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 8192;
    struct store *reader;
    struct builder b;
    struct buf out = {0};
    char why[512];
    ck_status(store_share(k.s, &reader, why, sizeof(why)), STORE_OK);
    builder_init(&b, reader, w);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum store_status status = merge_make(&b, &out);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_status(status, STORE_FULL);
    builder_undo(&b);
    builder_free(&b);
    buf_free(&out);
    store_close(reader);
    ck_assert_uint_eq(files().count, 0);
    ck_assert_uint_eq(list_all(k.s, ids, 4000), 800);
    kit_purge(&k, 100);
    ck_assert_uint_eq(list_all(k.s, ids, 4000), 800);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_segments_damaged");
    TCase *tc = tcase_create("segments");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, any_flipped_bit_is_detected_and_changes_no_list);
    tcase_add_loop_test(tc, a_damaged_segment_is_named_and_rebuilt_from_the_reports, 0,
                        (int)(sizeof(damages) / sizeof(*damages)));
    tcase_add_test(tc, damage_to_a_verified_block_is_found_by_a_reader_that_has_the_file_mapped);
    tcase_add_test(tc, a_merge_copies_no_block_that_was_damaged_after_it_was_verified);
    tcase_add_loop_test(tc, a_list_with_a_damaged_head_rebuilds_the_index_without_its_report, 0,
                        sizeof(head_damages) / sizeof(head_damages[0]));
    tcase_add_test(tc, missing_files_are_found_at_startup);
    tcase_add_test(tc, a_project_is_purged_after_its_index_is_rebuilt);
    tcase_add_test(tc, a_failed_file_write_leaves_no_file_and_lists_work);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
