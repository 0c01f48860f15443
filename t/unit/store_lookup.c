/*
 * Lookups over synced content, and the log of changed documents that answer files follow: indexed
 * documents are found, removed ones are not.
 */
#include "t/kit/store_lookup.h"

#include <unistd.h>

/* ---- lookups ---- */

START_TEST(a_synced_document_is_found_once_indexed)
{
    begin();
    ck_assert_uint_eq(look(&agent, "How do I return a parcel?").count, 0);
    sync_one(7, "Returns",
             "We are a shop. Send the parcel back within 30 days. Refunds take a week.");
    sync_one(8, "Imprint", "Us.");
    ck_assert_uint_eq(unindexed(), 3); /* the file must be built, too */
    follow();
    ck_assert_uint_eq(unindexed(), 0);
    ck_assert_uint_eq(state().indexed, 2);
    struct looked l = look(&agent, "How do I return a PARCEL?");
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(l.wp_ids[0], 7);
    ck_assert_str_eq(l.title, "Returns");
    ck_assert_str_eq(l.excerpt, "Send the parcel back within 30 days. Refunds take a week.");
    ck_assert_uint_eq(look(&agent, "sku-77").count, 2);
    sync_one(7, "Returns", "Nothing is taken back any more.");
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 0);
    ck_assert_uint_eq(look(&agent, "taken back").count, 1);
    sync_one(7, "Returns", "");
    ck_assert_uint_eq(look(&agent, "taken back").count, 0); /* before it is indexed, too */
    follow();
    ck_assert_uint_eq(look(&agent, "taken back").count, 0);
    sync_one(7, "Returns", "A parcel again.");
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    end();
}
END_TEST

START_TEST(a_changed_document_is_found_by_old_words_until_indexed)
{
    begin();
    sync_one(1, "Returns", "The parcel goes back.");
    follow();
    sync_one(1, "Returns", "The letter goes back.");
    struct looked l = look(&agent, "parcel");
    ck_assert_uint_eq(l.count, 1);
    ck_assert_str_eq(l.excerpt, "The letter goes back.");
    ck_assert_uint_eq(look(&agent, "letter").count, 0);
    ck_assert_uint_eq(state().generation, 1);
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 0);
    ck_assert_uint_eq(look(&agent, "letter").count, 1);
    end();
}
END_TEST

START_TEST(a_price_change_is_not_reindexed)
{
    begin();
    sync_one(1, "Grinder", "It grinds.");
    follow();
    const uint64_t last = state().last;
    shop_price = 125000;
    sync_one(1, "Grinder", "It grinds.");
    ck_assert_uint_eq(unindexed(), 0);
    ck_assert_uint_eq(state().last, last);
    ck_assert_uint_eq(look(&agent, "grinder").count, 1);
    end();
}
END_TEST

START_TEST(the_log_has_one_row_for_each_document)
{
    char text[32];
    begin();
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        sync_one(1 + (uint64_t)i % 3, "Page", text);
    }
    ck_assert_uint_eq(unindexed(), 4); /* and the file to build */
    kit_check_clean(kit.s);
    follow();
    ck_assert_uint_eq(unindexed(), 0);
    end();
}
END_TEST

START_TEST(a_document_missing_from_a_full_sync_is_hidden_before_its_purge)
{
    struct buf rows = {0};
    begin();
    for (uint64_t i = 1; i <= 100; i++)
        pack_page(&rows, i, "Parcel", "parcel");
    sync_rows(&agent, &rows, "one", true);
    follow();
    pack_page(&rows, 77, "Parcel", "parcel");
    pack_page(&rows, 78, "Parcel", "no longer one, but with many more words");
    sync_rows(&agent, &rows, "two", true);
    for (int i = 0; i < 3; i++) {
        struct looked l = look(&agent, "parcel");
        ck_assert_uint_eq(l.count, 2);
        ck_assert_uint_eq(l.wp_ids[0] + l.wp_ids[1], 77 + 78);
        kit_check_clean(kit.s);
        if (i == 0)
            follow();
        else if (i == 1)
            kit_purge(&kit, 9);
    }
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 2);
    end();
}
END_TEST

