/*
 * Segment files of the report index: which exist, and when they are deleted. Damage is in
 * store_segments_damaged, lists and merges are in store_lists and store_model.
 */
#include "t/kit/store_segments.h"

#include "store/engine/snapshot.h"
#include "store/index/merge.h"
#include "store/index/context_internal.h"
#include "store/index/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
