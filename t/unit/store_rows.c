/*
 * Row sets (store/rows.h). Random changes of every kind are executed in one store. Another store,
 * with another clock, locale and segments, and closed in between, applies its row sets. Both have
 * equal rows then, and answer equally.
 */
#include "t/kit/store_copy.h"

#include "store/engine/derived.h"
#include "store/engine/rows.h"

#include <glob.h>

/* ---- equal answers ---- */

static void change_some(unsigned count)
{
    if (random_below(3) == 0) {
        for (; count > 0; count--)
            random_act();
        return;
    }
    kit_batch_begin(&kit);
    for (; count > 0; count--)
        random_act();
    kit_batch_end(&kit);
}

static void round_of_changes(void)
{
    change_some(1 + random_below(20));
    if (random_below(2) == 0)
        random_background();
    if (random_below(4) == 0)
        kit_follow(&kit, random_below(5));
    if (random_below(9) == 0)
        copy_reopen_first();
    if (random_below(3) == 0)
        copy_apply(random_below(20));
    if (random_below(3) == 0)
        copy_maintain(random_below(9));
    if (random_below(5) == 0)
        kit_follow(&copy, random_below(5));
    if (random_below(9) == 0)
        copy_reopen(MAP_BYTES);
    copy.now = random_below(2) == 0 ? 1 : kit.now * 2;
}

/* A lost index is rebuilt from local files: t/unit/store_segments. */
static void expect_all_kinds(void)
{
    for (unsigned kind = CHANGE_WORKSPACE_CREATE; kind < CHANGE_KINDS; kind++)
        ck_assert_msg(kit_carried_out[kind] > 0 || kind == CHANGE_INDEX_LOST,
                      "no change of kind %u was carried out", kind);
}

START_TEST(another_store_that_applies_row_sets_answers_as_the_first)
{
    random_seed = (uint64_t)_i * 7919 + 3;
    for (int i = 1; i <= 150; i++) {
        round_of_changes();
        if (i % 15 == 0)
            copy_expect_equal();
    }
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = 2}),
              STORE_OK);
    for (int i = 0; i < 8; i++) {
        random_background();
        copy_expect_equal();
    }
    kit_purge(&kit, 100);
    copy_expect_equal();
    expect_all_kinds();
}
END_TEST

/* ---- events ---- */

static int compare_events(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct store_event));
}

/* Maintenance and the follower of answer files are started by others, too. */
static bool is_for_waiters(const struct store_event *e)
{
    return e->kind != EVENT_PURGE && e->kind != EVENT_ANSWERS && e->kind != EVENT_MAINTENANCE;
}

/* Sorted, each once. */
static size_t events_of(const struct buf *in, struct store_event *out, unsigned *seen)
{
    const struct store_event *e = (const struct store_event *)(const void *)in->p;
    size_t all = 0, count = 0;
    for (size_t i = 0; i < in->n / sizeof(*e); i++)
        if (is_for_waiters(&e[i]))
            out[all++] = e[i];
    qsort(out, all, sizeof(*out), compare_events);
    for (size_t i = 0; i < all; i++) {
        seen[out[i].kind]++;
        if (i == 0 || compare_events(&out[i], &out[i - 1]) != 0)
            out[count++] = out[i];
    }
    return count;
}

static void apply_one(const struct row_set *set, struct buf *events)
{
    struct store_txn *t;
    ck_status(store_begin(copy.s, &t), STORE_OK);
    ck_status(store_rows_apply(t, buf_view(&set->rows)), STORE_OK);
    ck_status(store_commit(t), STORE_OK);
    copy_take_events(copy.s, events);
}

START_TEST(the_row_set_of_a_change_raises_its_events)
{
    enum { EVENTS = 4096 };
    static struct store_event want[EVENTS], got[EVENTS];
    unsigned seen[EVENT_SIGNING_KEYS + 1] = {0};
    struct buf events = {0};
    for (int i = 0; i < 1500; i++) {
        random_act();
        if (i % 20 == 0)
            random_background();
    }
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = 2}),
              STORE_OK);
    kit_purge(&kit, 100);
    for (size_t i = 0; i < row_set_count; i++) {
        apply_one(&row_sets[i], &events);
        size_t count = events_of(&events, got, seen);
        ck_assert_uint_eq(events_of(&row_sets[i].events, want, seen), count);
        ck_assert_mem_eq(want, got, count * sizeof(*want));
    }
    buf_free(&events);
    for (unsigned kind = EVENT_REPORT_FINISHED; kind <= EVENT_CONVERSATION; kind++)
        ck_assert_msg(seen[kind] > 0, "no event of kind %u", kind);
    ck_assert_uint_gt(seen[EVENT_PROJECT_DELETED], 0);
    row_sets_applied = row_set_count;
    copy_expect_equal();
}
END_TEST

/* ---- local spaces ---- */