/* More documents than are scored contain the word, and all but the newest are deleted. */
START_TEST(newer_documents_are_found_behind_many_deleted_ones)
{
    struct buf rows = {0};
    begin();
    for (uint64_t i = 1; i <= 6000; i++) {
        pack_page(&rows, i, "Parcel", "parcel");
        if (i % 100 == 0)
            sync_rows(&agent, &rows, "one", i == 6000);
    }
    for (uint64_t i = 10001; i <= 10010; i++)
        pack_page(&rows, i, "Parcel", "parcel");
    sync_rows(&agent, &rows, "two", true);
    follow();
    struct looked l = look(&agent, "parcel");
    ck_assert_uint_eq(l.count, 4);
    ck_assert_uint_gt(l.wp_ids[0], 10000);
    end();
}
END_TEST

static bool stop_now(void *arg)
{
    (void)arg;
    return true;
}

START_TEST(a_cancelled_question_ends)
{
    begin();
    for (uint64_t i = 1; i <= 50; i++)
        sync_one(i, "Parcel", "parcel");
    follow();
    ck_status(look_with(&agent, "parcel", stop_now).status, STORE_AGAIN);
    ck_assert_uint_eq(look(&agent, "parcel").count, 4);
    end();
}
END_TEST

/* ---- agents ---- */

static void expect_no_rows(enum space space)
{
    MDB_txn *txn;
    struct cursor w = {0};
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    ck_status(cursor_begin(kit.s, txn, &w, space), STORE_NOT_FOUND);
    cursor_end(&w);
    store_read_end(kit.s);
}

START_TEST(agents_find_only_their_documents_and_a_deleted_agent_leaves_none)
{
    struct buf rows = {0};
    begin();
    struct ulid other = new_agent();
    for (uint64_t i = 1; i <= 60; i++)
        pack_page(&rows, i, "Parcel", i % 2 ? "parcel one" : "parcel two");
    sync_rows(&other, &rows, "", false);
    sync_one(1, "Parcel", "mine");
    if (_i == 0) /* otherwise its file is not built yet */
        follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, _i == 0 ? 1 : 0);
    ck_assert_uint_eq(look(&other, "parcel").count, _i == 0 ? 4 : 0);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = other}),
              STORE_OK);
    ck_assert_uint_eq(look(&other, "parcel").count, 0);
    for (bool more = true; more;) { /* interrupted at any point, it is consistent */
        more =
            kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 5}) == STORE_OK;
        kit_check_clean(kit.s);
        kit_follow(&kit, 2);
    }
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    ck_status(
        kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}),
        STORE_OK);
    ck_assert_uint_eq(look(&agent, "parcel").count, 0);
    kit_purge(&kit, 3);
    follow();
    expect_no_rows(SPACE_ANSWERS);
    expect_no_rows(SPACE_ANSWER_FILE);
    expect_no_rows(SPACE_ANSWERS_LOG);
    ck_assert_uint_eq(unindexed(), 0);
    ck_assert_uint_eq(files(), 0);
    end();
}
END_TEST

/* Descriptors of answer files, including deleted ones. */
static size_t open_files(void)
{
    char link[64], to[512];
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, to, sizeof(to) - 1);
        to[n > 0 ? n : 0] = '\0';
        count += strstr(to, "/answers/") != NULL;
    }
    return count;
}

START_TEST(files_of_a_deleted_agent_are_closed_by_a_thread_without_queries)
{
    begin();
    ck_assert(!store_tidy(kit.s));
    sync_one(1, "Parcel", "mine");
    follow();
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    ck_assert(store_tidy(kit.s));
    ck_assert_uint_gt(open_files(), 0);
    const struct store_change deletes = {.kind = CHANGE_AGENT_DELETE, .agent = agent};
    ck_status(kit_status(&kit, &deletes), STORE_OK);
    kit_purge(&kit, 100);
    follow();
    ck_assert(!store_tidy(kit.s));
    ck_assert_uint_eq(open_files(), 0);
    end();
}
END_TEST

