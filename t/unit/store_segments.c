/*
 * Segment files of the report index: which exist, when they are deleted, and what damage does.
 * Lists and merges are in store_lists and store_model.
 */
#include "t/kit/store.h"

#include "store/engine/snapshot.h"
#include "store/index/merge.h"
#include "store/index/context_internal.h"
#include "store/index/snapshot.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kit k;
static uint64_t w;

static void setup(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 16;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = kit_small_rows = 0;
}

/* ---- files ---- */

struct files {
    size_t count;
    uint64_t workspace[256], number[256];
};

static bool note_file(void *arg, uint64_t workspace, uint64_t number)
{
    struct files *f = arg;
    kit_assert(f->count < 256);
    f->workspace[f->count] = workspace;
    f->number[f->count++] = number;
    return true;
}

static struct files files(void)
{
    struct files f = {0};
    ck_assert_int_eq(segment_file_each(k.dir, note_file, &f), 0);
    return f;
}

static char *path_of(uint64_t workspace, uint64_t number)
{
    static char path[SEGMENT_PATH_BYTES];
    segment_file_path(k.dir, workspace, number, path);
    return path;
}

static char *first_file(void)
{
    struct files f = files();
    ck_assert_uint_ge(f.count, 1);
    return path_of(f.workspace[0], f.number[0]);
}

/* ---- reports ---- */

static void create(unsigned count)
{
    char url[64];
    static unsigned number;
    for (unsigned i = 0; i < count; i++, number++) {
        snprintf(url, sizeof(url), "https://a.com/page/%u", number * 7919 % 100000);
        kit_create(&k, w, url, number % 3 == 0 ? "a.com" : "b.com");
    }
}

/* The first page of every sort, one after the other. */
static size_t list_all(struct store *s, uint64_t *ids, size_t room)
{
    size_t n = 0;
    for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
        struct store_list_query q = {.workspace = w, .sort = sort, .page = 1, .per_page = 1000};
        struct kit_list l = kit_reports(s, &q);
        ck_status(l.status, STORE_OK);
        for (size_t i = 0; i < l.count; i++) {
            kit_assert(n < room);
            ids[n++] = l.reports[i].id;
        }
        store_read_end(s);
    }
    return n;
}

static enum store_status list_status(struct store *s, unsigned sort, const char *search)
{
    struct store_list_query q = {
        .workspace = w, .sort = sort, .page = 1, .per_page = 1000, .search = str_of(search)};
    enum store_status status = kit_reports(s, &q).status;
    store_read_end(s);
    return status;
}

/* ---- merging ---- */

START_TEST(segments_of_similar_size_merge_and_others_stay)
{
    enum { ROUNDS = 60, A_ROUND = 20 };
    struct stat st;
    uint64_t written = 0, rows = 0;
    struct files before = {0};
    kit_segment_rows = 512;
    kit_reopen(&k);
    for (unsigned round = 0; round < ROUNDS; round++) {
        create(A_ROUND);
        kit_purge(&k, 100);
        struct files now = files();
        for (size_t i = 0; i < now.count; i++) {
            bool old = false;
            for (size_t j = 0; j < before.count; j++)
                old = old || before.number[j] == now.number[i];
            ck_assert_int_eq(stat(path_of(now.workspace[i], now.number[i]), &st), 0);
            written += old ? 0 : 1;
        }
        before = now;
        rows += A_ROUND;
        /* that many of 512 rows, and among partly filled ones each twice as large as the next */
        ck_assert_uint_le(now.count, rows / 256 + 10);
        kit_check_clean(k.s);
    }
    ck_assert_uint_ge(written, ROUNDS / 2);
    ck_assert_uint_le(written, 2 * ROUNDS);
}
END_TEST

