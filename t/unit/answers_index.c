/*
 * The answer index alone: adding, changing and removing documents; the position in the same
 * transaction; readers that see the writer's commits; questions.
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

START_TEST(documents_are_found_replaced_and_removed)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    uint64_t version;
    put_document(w, 1, 10, "en", "Refunds", "Refunds take five days after we have your parcel.");
    put_document(w, 2, 10, "en", "Shipping", "We ship everywhere in Europe.");
    must_answer(r, "refund", 0);
    commit_to(w, 7);
    ck_assert_uint_eq(first_hit(r, "refund", "en", &version), 1);
    ck_assert_uint_eq(version, 10);
    put_document(w, 1, 11, "en", "Gift cards", "Gift cards are valid for three years.");
    commit_to(w, 8);
    must_answer(r, "refund", 0);
    ck_assert_uint_eq(first_hit(r, "gift card", "en", &version), 1);
    ck_assert_uint_eq(version, 11);
    ck_assert_int_eq(answers_remove(w, 1), STORE_OK);
    ck_assert_int_eq(answers_remove(w, 99), STORE_OK);
    commit_to(w, 9);
    must_answer(r, "gift card", 0);
    must_answer(r, "ship to Europe", 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(an_aborted_or_uncommitted_change_is_invisible)
{
    struct answers_writer *w = create_file();
    put_document(w, 1, 1, "en", "Refunds", "Refunds take five days.");
    commit_to(w, 1);
    put_document(w, 2, 1, "de", "Versand", "Wir versenden nach Europa.");
    ck_assert_int_eq(answers_remove(w, 1), STORE_OK);
    answers_abort(w);
    put_document(w, 3, 1, "fr", "Livraison", "Nous livrons en Europe.");
    answers_close(w);
    struct answers_reader *r = open_reader();
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

START_TEST(two_pages_answer_for_any_word_order)
{
    struct answers_writer *w = create_file();
    put_document(w, 1, 1, "en", "Refunds and returns",
                 "Send it back in 30 days. Refunds take five days.");
    put_document(w, 2, 1, "en", "Late refunds", "If your refund is late, call your bank.");
    commit_to(w, 1);
    struct answers_reader *r = open_reader();
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

START_TEST(each_language_has_a_table_and_a_query_searches_all)
{
    struct answers_writer *w = create_file();
    uint64_t version;
    put_document(w, 1, 1, "en-US", "Refunds", "Refunds take five days.");
    put_document(w, 2, 1, "de", "Rückerstattungen", "Rückerstattungen dauern fünf Tage.");
    put_document(w, 3, 1, "ja", "返金について", "返金には五日かかります。");
    put_document(w, 4, 1, "tlh", "HuchDajmey", "vaghleS.");
    commit_to(w, 1);
    struct answers_reader *r = open_reader();
    ck_assert_uint_eq(first_hit(r, "refunds", "en", &version), 1);
    ck_assert_uint_eq(first_hit(r, "Wie lange dauert die Rückerstattung?", "de", &version), 2);
    ck_assert_uint_eq(first_hit(r, "ruckerstattung", "de", &version), 2);
    ck_assert_uint_eq(first_hit(r, "返金", "ja", &version), 3);
    ck_assert_uint_eq(first_hit(r, "huchdajmey", "", &version), 4);
    answers_reader_close(r);
    put_document(w, 2, 2, "en", "Shipping", "We ship to Europe."); /* into another table */
    commit_to(w, 2);
    r = open_reader();
    ck_assert_uint_eq(first_hit(r, "Rückerstattung", "de", &version), 0);
    ck_assert_uint_eq(first_hit(r, "shipping", "en", &version), 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

/* ---- token counts ---- */

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

START_TEST(token_counts_are_exact_and_follow_deletions)
{
    struct answers_writer *w = create_file();
    for (uint64_t id = 1; id <= 50; id++)
        put_document(w, id, 1, "en", "Tea", id % 2 == 0 ? "green green tea" : "black tea");
    commit_to(w, 1);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='green'"), 25);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='tea'"), 50);
    for (uint64_t id = 1; id <= 50; id += 2)
        put_document(w, id, 2, "en", "Tea", "green tea");
    for (uint64_t id = 2; id <= 50; id += 2)
        ck_assert_int_eq(answers_remove(w, id), STORE_OK);
    commit_to(w, 2);
    ck_assert_int_eq(number("SELECT documents FROM token WHERE token='green'"), 25);
    ck_assert_int_eq(number("SELECT count(*) FROM token WHERE token='black'"), 0);
    ck_assert_int_eq(number("SELECT documents FROM tables"), 25);
    ck_assert_int_eq(number("SELECT words FROM tables"), 75);
    for (uint64_t id = 1; id <= 50; id++)
        ck_assert_int_eq(answers_remove(w, id), STORE_OK);
    commit_to(w, 3);
    ck_assert_int_eq(
        number("SELECT (SELECT count(*) FROM token) + (SELECT words + documents FROM tables)"), 0);
    answers_close(w);
}
END_TEST

