/*
 * The follower of answer files: it continues an interrupted build, and rebuilds a file that is
 * missing, damaged or of another store.
 */
#include "t/kit/file_damage.h"
#include "t/kit/store_lookup.h"

#include "store/answers/follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- building ---- */

START_TEST(a_build_resumes_and_includes_later_changes)
{
    begin();
    sync_words(1, 2000, "one");
    kit_follow(&kit, 3); /* a new follower each time */
    ck_assert_int_eq(state().state, ANSWERS_TO_BUILD);
    sync_words(1, 50, "two");      /* built already */
    sync_words(1951, 2000, "two"); /* not yet */
    sync_words(101, 150, "-");
    sync_words(1901, 1950, "-");
    kit_check_clean(kit.s);
    kit_follow(&kit, 2);
    sync_words(2001, 2050, "one");
    sync_words(1, 10, "three");
    for (unsigned steps = 0; unindexed() > 0; steps++) {
        ck_assert_uint_lt(steps, 100);
        kit_follow(&kit, 2);
    }
    ck_assert_int_eq(state().state, ANSWERS_BUILT);
    expect_words(1, 10, "three", 1);
    expect_words(11, 50, "two", 1);
    expect_words(1, 50, "one", 0);
    expect_words(51, 100, "one", 1);
    expect_words(101, 150, "one", 0);
    expect_words(1901, 1950, "one", 0);
    expect_words(1951, 2000, "two", 1);
    expect_words(2001, 2050, "one", 1);
    end();
}
END_TEST

/* ---- wrong files ---- */

static void empty_file(const char *path)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}

static void overwrite(const char *path, off_t from, off_t step)
{
    struct stat st;
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t at = from; at < st.st_size; at += step)
        ck_assert_int_eq(pwrite(fd, "\xa5\x5a\xff", 3, at), 3);
    close(fd);
}

static void damage_head(const char *path)
{
    overwrite(path, 0, 1 << 30);
}

static void damage_pages(const char *path)
{
    overwrite(path, 4096 + 1, 512);
}

static void other_version(const char *path)
{
    static const uint8_t version[] = {0, 0, 0, 99};
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, version, sizeof(version), 60),
                     sizeof(version)); /* PRAGMA user_version */
    close(fd);
}

static void (*const damages[])(const char *path) = {delete_file, truncate_file, empty_file,
                                                    damage_head, damage_pages,  other_version};