/* A row set of all rows of replicated spaces. */
static void note_all(struct store_txn *t)
{
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        struct cursor w = {0};
        enum store_status status = cursor_begin(kit.s, t->mdb, &w, (enum space)space);
        for (; status == STORE_OK; status = cursor_next(&w)) {
            struct key k = {.n = 0};
            key_bytes(&k, w.k.mv_data, w.k.mv_size);
            rows_note(t, (enum space)space, &k);
        }
        cursor_end(&w);
        ck_status(status, STORE_NOT_FOUND);
    }
}

START_TEST(local_spaces_are_built_from_replicated_rows_alone)
{
    struct store_txn *t;
    for (int i = 0; i < 600; i++)
        random_act();
    kit_follow(&kit, 3);
    kit_committing = NULL;
    kit_committed = NULL;
    store_read_end(kit.s);
    store_rows_collect(kit.s, true);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    note_all(t);
    struct row_set all = {0};
    ck_status(store_rows_take(t, store_rows_formats.newest, &all.rows), STORE_OK);
    store_abort(t);
    apply_one(&all, &all.events);
    row_sets_applied = row_set_count;
    copy_expect_equal();
    buf_free(&all.rows);
    buf_free(&all.events);
}
END_TEST

/* The restored store has no segments and no answer files, and an id of its own. */
START_TEST(a_restored_backup_continues_with_later_row_sets)
{
    char backup[64], why[512] = "";
    for (int i = 0; i < 300; i++)
        random_act();
    kit_follow(&kit, 1000);
    row_sets_applied = row_set_count;
    kit_dir(backup);
    ck_status(store_backup(kit.s, backup, NULL, NULL), STORE_OK);
    store_close(copy.s);
    ck_status(store_restore(backup, copy.dir, NULL, NULL, why, sizeof(why)), STORE_OK);
    copy.s = kit_store(copy.dir, STORE_WRITE, MAP_BYTES);
    kit_remove(backup);
    for (int i = 0; i < 300; i++)
        random_act();
    copy_expect_equal();
}
END_TEST

START_TEST(every_space_is_replicated_or_local)
{
    unsigned kinds[SPACE_IS_LOCAL + 1] = {0};
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        kinds[derived_kinds[space]]++;
        ck_assert(space_is_replicated((enum space)space) ==
                  (derived_kinds[space] == SPACE_IS_RECORD));
    }
    for (unsigned kind = 0; kind <= SPACE_IS_LOCAL; kind++)
        ck_assert_uint_gt(kinds[kind], 0);
}
END_TEST

/* ---- one place ---- */

/* Columns: the only files that put or delete keys, and how often they call LMDB for it. */
static const struct {
    const char *file;
    unsigned calls;
} writers[] = {
    {"engine/txn.c", 3},    /* every key of an open store */
    {"engine/format.c", 3}, /* the rows of a new store, the id of a restored one */
};

static unsigned calls_in(const char *path)
{
    static const char *const calls[] = {"mdb_put(", "mdb_del(", "mdb_cursor_put(",
                                        "mdb_cursor_del(", "mdb_drop("};
    char line[512];
    unsigned count = 0;
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    while (fgets(line, sizeof(line), f) != NULL)
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
            count += strstr(line, calls[i]) != NULL;
    fclose(f);
    return count;
}

static unsigned allowed_in(const char *path)
{
    for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
        size_t n = strlen(path), file = strlen(writers[i].file);
        if (n > file && strcmp(path + n - file, writers[i].file) == 0)
            return writers[i].calls;
    }
    return 0;
}

START_TEST(one_file_puts_and_deletes_keys)
{
    glob_t found;
    char pattern[512];
    const char *srcdir = getenv("srcdir");
    snprintf(pattern, sizeof(pattern), "%s/{store,store/*,core/*,cmd}/*.[ch]",
             srcdir == NULL ? "." : srcdir);
    ck_assert_int_eq(glob(pattern, GLOB_BRACE, NULL, &found), 0);
    ck_assert_uint_gt(found.gl_pathc, 300);
    for (size_t i = 0; i < found.gl_pathc; i++)
        ck_assert_msg(calls_in(found.gl_pathv[i]) == allowed_in(found.gl_pathv[i]),
                      "%s puts or deletes keys: use txn_put, txn_reserve, txn_del or txn_drop",
                      found.gl_pathv[i]);
    globfree(&found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_rows");
    TCase *tc = tcase_create("rows");
    tcase_add_checked_fixture(tc, copy_begin, copy_end);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, another_store_that_applies_row_sets_answers_as_the_first, 0, 6);
    tcase_add_loop_test(tc, the_row_set_of_a_change_raises_its_events, 0, 2);
    tcase_add_test(tc, local_spaces_are_built_from_replicated_rows_alone);
    tcase_add_test(tc, a_restored_backup_continues_with_later_row_sets);
    suite_add_tcase(suite, tc);
    TCase *one = tcase_create("one place");
    tcase_add_test(one, every_space_is_replicated_or_local);
    tcase_add_test(one, one_file_puts_and_deletes_keys);
    suite_add_tcase(suite, one);
    return kit_run(suite);
}
