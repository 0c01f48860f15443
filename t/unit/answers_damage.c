/*
 * Answer files that cannot be used: missing files, files of another kind, and damage down to one
 * bit.
 */
#include "t/kit/answers.h"
#include "t/kit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static enum store_status try_open(const uint8_t *id)
{
    struct answers_writer *w;
    enum store_status status = answers_open(path, id, NULL, &w, why, sizeof(why));
    if (status != STORE_OK) {
        ck_assert_uint_gt(strlen(why), 10);
        return status;
    }
    status = answers_verify(w, NULL, NULL);
    if (status != STORE_OK)
        ck_assert_uint_gt(strlen(answers_why(w)), 10);
    answers_close(w);
    return status;
}

static void execute(const char *sql)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) < 2,
                  "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void set_user_version(int version)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", version);
    execute(sql);
}

static void overwrite(off_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

START_TEST(opening_distinguishes_missing_wrong_version_and_foreign_files)
{
    struct answers_writer *w;
    struct answers_reader *r;
    ck_assert_int_eq(try_open(store_id), STORE_NOT_FOUND);
    ck_assert_int_eq(answers_reader_open(path, store_id, NULL, &r, why, sizeof(why)),
                     STORE_NOT_FOUND);
    make_index(10);
    ck_assert_int_eq(answers_create(path, store_id, NULL, &w, why, sizeof(why)), STORE_EXISTS);
    ck_assert_int_eq(try_open(store_id), STORE_OK);
    ck_assert_int_eq(try_open(other_id), STORE_STALE);
    ck_assert_int_eq(answers_reader_open(path, other_id, NULL, &r, why, sizeof(why)), STORE_STALE);
    set_user_version(ANSWERS_FORMAT + 1);
    ck_assert_int_eq(try_open(store_id), STORE_OTHER_FORMAT);
    ck_assert_int_eq(answers_reader_open(path, store_id, NULL, &r, why, sizeof(why)),
                     STORE_OTHER_FORMAT);
}
END_TEST

START_TEST(truncated_and_overwritten_files_are_reported_damaged)
{
    struct stat st;
    static const char noise[4096] = "no page of SQLite";
    make_index(2000);
    ck_assert_int_eq(stat(path, &st), 0);
    overwrite(st.st_size / 4096 / 2 * 4096, noise, sizeof(noise));
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    overwrite(0, noise, sizeof(noise));
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
}
END_TEST

/* Root may open every file, but not a directory. */
START_TEST(a_file_that_may_not_be_opened_is_reported_damaged)
{
    struct answers_reader *r;
    make_index(10);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() != 0) {
        ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
        ck_assert_int_eq(answers_reader_open(path, store_id, NULL, &r, why, sizeof(why)),
                         STORE_CORRUPT);
        ck_assert_int_eq(chmod(path, 0400), 0);
        ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
    ck_assert_int_eq(answers_reader_open(path, store_id, NULL, &r, why, sizeof(why)),
                     STORE_CORRUPT);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

static void use_if_it_opens(void)
{
    static const char *const questions[] = {"tea of the mountain", "number77", "words13 number5",
                                            "coffee"};
    struct answers_reader *r;
    struct answers_hit hits[8];
    unsigned count;
    if (answers_reader_open(path, store_id, NULL, &r, why, sizeof(why)) != STORE_OK)
        return;
    for (size_t i = 0; i < 4; i++) {
        enum store_status status =
            answers_ask(r,
                        &(struct answers_question){
                            .text = str_of(questions[i]), .language = str_of("en"), .limit = 8},
                        hits, &count);
        ck_assert(status == STORE_OK || status == STORE_CORRUPT || status == STORE_BUSY ||
                  status == STORE_IO);
    }
    answers_reader_close(r);
}

/* The hits of several questions, as one number. */
static uint64_t hits_of(void)
{
    static const char *const questions[] = {"number77", "words13 number5", "tea number250",
                                            "words96"};
    struct answers_reader *r = open_reader();
    struct answers_hit hits[8];
    uint64_t sum = 0;
    unsigned count;
    for (size_t i = 0; i < 4; i++) {
        const struct answers_question q = {
            .text = str_of(questions[i]), .language = STR("en"), .limit = 8};
        ck_assert_int_eq(answers_ask(r, &q, hits, &count), STORE_OK);
        for (unsigned j = 0; j < count; j++)
            sum = (sum ^ hits[j].id) * 1099511628211u;
    }
    answers_reader_close(r);
    return sum;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 20;
}

/* SQLite's pages have no checksums, so the test knows the meaning of a bit by the index's texts. */
START_TEST(a_flipped_bit_is_detected_or_changes_no_hit)
{
    struct stat st;
    uint64_t seed = 7;
    unsigned found = 0;
    make_index(300);
    const uint64_t before = hits_of();
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (int i = 0; i < 300; i++) {
        uint8_t byte;
        off_t at = (off_t)(next_random(&seed) % (uint64_t)st.st_size);
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        uint8_t changed = byte ^ (uint8_t)(1 << next_random(&seed) % 8);
        ck_assert_int_eq(pwrite(fd, &changed, 1, at), 1);
        if (try_open(store_id) != STORE_OK)
            found++;
        else
            ck_assert_msg(hits_of() == before, "byte %ld", (long)at);
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    ck_assert_uint_gt(found, 30);
}
END_TEST

/* SQLite has no checksums: a changed bit can go unnoticed, but nothing crashes. */
START_TEST(flipped_bits_never_crash_a_reader)
{
    struct stat st;
    char *bytes;
    uint64_t seed = 42;
    make_index(300);
    ck_assert_int_eq(stat(path, &st), 0);
    bytes = malloc((size_t)st.st_size);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    for (unsigned i = 0; i < 300; i++) {
        off_t at = i < 100 ? (off_t)i : (off_t)(next_random(&seed) % (uint64_t)st.st_size);
        char flipped = (char)(bytes[at] ^ 1 << next_random(&seed) % 8);
        overwrite(at, &flipped, 1);
        use_if_it_opens();
        overwrite(at, &bytes[at], 1);
    }
    free(bytes);
    ck_assert_int_eq(try_open(store_id), STORE_OK);
}
END_TEST

/* Rows that SQLite finds in order, but that answers depend on. */
static const char *const contradictions[] = {
    "UPDATE token SET documents=documents+1 WHERE token='number77'",
    "UPDATE token SET token='number77x' WHERE token='number77'",
    "DELETE FROM token WHERE token='number77'",
    "INSERT INTO token SELECT tab, 'x', 1 FROM token LIMIT 1",
    "DELETE FROM document WHERE id=77",
    "UPDATE document SET tab=tab+1 WHERE id=77",
    "INSERT INTO document SELECT 5000, version, tab, kind FROM document LIMIT 1",
    "UPDATE tables SET documents=documents+1"};

START_TEST(tables_that_contradict_each_other_are_reported_damaged)
{
    make_index(300);
    ck_assert_int_eq(try_open(store_id), STORE_OK);
    execute(contradictions[_i]);
    ck_assert_int_eq(try_open(store_id), STORE_CORRUPT);
}
END_TEST

/* The writer still has the file open, and read all of it before the damage. */
START_TEST(verifying_reads_the_file_and_not_cached_pages)
{
    static const char zeros[8192];
    struct stat st;
    make_index(300);
    struct answers_writer *w = reopen_file();
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_OK);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, 64 << 10);
    overwrite(st.st_size / 4096 / 2 * 4096, zeros, sizeof(zeros));
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_CORRUPT);
    answers_close(w);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        opening_distinguishes_missing_wrong_version_and_foreign_files,
        truncated_and_overwritten_files_are_reported_damaged,
        a_file_that_may_not_be_opened_is_reported_damaged,
        a_flipped_bit_is_detected_or_changes_no_hit,
        flipped_bits_never_crash_a_reader,
        verifying_reads_the_file_and_not_cached_pages,
    };
    Suite *suite = suite_create("answers_damage");
    TCase *t = tcase_create("file");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        tcase_add_test(t, tests[i]);
    tcase_add_loop_test(t, tables_that_contradict_each_other_are_reported_damaged, 0,
                        sizeof(contradictions) / sizeof(*contradictions));
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
