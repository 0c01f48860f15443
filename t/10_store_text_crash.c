/*
 * The writer is killed with SIGKILL at a random moment while it syncs documents, again and again: the index has the words of exactly the
 * documents that are there, those of every batch that was answered among them, and nothing needs repair.
 */
#include "t/00_store_kit.h"

#define ROUNDS 40
#define CHANNEL 78
#define ITEMS 400

static volatile uint64_t *promised; /* batches that were answered */
static struct ulid agent;

/* Every document of a batch has the batch's number as a word. */
static void batch_apply(struct store_txn *t, uint64_t batch, uint64_t *seed)
{
    struct buf rows = {0};
    struct store_answer a;
    uint64_t first = 1 + kit_random(seed) % ITEMS, count = 1 + kit_random(seed) % 60;
    for (uint64_t i = 0; i < count; i++) {
        char text[512];
        uint8_t hash[16] = {0};
        size_t n = (size_t)snprintf(text, sizeof(text), "batch%llu", (unsigned long long)batch);
        for (uint64_t words = kit_random(seed) % 40; words > 0; words--)
            n += (size_t)snprintf(text + n, sizeof(text) - n, " w%llu",
                                  (unsigned long long)(kit_random(seed) % (1 + kit_random(seed) % 500)));
        struct store_synced d = {.title = STR("A document"), .text = {text, n}, .url = STR("https://a.com/"), .price = MONEY_NONE};
        memcpy(hash, &batch, sizeof(batch));
        sync_pack(&rows, SYNC_UPSERT, 1 + (first + i) % ITEMS, hash, 0, &d);
    }
    store_apply(t,
                &(struct store_change){.kind = CHANGE_SYNC,
                                       .workspace = 1,
                                       .agent = agent,
                                       .name = STR("a.com"),
                                       .status = SYNCED_POST,
                                       .fields = batch % 50 == 0 ? SYNC_COMPLETE : 0,
                                       .text = batch % 50 == 0 ? STR("all") : STR(""),
                                       .data = buf_view(&rows)},
                NOW + (int64_t)batch, &a);
    kit_assert(a.status == STORE_OK || a.status == STORE_STALE);
    buf_free(&rows);
}

static void writer_run(const char *dir, uint64_t seed)
{
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES);
    struct store_txn *t;
    struct store_answer a;
    struct str none;
    uint64_t batch = 0;
    ck_status(store_begin(s, &t), STORE_OK);
    if (store_channel_get(t, CHANNEL, &batch, &none) != STORE_OK)
        batch = 0;
    store_abort(t);
    for (;;) {
        ck_status(store_begin(s, &t), STORE_OK);
        batch_apply(t, ++batch, &seed);
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 20}, NOW, &a);
        store_channel_note(t, CHANNEL, batch, STR(""));
        ck_status(store_commit(t), STORE_OK);
        *promised = batch;
    }
}

static void take_count(void *arg, enum store_status status, const struct store_hit *hits, size_t count)
{
    kit_assert(status == STORE_OK || status == STORE_NOT_FOUND);
    for (size_t i = 0; i < count; i++)
        kit_assert(hits[i].share > 0.99);
    *(size_t *)arg = count;
}

/* The last batch that was noted is found, the next is not. */
static void look(const char *dir)
{
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES);
    struct store_txn *t;
    struct str none;
    uint64_t batch = 0;
    size_t count = 0;
    char word[32];
    ck_status(store_begin(s, &t), STORE_OK);
    ck_status(store_channel_get(t, CHANNEL, &batch, &none), STORE_OK);
    store_abort(t);
    ck_assert_uint_ge(batch, *promised);
    snprintf(word, sizeof(word), "batch%llu", (unsigned long long)batch);
    store_find(s, &agent, str_of(word), 4, 80, take_count, &count);
    ck_assert_uint_gt(count, 0);
    snprintf(word, sizeof(word), "batch%llu", (unsigned long long)batch + 1);
    store_find(s, &agent, str_of(word), 4, 80, take_count, &count);
    ck_assert_uint_eq(count, 0);
    store_read_end(s);
    kit_check_clean(s);
    store_close(s);
}

START_TEST(a_killed_writer_leaves_the_words_of_what_it_committed_and_no_others)
{
    struct kit k;
    kit_part_bytes = (uint32_t)_i; /* as usual, and each in parts.dat */
    promised = kit_shared(sizeof(*promised));
    kit_open(&k);
    uint64_t w = kit_workspace(&k, "acme");
    agent = kit_apply(&k, &(struct store_change){.kind = CHANGE_AGENT_CREATE, .workspace = w, .name = STR("a"), .data = STR("{}")}).first;
    kit_kill(&k, ROUNDS, 815, writer_run, look, promised);
    kit_close(&k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_text_crash");
    TCase *tcase = tcase_create("crash");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_killed_writer_leaves_the_words_of_what_it_committed_and_no_others, 0, 2);
    suite_add_tcase(suite, tcase);
    return kit_run(suite);
}