START_TEST(an_agent_does_not_wait_for_another_with_many_documents)
{
    struct buf rows = {0};
    begin();
    struct ulid large = new_agent();
    for (uint64_t i = 1; i <= 5000; i++) {
        pack_page(&rows, i, "Parcel", "parcel");
        if (i % 100 == 0)
            sync_rows(&large, &rows, "", false);
    }
    sync_one(1, "Parcel", "mine");
    kit_follow(
        &kit,
        5); /* the sweep, and two steps per file: a step can end before its file is complete */
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    ck_assert_uint_eq(look(&large, "parcel").count, 0);
    follow();
    ck_assert_uint_eq(look(&large, "parcel").count, 4);
    end();
}
END_TEST

START_TEST(another_default_language_rebuilds_the_file)
{
    begin();
    sync_one(1, "Versand", "Wir liefern in alle Häuser.");
    follow();
    ck_assert_uint_eq(look(&agent, "Haus").count, 0);
    struct store_change c = {
        .kind = CHANGE_AGENT_UPDATE, .agent = agent, .fields = AGENT_HAS_SETTINGS};
    c.data = STR("\"theme\":{\"language_default\":\"fr\"},\"language_default\":\"de\"");
    ck_status(kit_status(&kit, &c), STORE_OK);
    ck_assert_uint_eq(state().generation, 2);
    follow();
    ck_assert_uint_eq(look(&agent, "Haus").count, 1);
    ck_status(kit_status(&kit, &c), STORE_OK);
    ck_assert_uint_eq(state().generation, 2);
    end();
}
END_TEST

/* ---- damage to the log, found by the check ---- */

static void log_key(struct key *k, uint64_t number)
{
    key_of(k, SPACE_ANSWERS_LOG, &agent);
    key_u64(k, number);
}

static void lose_row(struct store_txn *t)
{
    struct key k;
    log_key(&k, 2);
    txn_del(t, SPACE_ANSWERS_LOG, &k);
}

static void other_document(struct store_txn *t)
{
    struct key k;
    const uint64_t document = 1;
    log_key(&k, 2);
    txn_put(t, SPACE_ANSWERS_LOG, &k, &document, sizeof(document));
}

static void row_of_no_change(struct store_txn *t)
{
    struct key k;
    const uint64_t document = 1;
    log_key(&k, 9);
    txn_put(t, SPACE_ANSWERS_LOG, &k, &document, sizeof(document));
}

static void row_without_number(struct store_txn *t)
{
    struct key k;
    const uint64_t document = 1;
    key_of(&k, SPACE_ANSWERS_LOG, &agent);
    txn_put(t, SPACE_ANSWERS_LOG, &k, &document, sizeof(document));
}

static void no_longer_waits(struct store_txn *t)
{
    struct key k;
    log_key(&k, 0);
    txn_del(t, SPACE_ANSWERS_LOG, &k);
}

static void record_put(struct store_txn *t, struct answer_file_record r)
{
    struct key k;
    key_of(&k, SPACE_ANSWER_FILE, &agent);
    txn_put(t, SPACE_ANSWER_FILE, &k, &r, sizeof(r));
}

static void lose_file_record(struct store_txn *t)
{
    struct key k;
    key_of(&k, SPACE_ANSWER_FILE, &agent);
    txn_del(t, SPACE_ANSWER_FILE, &k);
}

static void lose_last(struct store_txn *t)
{
    struct key k;
    key_of(&k, SPACE_ANSWERS, &agent);
    txn_del(t, SPACE_ANSWERS, &k);
}

static void indexed_too_far(struct store_txn *t)
{
    record_put(t, (struct answer_file_record){.indexed = 3, .generation = 1});
}

static void indexed_though_in_the_log(struct store_txn *t)
{
    record_put(t, (struct answer_file_record){.indexed = 1, .generation = 1});
}

static void no_such_state(struct store_txn *t)
{
    record_put(t, (struct answer_file_record){.generation = 1, .state = 9});
}