START_TEST(a_workspace_has_a_file_only_while_it_is_large)
{
    struct store_project p;
    kit_small_rows = 50;
    kit_reopen(&k);
    create(49);
    for (unsigned i = 0; i < 200; i++) { /* the tail grows by changes only */
        kit_done(&k, 1 + i % 49, 1 + i / 49, (int)(i % 100));
        struct store_change again = {.kind = CHANGE_REPORT_UPDATE,
                                     .workspace = w,
                                     .id = 1 + i % 49,
                                     .fields = CHANGE_REGENERATE};
        ck_status(kit_status(&k, &again), STORE_OK);
        kit_purge(&k, 100);
        ck_assert_uint_eq(files().count, 0);
    }
    kit_check_clean(k.s);
    create(60);
    kit_purge(&k, 100);
    ck_assert_uint_ge(files().count, 1);
    ck_status(kit_project(k.s, w, "b.com", &p), STORE_OK);
    struct store_change del = {.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id};
    ck_status(kit_status(&k, &del), STORE_OK);
    kit_purge(&k, 100);
    kit_check_clean(k.s);
    ck_assert_uint_eq(files().count, 0);
}
END_TEST

START_TEST(a_merge_over_a_changed_manifest_is_refused_and_leaves_no_file)
{
    struct buf out = {0};
    struct store *reader;
    struct builder b;
    char why[512];
    create(100);
    ck_status(store_share(k.s, &reader, why, sizeof(why)), STORE_OK);
    builder_init(&b, reader, w);
    ck_status(merge_make(&b, &out), STORE_OK);
    size_t made = files().count;
    ck_assert_uint_eq(made, 2);
    kit_purge(&k, 100); /* another merge comes first, and sees unreferenced files */
    struct store_change install = {
        .kind = CHANGE_INDEX_INSTALL, .workspace = w, .data = buf_view(&out)};
    ck_status(kit_status(&k, &install), STORE_STALE);
    builder_undo(&b);
    builder_free(&b);
    buf_free(&out);
    store_close(reader);
    ck_assert_uint_eq(files().count, 2);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_malformed_install_is_refused_and_changes_nothing)
{
    struct index_install head = {.version = 0, .log_from = 1, .removed = 1};
    create(3);
    struct store_change install = {.kind = CHANGE_INDEX_INSTALL,
                                   .workspace = w,
                                   .data = {(const char *)&head, sizeof(head) - 1}};
    ck_status(kit_status(&k, &install), STORE_INVALID);
    install.data.n++;
    ck_status(kit_status(&k, &install), STORE_CORRUPT);
    head.removed = 0;
    head.pieces = 1;
    ck_status(kit_status(&k, &install), STORE_CORRUPT);
    kit_check_clean(k.s);
}
END_TEST

/* ---- deletion ---- */

