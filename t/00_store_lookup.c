/*
 * Look-ups over what bulk sync brought: what was acknowledged is found at once, what went is not, whoever removed it, and store_check holds
 * the index against the documents.
 */
#include "t/00_store_kit.h"

#include "store/text.h"

#include <time.h>

/* How much slower a build with sanitizers may be. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOW 8
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOW 8
#endif
#endif
#ifndef SLOW
#define SLOW 1
#endif

static struct kit kit;
static uint64_t workspace;
static struct ulid agent;

static struct ulid new_agent(void)
{
    struct store_answer a = kit_apply(
        &kit, &(struct store_change){
                  .kind = CHANGE_AGENT_CREATE, .workspace = workspace, .name = STR("Shop"), .data = STR("{}"), .fields = AGENT_PUBLISHED});
    ck_status(a.status, STORE_OK);
    return a.first;
}

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = new_agent();
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

static void pack(struct buf *rows, uint64_t wp_id, const char *title, const char *text)
{
    uint8_t hash[16] = {0};
    struct store_synced d = {.title = str_of(title),
                             .text = str_of(text),
                             .taxonomy = STR("Help\nShop"),
                             .sku = STR("SKU-77"),
                             .url = STR("https://shop.example/p"),
                             .price = MONEY_NONE,
                             .regular_price = MONEY_NONE,
                             .sale_price = MONEY_NONE};
    for (size_t i = 0; text[i] != '\0'; i++)
        hash[i % 16] = (uint8_t)(hash[i % 16] * 31 + (uint8_t)text[i]);
    sync_pack(rows, text[0] == '\0' ? SYNC_DELETE : SYNC_UPSERT, wp_id, hash, 0, text[0] == '\0' ? NULL : &d);
}

static void sync_rows(const struct ulid *to, struct buf *rows, const char *sync_id, bool complete)
{
    struct store_answer a = kit_apply(&kit, &(struct store_change){.kind = CHANGE_SYNC,
                                                                   .workspace = workspace,
                                                                   .agent = *to,
                                                                   .name = STR("shop.example"),
                                                                   .status = SYNCED_POST,
                                                                   .fields = complete ? SYNC_COMPLETE : 0,
                                                                   .text = str_of(sync_id),
                                                                   .data = buf_view(rows)});
    ck_status(a.status, STORE_OK);
    buf_free(rows);
}

static void sync_one(uint64_t wp_id, const char *title, const char *text)
{
    struct buf rows = {0};
    pack(&rows, wp_id, title, text);
    sync_rows(&agent, &rows, "", false);
}

struct looked {
    size_t count;
    uint64_t wp_ids[STORE_HITS_MAX];
    char excerpt[512], title[64];
    double share;
};

static void take_hits(void *arg, enum store_status status, const struct store_hit *hits, size_t count)
{
    struct looked *l = arg;
    ck_status(status, count > 0 ? STORE_OK : STORE_NOT_FOUND);
    l->count = count;
    for (size_t i = 0; i < count; i++)
        l->wp_ids[i] = hits[i].document.wp_id;
    if (count == 0)
        return;
    snprintf(l->excerpt, sizeof(l->excerpt), "%.*s", (int)hits[0].excerpt.n, hits[0].excerpt.p);
    snprintf(l->title, sizeof(l->title), "%.*s", (int)hits[0].document.title.n, hits[0].document.title.p);
    l->share = hits[0].share;
}

static struct looked look(const struct ulid *of, const char *question)
{
    struct looked l = {0};
    store_find(kit.s, of, str_of(question), 4, 60, take_hits, &l);
    store_read_end(kit.s);
    return l;
}

START_TEST(what_a_sync_brought_is_found_as_soon_as_it_is_committed)
{
    begin();
    ck_assert_uint_eq(look(&agent, "How do I return a parcel?").count, 0);
    sync_one(7, "Returns", "We are a shop. Send the parcel back within 30 days. Refunds take a week.");
    sync_one(8, "Imprint", "Us.");
    struct looked l = look(&agent, "How do I return a PARCEL?");
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(l.wp_ids[0], 7);
    ck_assert_str_eq(l.title, "Returns");
    ck_assert_str_eq(l.excerpt, "Send the parcel back within 30 days. Refunds take a week.");
    ck_assert_uint_eq(look(&agent, "sku-77").count, 2);
    sync_one(7, "Returns", "Nothing is taken back any more.");
    ck_assert_uint_eq(look(&agent, "parcel").count, 0);
    ck_assert_uint_eq(look(&agent, "taken").count, 1);
    sync_one(7, "Returns", "");
    ck_assert_uint_eq(look(&agent, "taken").count, 0);
    sync_one(7, "Returns", "A parcel again.");
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    end();
}
END_TEST

START_TEST(what_a_complete_sync_did_not_see_is_not_found_before_it_is_purged)
{
    struct buf rows = {0};
    begin();
    for (uint64_t i = 1; i <= 100; i++)
        pack(&rows, i, "Parcel", "parcel");
    sync_rows(&agent, &rows, "one", true);
    pack(&rows, 77, "Parcel", "parcel");
    pack(&rows, 78, "Parcel", "no longer one, but with many more words");
    sync_rows(&agent, &rows, "two", true);
    struct looked l = look(&agent, "parcel");
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.wp_ids[0] + l.wp_ids[1], 77 + 78);
    kit_check_clean(kit.s);
    kit_purge(&kit, 9);
    ck_assert_uint_eq(look(&agent, "parcel").count, 2);
    end();
}
END_TEST

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The least CPU of some look-ups that find ${count}. */
static double cost(const char *question, size_t count)
{
    double least = 1e12;
    for (int i = 0; i < 9; i++) {
        double before = cpu_us();
        ck_assert_uint_eq(look(&agent, question).count, count);
        double us = cpu_us() - before;
        least = us < least ? us : least;
    }
    return least;
}

