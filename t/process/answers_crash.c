/*
 * Kills the process that writes the store and its answer file with SIGKILL at random moments and
 * sometimes damages the file. The next process finds exactly the words of the stored documents.
 */
#include "t/kit/store.h"

#include "store/answers/follower.h"
#include "store/answers/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 40
#define CHANNEL 78
#define ITEMS 400
#define WORDS 40

static volatile uint64_t *promised; /* batches that are acknowledged */
static struct ulid agent;

/* Every document of a batch contains the batch number as a word. */
static void batch_apply(struct store_txn *t, uint64_t batch, uint64_t *seed)
{
    struct buf rows = {0};
    struct store_answer a;
    uint64_t first = 1 + kit_random(seed) % ITEMS, count = 1 + kit_random(seed) % 60;
    for (uint64_t i = 0; i < count; i++) {
        char text[512];
        uint8_t hash[16] = {0};
        size_t n = (size_t)snprintf(text, sizeof(text), "batch%llu", (unsigned long long)batch);
        for (uint64_t words = kit_random(seed) % WORDS; words > 0; words--)
            n += (size_t)snprintf(
                text + n, sizeof(text) - n, " w%llu",
                (unsigned long long)(kit_random(seed) % (1 + kit_random(seed) % 500)));
        struct store_synced d = {.title = STR("A document"),
                                 .text = {text, n},
                                 .url = STR("https://a.com/"),
                                 .price = MONEY_NONE};
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

static enum store_status note(void *arg, const struct store_change *change)
{
    struct store *s = arg;
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(s, &t), STORE_OK);
    store_apply(t, change, NOW, &a);
    ck_status(store_commit(t), STORE_OK);
    return a.status;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static struct follower *new_follower(struct store *s, struct store **reader)
{
    char why[512];
    kit_assert(store_share(s, reader, why, sizeof(why)) == STORE_OK);
    struct follower *f = follower_new(*reader, note, never, s);
    kit_assert(f != NULL);
    return f;
}

static void writer_run(const char *dir, uint64_t seed)
{
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES), *reader;
    struct follower *f = new_follower(s, &reader);
    struct store_txn *t;
    struct store_answer a;
    struct str none;
    uint64_t batch = 0;
    ck_status(store_begin(s, &t), STORE_OK);
    if (store_sender_get(t, CHANNEL, &batch, &none) != STORE_OK)
        batch = 0;
    store_abort(t);
    for (;;) {
        ck_status(store_begin(s, &t), STORE_OK);
        batch_apply(t, ++batch, &seed);
        store_apply(t, &(struct store_change){.kind = CHANGE_PURGE, .limit = 20}, NOW, &a);
        store_sender_note(t, CHANNEL, batch, STR(""));
        ck_status(store_commit(t), STORE_OK);
        *promised = batch;
        for (uint64_t steps = kit_random(&seed) % 3; steps > 0; steps--)
            kit_assert(follower_step(f) != FOLLOWER_FAILED);
        if (kit_random(&seed) % 16 == 0)
            kit_assert(follower_verify(f) != FOLLOWER_FAILED);
    }
}

/* ---- the state after a crash ---- */

#define BATCHES_MAX 4096

struct expected {
    uint64_t documents[BATCHES_MAX]; /* per batch, modulo BATCHES_MAX */
    uint64_t last;
};

static void count_document(void *arg, enum store_status status, const struct store_synced *d)
{
    struct expected *e = arg;
    if (status != STORE_OK)
        return;
    uint64_t batch = strtoull(d->text.p + strlen("batch"), NULL, 10);
    kit_assert(batch % BATCHES_MAX == batch);
    e->documents[batch]++;
}

static void take_count(void *arg, enum store_status status, const struct store_found *found)
{
    kit_assert(status == STORE_OK && found->lost == 0);
    for (size_t i = 0; i < found->count; i++)
        kit_assert(found->hits[i].answers);
    *(size_t *)arg = found->count;
}

static size_t find_batch(struct store *s, uint64_t batch)
{
    char word[32];
    size_t count = 0;
    snprintf(word, sizeof(word), "batch%llu", (unsigned long long)batch);
    store_find(
        s, &(struct store_question){.agent = agent, .text = str_of(word), .limit = STORE_HITS_MAX},
        take_count, &count);
    store_read_end(s);
    return count;
}

static void expect_words(struct store *s, uint64_t batch)
{
    static struct expected e;
    memset(&e, 0, sizeof(e));
    store_synced_each(s, &agent, SYNCED_POST, count_document, &e);
    store_read_end(s);
    for (uint64_t i = batch > 100 ? batch - 100 : 1; i <= batch + 1; i++) {
        size_t found = find_batch(s, i), there = e.documents[i];
        ck_assert_msg(found == (there < STORE_HITS_MAX ? there : STORE_HITS_MAX),
                      "batch %u: %zu found, %zu there", (unsigned)i, found, there);
    }
}

static unsigned damaged;

static void damage(const char *path, unsigned how)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    if (how == 0)
        ck_assert_int_eq(unlink(path), 0);
    else if (how == 1)
        ck_assert_int_eq(truncate(path, st.st_size * 2 / 3), 0);
    int fd = how == 2 ? open(path, O_WRONLY) : -1;
    for (off_t at = 4096 + (off_t)how; fd >= 0 && at < st.st_size; at += 1000)
        ck_assert_int_eq(pwrite(fd, "\x5a", 1, at), 1);
    if (fd >= 0)
        close(fd);
}

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