START_TEST(a_merged_file_stays_while_a_process_may_read_it)
{
    int go[2], reported[2], status;
    char c = 0;
    kit_segment_rows = 512;
    kit_reopen(&k);
    create(100);
    kit_purge(&k, 100);
    struct files before = files();
    ck_assert_int_eq(pipe(go) + pipe(reported), 0);
    pid_t pid = fork();
    if (pid == 0) {
        MDB_txn *txn;
        uint64_t ids[1000];
        kit_child();
        struct store *s = kit_store(k.dir, STORE_READ, 0);
        ck_status(store_snapshot(s, &txn), STORE_OK);
        kit_assert(write(reported[1], "s", 1) == 1 && read(go[0], &c, 1) == 1);
        struct kit_list l =
            kit_reports(s, &(struct store_list_query){
                               .workspace = w, .sort = REPORT_BY_URL, .page = 1, .per_page = 100});
        ck_status(l.status, STORE_OK); /* it opens the files of its snapshot at this point */
        kit_assert(l.total == 100);
        store_read_end(s);
        kit_assert(list_all(s, ids, 1000) == 4 * 200);
        store_close(s);
        _exit(0);
    }
    ck_assert_int_eq(read(reported[0], &c, 1), 1);
    create(100);
    kit_purge(&k, 100);
    for (size_t i = 0; i < before.count; i++)
        ck_assert_int_eq(access(path_of(w, before.number[i]), F_OK), 0);
    ck_assert_int_eq(write(go[1], "g", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    create(100);
    kit_purge(&k, 100);
    size_t left = 0;
    for (size_t i = 0; i < before.count; i++)
        left += access(path_of(w, before.number[i]), F_OK) == 0;
    ck_assert_uint_lt(left, before.count);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(only_unreferenced_segment_files_are_deleted)
{
    char path[SEGMENT_PATH_BYTES + 16];
    create(100);
    kit_purge(&k, 100);
    size_t before = files().count;
    close(open(path_of(77, 4711), O_CREAT | O_WRONLY, 0600)); /* of a killed writer */
    close(open(path_of(w, 4711), O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof(path), "%s/index/notes", k.dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_uint_eq(files().count, before + 2);
    kit_maintain(&k, 100, 100);
    ck_assert_uint_eq(files().count, before);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_deleted_workspace_leaves_no_file)
{
    create(200);
    kit_purge(&k, 100);
    ck_assert_uint_ge(files().count, 3);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = w}),
              STORE_OK);
    kit_purge(&k, 100);
    ck_assert_uint_eq(files().count, 0);
}
END_TEST

START_TEST(snapshots_are_dropped_above_the_mapping_limit)
{
    uint64_t ids[4000], other[8];
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        other[i] = w = kit_workspace(&k, name);
        create(100);
    }
    kit_purge(&k, 100);
    k.s->index->mapped_bytes = 1; /* the requested snapshot stays */
    for (int i = 0; i < 16; i++) {
        w = other[i % 8];
        ck_assert_uint_eq(list_all(k.s, ids, 4000), 400);
        ck_assert_uint_eq(k.s->index->snapshot_count, 1);
    }
    uint64_t one = segment_maps_bytes(k.s->shared->segments);
    k.s->index->mapped_bytes = 3 * one;
    for (int i = 0; i < 16; i++) {
        w = other[i % 8];
        ck_assert_uint_eq(list_all(k.s, ids, 4000), 400);
        ck_assert_uint_le(segment_maps_bytes(k.s->shared->segments), 3 * one);
    }
    ck_assert_uint_eq(k.s->index->snapshot_count, 3);
    index_snapshot_forget(k.s);
    ck_assert_uint_eq(segment_maps_bytes(k.s->shared->segments), 0);
}
END_TEST

START_TEST(an_idle_reader_unmaps_merged_files)
{
    uint64_t ids[4000];
    create(100);
    kit_purge(&k, 100);
    list_all(k.s, ids, 4000);
    ck_assert(store_tidy(k.s)); /* nothing has changed */
    ck_assert_uint_eq(k.s->index->snapshot_count, 1);
    create(100);
    kit_purge(&k, 100);
    ck_assert(!store_tidy(k.s));
    ck_assert_uint_eq(k.s->index->snapshot_count, 0);
    ck_assert_uint_eq(segment_maps_bytes(k.s->shared->segments), 0);
}
END_TEST

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
    Suite *suite = suite_create("store_segments");
    TCase *tc = tcase_create("segments");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, segments_of_similar_size_merge_and_others_stay);
    tcase_add_test(tc, a_workspace_has_a_file_only_while_it_is_large);
    tcase_add_test(tc, a_merge_over_a_changed_manifest_is_refused_and_leaves_no_file);
    tcase_add_test(tc, a_malformed_install_is_refused_and_changes_nothing);
    tcase_add_test(tc, a_merged_file_stays_while_a_process_may_read_it);
    tcase_add_test(tc, only_unreferenced_segment_files_are_deleted);
    tcase_add_test(tc, a_deleted_workspace_leaves_no_file);
    tcase_add_test(tc, snapshots_are_dropped_above_the_mapping_limit);
    tcase_add_test(tc, an_idle_reader_unmaps_merged_files);
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