#define SHOP 20000

static void sync_range(uint64_t from, uint64_t to, const char *sync_id, bool complete)
{
    struct buf rows = {0};
    for (uint64_t i = from; i <= to; i++) {
        pack(&rows, i, "Parcel", "parcel");
        if (i % 100 == 0)
            sync_rows(&agent, &rows, sync_id, complete && i == to);
    }
}

/* What was not seen is passed over at the cost of a bit: half a microsecond for each of them would be a hundred times as much. */
START_TEST(a_look_up_does_not_pay_for_what_is_not_purged_yet)
{
    begin();
    sync_range(1, SHOP, "one", true);
    double before = cost("parcel", 4);
    if (_i == 1)
        kit.s->hide_items = 1000; /* a large shop: not all of it is hidden by the end of the sync */
    sync_range(SHOP - 99, SHOP, "two", true); /* the last in the index, so that all others come first */
    kit_check_clean(kit.s);
    for (int i = 0; _i == 1 && i < 40; i++) {
        ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 50}), STORE_OK);
        ck_assert_uint_eq(look(&agent, "parcel").count, 4);
    }
    double after = cost("parcel", 4);
    ck_assert_msg(after < SLOW * (12 * before + 200), "a look-up took %.0f us before the sync, and %.0f us after", before, after);
    sync_range(1, 100, "two", false); /* too late for the sync, but of it: they come back, as others */
    ck_assert_uint_eq(look(&agent, "parcel").count, 4);
    kit_check_clean(kit.s);
    while (kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 5000}) == STORE_OK)
        continue;
    MDB_txn *txn;
    struct walk w = {0};
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    ck_status(walk_begin(kit.s, txn, &w, SPACE_HIDDEN), STORE_NOT_FOUND);
    walk_end(&w);
    store_read_end(kit.s);
    end();
}
END_TEST

/* ---- batches of the largest texts ---- */