static void damage_some(const char *dir, uint64_t round)
{
    static const char *const endings[] = {".db", ".db-wal", ".db-shm"};
    char path[4096 + 300];
    struct dirent *e;
    snprintf(path, sizeof(path), "%s/answers", dir);
    DIR *d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL)
        if (ends_with(e->d_name, endings[round / 3 % 3])) {
            snprintf(path, sizeof(path), "%s/answers/%s", dir, e->d_name);
            damage(path, (unsigned)(round / 9 % 3));
            damaged++;
        }
    if (d != NULL)
        closedir(d);
}

static void look(const char *dir)
{
    static uint64_t round;
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES), *reader;
    struct store_txn *t;
    struct str none;
    uint64_t batch = 0;
    if (++round % 3 == 0) /* every file, damaged in every way */
        damage_some(dir, round);
    struct follower *f = new_follower(s, &reader);
    ck_status(store_begin(s, &t), STORE_OK);
    ck_status(store_sender_get(t, CHANNEL, &batch, &none), STORE_OK);
    store_abort(t);
    ck_assert_uint_ge(batch, *promised);
    kit_check_clean(s);
    for (int passes = 0; passes < 2;
         passes++) { /* the second follower rebuilds what verification finds */
        enum follower_result result = FOLLOWER_MORE;
        while (result == FOLLOWER_MORE)
            result = follower_step(f);
        ck_assert_msg(result == FOLLOWER_IDLE, "%s", follower_why(f));
        while (follower_verify(f) == FOLLOWER_MORE)
            continue;
    }
    expect_words(s, batch);
    kit_check_clean(s);
    follower_free(f);
    store_close(reader);
    store_close(s);
}

START_TEST(a_killed_writer_leaves_only_words_of_committed_documents)
{
    struct kit k;
    promised = kit_shared(sizeof(*promised));
    kit_open(&k);
    uint64_t w = kit_workspace(&k, "acme");
    agent = kit_agent(&k, w, "{}");
    kit_kill(&k, ROUNDS, 815, writer_run, look, promised);
    ck_assert_uint_gt(damaged, 5);
    kit_close(&k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("answers_crash");
    TCase *tcase = tcase_create("crash");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, a_killed_writer_leaves_only_words_of_committed_documents);
    suite_add_tcase(suite, tcase);
    return kit_run(suite);
}