static enum store_status note_answers(void *arg, const struct store_change *change)
{
    return kit_apply(arg, change).status;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void report_lost(uint32_t generation)
{
    const struct store_change c = {.kind = CHANGE_ANSWERS,
                                   .fields = ANSWERS_NOTE_LOST,
                                   .agent = agent,
                                   .attempt = generation,
                                   .code = ANSWERS_FORMAT};
    ck_status(kit_status(&kit, &c), STORE_OK);
    ck_status(kit_status(&kit, &c), STORE_STALE); /* others have detected it, too */
}

/* store_why says which file is wrong, and why. */
static void expect_why(const char *path, const char *words)
{
    const char *why = store_why(kit.s);
    size_t n = strlen(path);
    ck_assert_msg(strncmp(why, path, n) == 0 && strlen(why) > n + 10 && strstr(why, words) != NULL,
                  "%s", why);
}

/* Detected by a lookup, or by the follower. */
START_TEST(a_damaged_file_is_rebuilt)
{
    const bool by_follower = _i % 2 == 1;
    char path[ANSWERS_PATH_BYTES];
    begin();
    sync_words(1, 300, "one");
    follow();
    file_path(path);
    kit_reopen(&kit); /* no process has it open */
    damages[_i / 2](path);
    if (by_follower) {
        sync_words(301, 301, "one");
    } else {
        struct looked l = look(&agent, "one7");
        ck_assert_uint_eq(l.count, 0);
        ck_assert_uint_eq(l.lost, 1);
        expect_why(path, "");
        report_lost(l.lost);
    }
    follow();
    ck_assert_uint_eq(state().generation, 2);
    expect_words(1, 300, "one", 1);
    expect_words(301, 301, "one", by_follower ? 1 : 0);
    end();
}
END_TEST

/*
 * Bytes of postings and texts: questions still work, so only verification finds them. It begins
 * again when each file had its turn.
 */
START_TEST(verification_finds_a_damaged_file)
{
    char path[ANSWERS_PATH_BYTES], why[512];
    struct store *reader;
    begin();
    sync_words(1, 300, "one");
    follow();
    file_path(path);
    kit_reopen(&kit);
    ck_status(store_share(kit.s, &reader, why, sizeof(why)), STORE_OK);
    struct follower *f = follower_new(reader, note_answers, never, &kit);
    ck_assert_int_eq(follower_step(f), FOLLOWER_MORE); /* the sweep */
    ck_assert_int_eq(follower_step(f), FOLLOWER_IDLE);
    ck_assert_int_eq(follower_verify(f), FOLLOWER_MORE);
    ck_assert_int_eq(follower_verify(f), FOLLOWER_IDLE);
    ck_assert_uint_eq(state().generation, 1);
    ck_assert_uint_gt(change_text(path, "one250"), 0);
    ck_assert_int_eq(follower_verify(f), FOLLOWER_MORE);
    ck_assert_uint_eq(state().generation, 2);
    follower_free(f);
    store_close(reader);
    follow();
    expect_words(1, 300, "one", 1);
    end();
}
END_TEST

/* A bit of a row's version or id is flipped: the record differs. */
START_TEST(a_hit_that_differs_from_its_record_is_dropped)
{
    char path[ANSWERS_PATH_BYTES];
    begin();
    struct store_txn *t;
    struct key k;
    MDB_val v;
    sync_one(1, "Parcel", "parcel");
    follow();
    file_path(path);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    key_id(&k, SPACE_DOCUMENT, 1);
    ck_status(txn_get(t, SPACE_DOCUMENT, &k, &v), STORE_OK);
    char copy[1024];
    memcpy(copy, v.mv_data, v.mv_size);
    ((struct document_record *)(void *)copy)->change = 0; /* older than the file, but another one */
    txn_put(t, SPACE_DOCUMENT, &k, copy, v.mv_size);
    ck_status(store_commit(t), STORE_OK);
    struct looked l = look(&agent, "parcel");
    ck_assert_uint_eq(l.count, 0);
    ck_assert_uint_eq(l.lost, 1);
    expect_why(path, "A document differs from its record in the store.");
    ck_assert_uint_gt(kit_problems(kit.s), 0);
    kit_close(&kit);
}
END_TEST

static void copy_to(const char *from, const char *to)
{
    static char bytes[1 << 22];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n = read(in, bytes, sizeof(bytes));
    ck_assert(n > 0 && n < (ssize_t)sizeof(bytes));
    ck_assert(write(out, bytes, (size_t)n) == n);
    close(in);
    close(out);
}

/*
 * As after a power loss, after which SQLite returns an older state: a lookup, a change or
 * verification detects it.
 */
START_TEST(an_older_file_is_rebuilt)
{
    char path[ANSWERS_PATH_BYTES], before[ANSWERS_PATH_BYTES + 8], why[512];
    begin();
    sync_words(1, 10, "one");
    follow();
    file_path(path);
    snprintf(before, sizeof(before), "%s.before", path);
    copy_to(path, before);
    sync_words(1, 10, "two");
    follow();
    kit_reopen(&kit);
    copy_to(before, path);
    if (_i == 0) {
        sync_words(11, 11, "two");
    } else if (_i == 1) {
        struct looked l = look(&agent, "two7");
        ck_assert_uint_eq(l.lost, 1);
        report_lost(l.lost);
    } else {
        struct store *reader;
        ck_status(store_share(kit.s, &reader, why, sizeof(why)), STORE_OK);
        struct follower *f = follower_new(reader, note_answers, never, &kit);
        ck_assert_int_eq(follower_step(f), FOLLOWER_MORE);
        ck_assert_int_eq(follower_verify(f), FOLLOWER_MORE);
        follower_free(f);
        store_close(reader);
    }
    follow();
    ck_assert_uint_eq(state().generation, 2);
    expect_words(1, 10, "two", 1);
    expect_words(1, 10, "one", 0);
    end();
}
END_TEST

/* By one follower, which sweeps once. */
START_TEST(rebuilds_leave_no_old_file)
{
    char why[512];
    struct store *reader;
    begin();
    sync_words(1, 10, "one");
    ck_status(store_share(kit.s, &reader, why, sizeof(why)), STORE_OK);
    struct follower *f = follower_new(reader, note_answers, never, &kit);
    while (follower_step(f) == FOLLOWER_MORE)
        continue;
    const size_t before = files();
    for (int i = 0; i < 3; i++) { /* another language again, before it is built */
        struct store_change c = {
            .kind = CHANGE_AGENT_UPDATE, .agent = agent, .fields = AGENT_HAS_SETTINGS};
        c.data = i % 2 ? STR("\"language_default\":\"fr\"") : STR("\"language_default\":\"de\"");
        ck_status(kit_status(&kit, &c), STORE_OK);
    }
    ck_assert_uint_eq(state().generation, 4);
    ck_assert_uint_eq(state().serving, 1);
    ck_assert_uint_gt(unindexed(), 0);
    expect_words(1, 10, "one", 1); /* the old file answers */
    while (follower_step(f) == FOLLOWER_MORE)
        continue;
    ck_assert_uint_eq(unindexed(), 0);
    ck_assert_uint_eq(state().serving, 0);
    ck_assert_uint_eq(files(), before);
    expect_words(1, 10, "one", 1);
    const struct store_change deletes = {.kind = CHANGE_AGENT_DELETE, .agent = agent};
    ck_status(kit_status(&kit, &deletes), STORE_OK);
    kit_purge(&kit, 100);
    while (follower_step(f) == FOLLOWER_MORE)
        continue;
    ck_assert_uint_eq(files(), 0);
    follower_free(f);
    store_close(reader);
    end();
}
END_TEST

/* It is deleted while the next one is built: nothing is found, and no other build begins. */
START_TEST(a_lost_old_file_answers_nothing)
{
    char path[ANSWERS_PATH_BYTES];
    begin();
    sync_words(1, 10, "one");
    follow();
    file_path(path);
    const struct store_change c = {.kind = CHANGE_AGENT_UPDATE,
                                   .agent = agent,
                                   .fields = AGENT_HAS_SETTINGS,
                                   .data = STR("\"language_default\":\"de\"")};
    ck_status(kit_status(&kit, &c), STORE_OK);
    unlink(path);
    expect_words(1, 10, "one", 0);
    ck_assert_uint_eq(state().generation, 2);
    follow();
    expect_words(1, 10, "one", 1);
    end();
}
END_TEST

START_TEST(orphan_files_are_deleted_and_missing_files_built)
{
    char path[ANSWERS_PATH_BYTES], other[128];
    begin();
    sync_words(1, 10, "one");
    follow();
    file_path(path);
    unlink(path);
    struct answers_name name = {.agent = agent, .generation = 7};
    char stray[ANSWERS_PATH_BYTES];
    answers_path(stray, kit.dir, &name);
    close(open(stray, O_CREAT | O_WRONLY, 0600));
    snprintf(other, sizeof(other), "%s/answers/notes.txt", kit.dir);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    follow(); /* without a change or a question */
    ck_assert_int_ne(access(stray, F_OK), 0);
    ck_assert_int_eq(access(other, F_OK), 0);
    expect_words(1, 10, "one", 1);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_follower");
    TCase *tcase = tcase_create("follower");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_build_resumes_and_includes_later_changes);
    tcase_add_loop_test(tcase, a_damaged_file_is_rebuilt, 0,
                        2 * sizeof(damages) / sizeof(*damages));
    tcase_add_test(tcase, verification_finds_a_damaged_file);
    tcase_add_test(tcase, a_hit_that_differs_from_its_record_is_dropped);
    tcase_add_loop_test(tcase, an_older_file_is_rebuilt, 0, 3);
    tcase_add_test(tcase, rebuilds_leave_no_old_file);
    tcase_add_test(tcase, a_lost_old_file_answers_nothing);
    tcase_add_test(tcase, orphan_files_are_deleted_and_missing_files_built);
    suite_add_tcase(suite, tcase);
    return kit_run(suite);
}