/* ---- crashes ---- */

/* A child commits documents 1, 2, 3 ... with their number as the position until it is killed. */
static void write_until_killed(int ready)
{
    struct answers_writer *w = reopen_file();
    for (uint64_t id = answers_position(w) + 1;; id++) {
        char text[64];
        snprintf(text, sizeof(text), "number%llu and tea", (unsigned long long)id);
        put_document(w, id, id, "en", "Tea", text);
        commit_to(w, id);
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

START_TEST(position_and_documents_match_after_kill_9)
{
    answers_close(create_file());
    for (unsigned round = 0; round < 10; round++) {
        kill_a_writer(round * 733);
        struct answers_writer *w = reopen_file();
        int64_t position = (int64_t)answers_position(w);
        answers_close(w);
        ck_assert_int_eq(number("SELECT count(*) FROM document"), position);
        ck_assert_int_eq(number("SELECT max(id) FROM document"), position);
        ck_assert_int_eq(number("SELECT documents FROM token WHERE token='tea'"), position);
        ck_assert_int_eq(number("SELECT count(*) FROM text_1_content"), position);
    }
}
END_TEST

/* ---- reading ---- */

START_TEST(readers_in_other_processes_see_whole_commits)
{
    struct answers_writer *w;
    pid_t child;
    make_index(100);
    child = fork();
    if (child == 0) {
        struct answers_reader *r = open_reader();
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
    w = reopen_file();
    for (uint64_t i = 0; i < 30;
         i++) { /* the three that are written together are deleted together */
        for (uint64_t id = 1000; id < 1003; id++) {
            if (i % 2 == 0)
                put_document(w, id, i, "en", "Zebra", "A zebra.");
            else
                ck_assert_int_eq(answers_remove(w, id), STORE_OK);
        }
        commit_to(w, 101 + i);
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

START_TEST(a_cancelled_question_ends_and_the_next_works)
{
    struct answers_hit hits[8];
    unsigned count, left = 2;
    make_index(20000);
    struct answers_reader *r = open_reader();
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

/* Combining marks alone, letters whose length changes with case, mixed scripts, FTS5 syntax. */
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

START_TEST(hostile_questions_do_no_harm)
{
    static const char *const languages[] = {"en", "hi", "tr", "el", "ar", "ta", "ja", "de", ""};
    struct answers_writer *w = create_file();
    struct answers_hit hits[8];
    unsigned count;
    for (uint64_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
        put_document(w, i + 1, 1, languages[i], "Parcel 東京",
                     "The parcel. 京 \xe0\xa4\xbe\xcc\x81 ẞ Ⱥ İ");
    for (uint64_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++)
        put_document(w, 100 + i, 1, languages[i % 8], hostile[i], hostile[i]);
    commit_to(w, 1);
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_OK);
    answers_close(w);
    struct answers_reader *r = open_reader();
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

/* ---- snippets ---- */

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

START_TEST(the_snippet_is_the_sentence_with_the_words)
{
    struct answers_writer *w = create_file();
    put_document(w, 1, 1, "en", "Any", "text");
    commit_to(w, 1);
    answers_close(w);
    struct answers_reader *r = open_reader();
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

/* Thousands of occurrences of the question's words: a snippet costs one reading of the text. */
START_TEST(a_text_that_repeats_a_word_has_a_snippet)
{
    static char repeated[64 * 1024];
    struct answers_writer *w = create_file();
    struct str out;
    size_t n = 0;
    while (n + 40 < sizeof(repeated))
        n += (size_t)sprintf(repeated + n, "咖啡机");
    n += (size_t)sprintf(repeated + n, "。Coffee grinder. ");
    put_document(w, 1, 1, "en", "Any", "text");
    commit_to(w, 1);
    answers_close(w);
    struct answers_reader *r = open_reader();
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(answers_excerpt(r, STR("en"), STR("咖啡机 coffee grinder"),
                                         (struct str){repeated, n}, 60, &out),
                         STORE_OK);
        ck_assert_ptr_nonnull(memmem(out.p, out.n, "grinder", 7));
    }
    answers_reader_close(r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        documents_are_found_replaced_and_removed,
        an_aborted_or_uncommitted_change_is_invisible,
        two_pages_answer_for_any_word_order,
        each_language_has_a_table_and_a_query_searches_all,
        token_counts_are_exact_and_follow_deletions,
        position_and_documents_match_after_kill_9,
        readers_in_other_processes_see_whole_commits,
        a_cancelled_question_ends_and_the_next_works,
        hostile_questions_do_no_harm,
        the_snippet_is_the_sentence_with_the_words,
        a_text_that_repeats_a_word_has_a_snippet,
    };
    Suite *suite = suite_create("answers_index");
    TCase *t = tcase_create("file");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