/* The ${n}-th ideograph of an endless row. */
static size_t ideograph(char *to, uint32_t n)
{
    uint32_t c = 0x4e00 + n * 2654435761u % 20000;
    to[0] = (char)(0xe0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 0x3f));
    to[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

#define LARGE 52000

static void pack_large(struct buf *rows, uint64_t wp_id, unsigned version)
{
    static char text[LARGE + 64];
    char title[32];
    size_t n = (size_t)sprintf(text, "begins%uv%u ", (unsigned)wp_id, version);
    for (uint32_t i = 0; n < LARGE; i++)
        n += ideograph(text + n, (uint32_t)wp_id * 100003 + version * 7919 + i * i);
    sprintf(text + n, " ends%uv%u", (unsigned)wp_id, version);
    sprintf(title, "Large %u", (unsigned)wp_id);
    pack(rows, wp_id, title, text);
}

/* All of it is one transaction, for which others wait; so what is read of each text is bounded where they are many. */
START_TEST(a_batch_of_the_largest_texts_is_written_soon)
{
    begin();
    for (unsigned version = 0; version < 2; version++) {
        struct buf rows = {0};
        for (uint64_t i = 1; i <= 100; i++)
            pack_large(&rows, i, version);
        double before = cpu_us();
        sync_rows(&agent, &rows, "", false);
        double took = cpu_us() - before;
        ck_assert_msg(took < (version + 1) * SLOW * 200e3, "a batch took %.0f us of the processor", took);
        kit_check_clean(kit.s);
        for (unsigned i = 1; i <= 100; i += 33) {
            char word[32];
            sprintf(word, "begins%uv%u", i, version);
            ck_assert_uint_eq(look(&agent, word).count, 1);
            sprintf(word, "ends%uv%u", i, version);
            ck_assert_uint_eq(look(&agent, word).count, 0);
        }
    }
    ck_assert_uint_eq(look(&agent, "begins1v0").count, 0);
    struct buf one = {0};
    pack(&one, 7, "Small", "begins and ends");
    sync_rows(&agent, &one, "", false);
    ck_assert_uint_eq(look(&agent, "begins7v1").count, 0);
    end();
}
END_TEST

START_TEST(a_text_among_small_ones_is_read_whole)
{
    static char text[LARGE];
    struct buf rows = {0};
    size_t n = 0;
    begin();
    for (unsigned i = 0; n + 20 < sizeof(text); i++)
        n += (size_t)sprintf(text + n, "word%u ", i);
    sprintf(text + n, "last");
    for (uint64_t i = 1; i <= 99; i++)
        pack(&rows, i, "Small", "a small text");
    pack(&rows, 100, "Long", text);
    sync_rows(&agent, &rows, "", false);
    ck_assert_uint_eq(look(&agent, "last").count, 1);
    end();
}
END_TEST

START_TEST(agents_find_their_own_and_nothing_is_left_of_one_that_is_deleted)
{
    struct buf rows = {0};
    begin();
    struct ulid other = new_agent();
    for (uint64_t i = 1; i <= 60; i++)
        pack(&rows, i, "Parcel", i % 2 ? "parcel one" : "parcel two");
    sync_rows(&other, &rows, "", false);
    sync_one(1, "Parcel", "mine");
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    ck_assert_uint_eq(look(&other, "parcel").count, 4);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE, .agent = other}), STORE_OK);
    ck_assert_uint_eq(look(&other, "parcel").count, 0);
    for (bool more = true; more;) { /* cut off anywhere, it agrees with itself */
        more = kit_status(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 5}) == STORE_OK;
        kit_check_clean(kit.s);
    }
    ck_assert_uint_eq(look(&agent, "parcel").count, 1);
    ck_status(kit_status(&kit, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = workspace}), STORE_OK);
    ck_assert_uint_eq(look(&agent, "parcel").count, 0);
    kit_purge(&kit, 3);
    MDB_txn *txn;
    struct walk w = {0};
    ck_status(store_snapshot(kit.s, &txn), STORE_OK);
    static const enum space spaces[] = {SPACE_TEXT, SPACE_TEXT_PART, SPACE_TEXT_DEAD, SPACE_TEXT_ROW};
    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
        ck_status(walk_begin(kit.s, txn, &w, spaces[i]), STORE_NOT_FOUND);
        walk_end(&w);
    }
    store_read_end(kit.s);
    end();
}
END_TEST

/* ---- damage, each found by the check ---- */

static void flip_word(struct store_txn *t)
{
    struct text_manifest m;
    struct key k;
    MDB_val v;
    ck_status(text_manifest(t->s, t->mdb, &agent, &m), STORE_OK);
    text_part_key(&k, SPACE_TEXT_PART, &agent, m.parts[m.count - 1].part);
    ck_status(txn_get(t, SPACE_TEXT_PART, &k, &v), STORE_OK);
    char *copy = malloc(v.mv_size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, v.mv_data, v.mv_size);
    copy[sizeof(struct text_part_head)] ^= 1; /* the first hash */
    txn_put(t, SPACE_TEXT_PART, &k, copy, v.mv_size);
    free(copy);
}

