/*
 * The answer index by itself: documents come, change and go; the position is of the same
 * transaction; files that cannot be used are told apart; readers see commits while one writes.
 */
#include "store/answers/answers.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t store_id[ANSWERS_STORE_ID_BYTES] = "store one",
                     other_id[ANSWERS_STORE_ID_BYTES] = "store two";
static char dir[64], path[128], why[256];

static void set_up(void)
{
    snprintf(dir, sizeof(dir), "/tmp/answers_index.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/index", dir);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static struct answers_writer *create(void)
{
    struct answers_writer *w;
    ck_assert_int_eq(answers_create(path, store_id, NULL, &w, why, sizeof(why)), STORE_OK);
    return w;
}

static struct answers_writer *reopen(void)
{
    struct answers_writer *w;
    enum store_status status = answers_open(path, store_id, NULL, &w, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s: %s", store_status_text(status), why);
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_OK);
    return w;
}

static struct answers_reader *reader(void)
{
    struct answers_reader *r;
    enum store_status status = answers_reader_open(path, store_id, NULL, &r, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s: %s", store_status_text(status), why);
    return r;
}

static void put(struct answers_writer *w, uint64_t id, uint64_t version, const char *language,
                const char *title, const char *text)
{
    const struct answers_document d = {
        id, version, str_of(language), SYNCED_POST, str_of(title), str_of(""), str_of(text)};
    ck_assert_msg(answers_put(w, &d) == STORE_OK, "%s", answers_why(w));
}

static void commit(struct answers_writer *w, uint64_t position)
{
    ck_assert_msg(answers_commit(w, position) == STORE_OK, "%s", answers_why(w));
    ck_assert_uint_eq(answers_position(w), position);
}

/* The best hit's id, which must answer; 0: nothing does. */
static uint64_t ask(struct answers_reader *r, const char *question, const char *language,
                    uint64_t *version)
{
    struct answers_hit hits[4];
    unsigned count;
    ck_assert_msg(answers_ask(r,
                              &(struct answers_question){.text = str_of(question),
                                                         .language = str_of(language),
                                                         .limit = 4},
                              hits, &count) == STORE_OK,
                  "%s", answers_reader_why(r));
    *version = count > 0 ? hits[0].version : 0;
    return count > 0 && hits[0].share >= ANSWERS_SHARE ? hits[0].id : 0;
}

static void must_answer(struct answers_reader *r, const char *question, uint64_t id)
{
    uint64_t version, found = ask(r, question, "en", &version);
    ck_assert_msg(found == id, "\"%s\": %llu, not %llu", question, (unsigned long long)found,
                  (unsigned long long)id);
}

START_TEST(documents_are_found_replaced_and_removed)
{
    struct answers_writer *w = create();
    struct answers_reader *r = reader();
    uint64_t version;
    put(w, 1, 10, "en", "Refunds", "Refunds take five days after we have your parcel.");
    put(w, 2, 10, "en", "Shipping", "We ship everywhere in Europe.");
    must_answer(r, "refund", 0);
    commit(w, 7);
    ck_assert_uint_eq(ask(r, "refund", "en", &version), 1);
    ck_assert_uint_eq(version, 10);
    put(w, 1, 11, "en", "Gift cards", "Gift cards are valid for three years.");
    commit(w, 8);
    must_answer(r, "refund", 0);
    ck_assert_uint_eq(ask(r, "gift card", "en", &version), 1);
    ck_assert_uint_eq(version, 11);
    ck_assert_int_eq(answers_remove(w, 1), STORE_OK);
    ck_assert_int_eq(answers_remove(w, 99), STORE_OK);
    commit(w, 9);
    must_answer(r, "gift card", 0);
    must_answer(r, "ship to Europe", 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(what_is_aborted_or_not_committed_is_not_there)
{
    struct answers_writer *w = create();
    put(w, 1, 1, "en", "Refunds", "Refunds take five days.");
    commit(w, 1);
    put(w, 2, 1, "de", "Versand", "Wir versenden nach Europa.");
    ck_assert_int_eq(answers_remove(w, 1), STORE_OK);
    answers_abort(w);
    put(w, 3, 1, "fr", "Livraison", "Nous livrons en Europe.");
    answers_close(w);
    struct answers_reader *r = reader();
    uint64_t position;
    bool whole;
    must_answer(r, "refund", 1);
    must_answer(r, "Versand", 0);
    must_answer(r, "livraison", 0);
    ck_assert_int_eq(answers_reader_position(r, &position, &whole), STORE_OK);
    ck_assert_uint_eq(position, 1);
    answers_reader_close(r);
}
END_TEST

START_TEST(two_pages_answer_whatever_the_order_of_the_words)
{
    struct answers_writer *w = create();
    put(w, 1, 1, "en", "Refunds and returns", "Send it back in 30 days. Refunds take five days.");
    put(w, 2, 1, "en", "Late refunds", "If your refund is late, call your bank.");
    commit(w, 1);
    struct answers_reader *r = reader();
    must_answer(r, "How many days do refunds take?", 1);
    must_answer(r, "days refunds take", 1);
    must_answer(r, "take refunds days", 1);
    must_answer(r, "my refund is late", 2);
    must_answer(r, "Do you sell bicycles?", 0);
    must_answer(r, "how are you", 0);
    must_answer(r, "", 0);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(each_language_has_its_table_and_all_are_asked)
{
    struct answers_writer *w = create();
    uint64_t version;
    put(w, 1, 1, "en-US", "Refunds", "Refunds take five days.");
    put(w, 2, 1, "de", "Rückerstattungen", "Rückerstattungen dauern fünf Tage.");
    put(w, 3, 1, "ja", "返金について", "返金には五日かかります。");
    put(w, 4, 1, "tlh", "HuchDajmey", "vaghleS.");
    commit(w, 1);
    struct answers_reader *r = reader();
    ck_assert_uint_eq(ask(r, "refunds", "en", &version), 1);
    ck_assert_uint_eq(ask(r, "Wie lange dauert die Rückerstattung?", "de", &version), 2);
    ck_assert_uint_eq(ask(r, "ruckerstattung", "de", &version), 2);
    ck_assert_uint_eq(ask(r, "返金", "ja", &version), 3);
    ck_assert_uint_eq(ask(r, "huchdajmey", "", &version), 4);
    answers_reader_close(r);
    put(w, 2, 2, "en", "Shipping", "We ship to Europe."); /* into another table */
    commit(w, 2);
    r = reader();
    ck_assert_uint_eq(ask(r, "Rückerstattung", "de", &version), 0);
    ck_assert_uint_eq(ask(r, "shipping", "en", &version), 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

/* ---- counts ---- */

static int64_t number(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int64_t n = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

START_TEST(counts_of_tokens_are_exact_and_go_with_their_documents)
{
    struct answers_writer *w = create();
    for (uint64_t id = 1; id <= 50; id++)
        put(w, id, 1, "en", "Tea", id % 2 == 0 ? "green green tea" : "black tea");
    commit(w, 1);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='green'"), 25);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='tea'"), 50);
    for (uint64_t id = 1; id <= 50; id += 2)
        put(w, id, 2, "en", "Tea", "green tea");
    for (uint64_t id = 2; id <= 50; id += 2)
        ck_assert_int_eq(answers_remove(w, id), STORE_OK);
    commit(w, 2);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='green'"), 25);
    ck_assert_int_eq(number("SELECT count(*) FROM token WHERE token='black'"), 0);
    ck_assert_int_eq(number("SELECT documents FROM tables"), 25);
    ck_assert_int_eq(number("SELECT words FROM tables"), 75);
    for (uint64_t id = 1; id <= 50; id++)
        ck_assert_int_eq(answers_remove(w, id), STORE_OK);
    commit(w, 3);
    ck_assert_int_eq(
        number("SELECT (SELECT count(*) FROM token) + (SELECT words + documents FROM tables)"), 0);
    answers_close(w);
}
END_TEST

/* ---- crashes ---- */

/* A child commits documents 1, 2, 3 ... with their number as the position until it is killed. */
static void write_until_killed(int ready)
{
    struct answers_writer *w = reopen();
    for (uint64_t id = answers_position(w) + 1;; id++) {
        char text[64];
        snprintf(text, sizeof(text), "number%llu and tea", (unsigned long long)id);
        put(w, id, id, "en", "Tea", text);
        commit(w, id);
        if (id % 20 == 0 && write(ready, "x", 1) != 1)
            _exit(1);
    }
}

static void kill_a_writer(unsigned patience_us)
{
    int fds[2];
    char byte;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0)
        write_until_killed(fds[1]);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    usleep(patience_us);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(fds[0]);
    close(fds[1]);
}

START_TEST(position_and_documents_are_of_one_transaction_after_kill_9)
{
    answers_close(create());
    for (unsigned round = 0; round < 10; round++) {
        kill_a_writer(round * 733);
        struct answers_writer *w = reopen();
        int64_t position = (int64_t)answers_position(w);
        answers_close(w);
        ck_assert_int_eq(number("SELECT count(*) FROM document"), position);
        ck_assert_int_eq(number("SELECT max(id) FROM document"), position);
        ck_assert_int_eq(number("SELECT documents FROM token WHERE token='tea'"), position);
        ck_assert_int_eq(number("SELECT count(*) FROM text_1_content"), position);
    }
}
END_TEST

/* ---- files that cannot be used ---- */

static void make_index(uint64_t documents)
{
    struct answers_writer *w = create();
    for (uint64_t id = 1; id <= documents; id++) {
        char text[200];
        snprintf(text, sizeof(text), "number%llu tea of the mountain and some other words%llu",
                 (unsigned long long)id, (unsigned long long)id % 97);
        put(w, id, 1, "en", "Tea", text);
    }
    commit(w, documents);
    answers_close(w);
}

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

static void set_user_version(int version)
{
    char sql[64];
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", version);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void overwrite(off_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

START_TEST(missing_existing_other_version_and_other_store_are_told_apart)
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

START_TEST(truncated_and_overwritten_files_are_damaged)
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

/* The hits of some questions, as one number. */
static uint64_t hits_of(void)
{
    static const char *const questions[] = {"number77", "words13 number5", "tea number250",
                                            "words96"};
    struct answers_reader *r = reader();
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

/* SQLite's pages have no checksums, so what a bit was is known by what the index says of the texts. */
START_TEST(a_changed_bit_is_found_or_changes_no_hit)
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

/* ---- reading ---- */

START_TEST(readers_of_other_processes_see_whole_commits_while_one_writes)
{
    struct answers_writer *w;
    pid_t child;
    make_index(100);
    child = fork();
    if (child == 0) {
        struct answers_reader *r = reader();
        struct answers_hit hits[16];
        uint64_t position = 0;
        bool whole;
        while (position < 130) {
            unsigned count = 0;
            ck_assert_int_eq(answers_ask(r,
                                         &(struct answers_question){.text = str_of("zebra"),
                                                                    .language = str_of("en"),
                                                                    .limit = 16},
                                         hits, &count),
                             STORE_OK);
            if (count % 3 != 0)
                _exit(1);
            ck_assert_int_eq(answers_reader_position(r, &position, &whole), STORE_OK);
        }
        _exit(0);
    }
    w = reopen();
    for (uint64_t i = 0; i < 30; i++) { /* the three that come together go together */
        for (uint64_t id = 1000; id < 1003; id++) {
            if (i % 2 == 0)
                put(w, id, i, "en", "Zebra", "A zebra.");
            else
                ck_assert_int_eq(answers_remove(w, id), STORE_OK);
        }
        commit(w, 101 + i);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    answers_close(w);
}
END_TEST

static bool stop_at(void *arg)
{
    unsigned *left = arg;
    return *left == 0 || --*left == 0;
}

START_TEST(question_that_is_cancelled_ends_and_the_next_one_works)
{
    struct answers_hit hits[8];
    unsigned count, left = 2;
    make_index(20000);
    struct answers_reader *r = reader();
    ck_assert_int_eq(answers_ask(r,
                                 &(struct answers_question){.text = str_of("tea mountain"),
                                                            .language = str_of("en"),
                                                            .limit = 8,
                                                            .stop = stop_at,
                                                            .arg = &left},
                                 hits, &count),
                     STORE_BUSY);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(answers_ask(r,
                                 &(struct answers_question){.text = str_of("tea mountain"),
                                                            .language = str_of("en"),
                                                            .limit = 8},
                                 hits, &count),
                     STORE_OK);
    ck_assert_uint_gt(count, 0);
    must_answer(r, "number777", 777);
    answers_reader_close(r);
}
END_TEST

/* Marks alone, letters whose length changes with case, scripts that mix, what FTS5 would take for syntax. */
static const char *const hostile[] = {
    "\xcc\x81\xe0\xa4\xbe",
    "\xcc\x81",
    "ȺȺȺ京parcel京ẞẞẞ",
    "ȺȺȺ東京abcẞẞẞ",
    "\" OR \"*",
    "parcel* AND NOT title:x NEAR(a b) ^x -y {a b}:c",
    "\xff\xfe\xc3",
    "\xee\x80\x80parcel\xee\x80\x81x",
    "'';--",
    "İıſKÅ",
};

START_TEST(hostile_questions_are_asked_without_harm)
{
    static const char *const languages[] = {"en", "hi", "tr", "el", "ar", "ta", "ja", "de", ""};
    struct answers_writer *w = create();
    struct answers_hit hits[8];
    unsigned count;
    for (uint64_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
        put(w, i + 1, 1, languages[i], "Parcel 東京", "The parcel. 京 \xe0\xa4\xbe\xcc\x81 ẞ Ⱥ İ");
    for (uint64_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++)
        put(w, 100 + i, 1, languages[i % 8], hostile[i], hostile[i]);
    commit(w, 1);
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_OK);
    answers_close(w);
    struct answers_reader *r = reader();
    for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
        struct str out;
        const struct answers_question q = {
            .text = str_of(hostile[i]), .language = STR("en"), .limit = 8};
        ck_assert_msg(answers_ask(r, &q, hits, &count) == STORE_OK, "question %zu: %s", i,
                      answers_reader_why(r));
        ck_assert_int_eq(answers_excerpt(r, STR("hi"), q.text, STR("The parcel. 京 ẞ Ⱥ"), 9, &out),
                         STORE_OK);
    }
    const struct answers_question parcel = {.text = STR("parcel"), .limit = 8};
    ck_assert_int_eq(answers_ask(r, &parcel, hits, &count), STORE_OK);
    ck_assert_uint_eq(count, 8);
    answers_reader_close(r);
}
END_TEST

/* ---- excerpts ---- */

static const char text[] =
    "We pack each order on the day it comes. Orders of the weekend leave on Monday. "
    "Refunds take five days after your parcel is back. Your bank may need two more. "
    "Gift cards cannot be returned. They are valid for three years.";

static struct str excerpt(struct answers_reader *r, const char *question, size_t most)
{
    struct str out;
    ck_assert_int_eq(answers_excerpt(r, str_of("en"), str_of(question), str_of(text), most, &out),
                     STORE_OK);
    ck_assert_uint_le(out.n, most);
    ck_assert(out.p >= text && out.p + out.n <= text + sizeof(text));
    return out;
}

START_TEST(excerpt_is_the_sentence_that_has_the_words)
{
    answers_close(create());
    struct answers_reader *r = reader();
    struct str s = excerpt(r, "how long does a refund take", 60);
    ck_assert_msg(str_eq(s, STR("Refunds take five days after your parcel is back.")), "%.*s",
                  (int)s.n, s.p);
    s = excerpt(r, "gift card valid", 80);
    ck_assert_msg(memmem(s.p, s.n, "valid", 5) != NULL, "%.*s", (int)s.n, s.p);
    s = excerpt(r, "elephants", 50);
    ck_assert_msg(str_eq(s, STR("We pack each order on the day it comes.")), "%.*s", (int)s.n, s.p);
    ck_assert_uint_eq(excerpt(r, "gift", 10000).n, strlen(text));
    for (size_t most = 0; most < 300; most++)
        excerpt(r, "refund days Monday", most);
    answers_reader_close(r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        documents_are_found_replaced_and_removed,
        what_is_aborted_or_not_committed_is_not_there,
        two_pages_answer_whatever_the_order_of_the_words,
        each_language_has_its_table_and_all_are_asked,
        counts_of_tokens_are_exact_and_go_with_their_documents,
        position_and_documents_are_of_one_transaction_after_kill_9,
        missing_existing_other_version_and_other_store_are_told_apart,
        truncated_and_overwritten_files_are_damaged,
        a_changed_bit_is_found_or_changes_no_hit,
        hostile_questions_are_asked_without_harm,
        flipped_bits_never_crash_a_reader,
        readers_of_other_processes_see_whole_commits_while_one_writes,
        question_that_is_cancelled_ends_and_the_next_one_works,
        excerpt_is_the_sentence_that_has_the_words,
    };
    Suite *suite = suite_create("answers_index");
    TCase *t = tcase_create("index");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