static void other_count(struct store_txn *t)
{
    struct key k;
    const uint64_t count = 9;
    key_local(&k, 'a');
    txn_put(t, SPACE_LOCAL, &k, &count, sizeof(count));
}

static void (*const log_damages[])(struct store_txn *t) = {
    lose_row,        other_document,   row_of_no_change, row_without_number,
    no_longer_waits, indexed_too_far,  no_such_state,    indexed_though_in_the_log,
    other_count,     lose_file_record, lose_last};

START_TEST(the_check_finds_a_log_that_differs_from_its_documents)
{
    struct store_txn *t;
    begin();
    sync_one(1, "Returns", "A parcel.");
    sync_one(2, "Shipping", "Two parcels.");
    kit_check_clean(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    log_damages[_i](t);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_gt(kit_problems(kit.s), 0);
    kit_close(&kit);
}
END_TEST

/*
 * Columns: the reported state, its generation, the change's number, the result while the file is
 * being built.
 */
static const struct {
    uint32_t what, generation;
    uint64_t number;
    enum store_status status;
} notes[] = {
    {ANSWERS_NOTE_INDEXED, 1, 1, STORE_STALE}, {ANSWERS_NOTE_LOST, 1, 0, STORE_STALE},
    {ANSWERS_NOTE_BUILT, 2, 1, STORE_STALE},   {ANSWERS_NOTE_BUILT, 1, 3, STORE_INVALID},
    {ANSWERS_NOTE_DELETED, 1, 0, STORE_STALE}, {99, 1, 0, STORE_INVALID},
    {ANSWERS_NOTE_BUILT, 1, 1, STORE_OK},
};

START_TEST(a_report_about_a_file_must_fit_its_state)
{
    begin();
    sync_one(1, "Returns", "A parcel.");
    sync_one(2, "Shipping", "Two parcels.");
    struct store_change c = {.kind = CHANGE_ANSWERS, .agent = agent, .code = ANSWERS_FORMAT};
    c.fields = notes[_i].what;
    c.attempt = notes[_i].generation;
    c.id = notes[_i].number;
    ck_status(kit_status(&kit, &c), notes[_i].status);
    ck_assert_uint_eq(unindexed(), notes[_i].status == STORE_OK ? 1 : 3);
    c.code++; /* of another version */
    ck_assert_int_ne(kit_status(&kit, &c), STORE_OK);
    c.code--;
    c.agent.b[0] ^= 1;
    ck_status(kit_status(&kit, &c), notes[_i].what == 99 ? STORE_INVALID : STORE_STALE);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_lookup");
    TCase *tcase = tcase_create("lookup");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_synced_document_is_found_once_indexed);
    tcase_add_test(tcase, a_changed_document_is_found_by_old_words_until_indexed);
    tcase_add_test(tcase, a_price_change_is_not_reindexed);
    tcase_add_test(tcase, the_log_has_one_row_for_each_document);
    tcase_add_test(tcase, a_document_missing_from_a_full_sync_is_hidden_before_its_purge);
    tcase_add_test(tcase, newer_documents_are_found_behind_many_deleted_ones);
    tcase_add_test(tcase, a_cancelled_question_ends);
    tcase_add_loop_test(tcase, agents_find_only_their_documents_and_a_deleted_agent_leaves_none, 0,
                        2);
    tcase_add_test(tcase, files_of_a_deleted_agent_are_closed_by_a_thread_without_queries);
    tcase_add_test(tcase, an_agent_does_not_wait_for_another_with_many_documents);
    tcase_add_test(tcase, another_default_language_rebuilds_the_file);
    tcase_add_loop_test(tcase, the_check_finds_a_log_that_differs_from_its_documents, 0,
                        sizeof(log_damages) / sizeof(*log_damages));
    tcase_add_loop_test(tcase, a_report_about_a_file_must_fit_its_state, 0,
                        sizeof(notes) / sizeof(*notes));
    suite_add_tcase(suite, tcase);
    return kit_run(suite);
}