static void head_change(struct store_txn *t, uint64_t documents, uint64_t words)
{
    struct text_manifest m;
    struct key k;
    char copy[4096];
    ck_status(text_manifest(t->s, t->mdb, &agent, &m), STORE_OK);
    m.head.documents += documents;
    m.head.words += words;
    memcpy(copy, &m.head, sizeof(m.head));
    memcpy(copy + sizeof(m.head), m.parts, m.count * sizeof(*m.parts));
    key_space(&k, SPACE_TEXT);
    key_bytes(&k, agent.b, ULID_BYTES);
    txn_put(t, SPACE_TEXT, &k, copy, sizeof(m.head) + m.count * sizeof(*m.parts));
}

static void count_document(struct store_txn *t)
{
    head_change(t, 1, 0);
}

static void count_word(struct store_txn *t)
{
    head_change(t, 0, 1);
}

static void forget(struct store_txn *t)
{
    text_forget(t, 1);
}

static void kill_row(struct store_txn *t)
{
    struct text_manifest m;
    struct key k;
    uint64_t bits[TEXT_ROWS / 64] = {1};
    ck_status(text_manifest(t->s, t->mdb, &agent, &m), STORE_OK);
    text_part_key(&k, SPACE_TEXT_DEAD, &agent, m.parts[0].part);
    txn_put(t, SPACE_TEXT_DEAD, &k, bits, sizeof(bits));
    struct text_part_row rows[64];
    memcpy(rows, m.parts, m.count * sizeof(*rows));
    rows[0].dead = 1;
    m.head.documents--;
    char copy[4096];
    memcpy(copy, &m.head, sizeof(m.head));
    memcpy(copy + sizeof(m.head), rows, m.count * sizeof(*rows));
    key_space(&k, SPACE_TEXT);
    key_bytes(&k, agent.b, ULID_BYTES);
    txn_put(t, SPACE_TEXT, &k, copy, sizeof(m.head) + m.count * sizeof(*m.parts));
}

static void other_text(struct store_txn *t)
{
    struct key k;
    MDB_val v;
    char copy[1024];
    key_id(&k, SPACE_DOCUMENT, 1);
    ck_status(txn_get(t, SPACE_DOCUMENT, &k, &v), STORE_OK);
    size_t n = v.mv_size;
    ck_assert_uint_le(n, sizeof(copy));
    memcpy(copy, v.mv_data, n);
    char *word = memmem(copy, n, "parcel", 6);
    ck_assert_ptr_nonnull(word);
    *word = 'q';
    txn_put(t, SPACE_DOCUMENT, &k, copy, n);
}

static void hide_what_is_there(struct store_txn *t)
{
    struct key k;
    uint8_t bits[512] = {1 << 1}; /* document 1 */
    key_id(&k, SPACE_HIDDEN, 1);
    key_u64(&k, 0);
    txn_put(t, SPACE_HIDDEN, &k, bits, sizeof(bits));
}

/* Columns: what is damaged. */
static void (*const damages[])(struct store_txn *t) = {flip_word, count_document, count_word, forget, kill_row, other_text, hide_what_is_there};

START_TEST(the_check_finds_an_index_that_is_not_its_documents)
{
    struct store_txn *t;
    begin();
    sync_one(1, "Returns", "A parcel.");
    sync_one(2, "Shipping", "Two parcels.");
    kit_check_clean(kit.s);
    ck_status(store_begin(kit.s, &t), STORE_OK);
    damages[_i](t);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_gt(kit_problems(kit.s), 0);
    kit_close(&kit);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_lookup");
    TCase *tcase = tcase_create("lookup");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_a_sync_brought_is_found_as_soon_as_it_is_committed);
    tcase_add_test(tcase, what_a_complete_sync_did_not_see_is_not_found_before_it_is_purged);
    tcase_add_loop_test(tcase, a_look_up_does_not_pay_for_what_is_not_purged_yet, 0, 2);
    tcase_add_test(tcase, a_batch_of_the_largest_texts_is_written_soon);
    tcase_add_test(tcase, a_text_among_small_ones_is_read_whole);
    tcase_add_test(tcase, agents_find_their_own_and_nothing_is_left_of_one_that_is_deleted);
    tcase_add_loop_test(tcase, the_check_finds_an_index_that_is_not_its_documents, 0, sizeof(damages) / sizeof(*damages));
    suite_add_tcase(suite, tcase);
    return kit_run(suite);
}
