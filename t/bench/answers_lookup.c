/*
 * The full-text index by itself, for t/bench/answers. Documents are made of a vocabulary of 50,000 words, a few in most documents and most
 * in few, as languages have them; titles of 3 to 8 words, 1 to 4 of taxonomy, texts of 30 to 170. The same seed always, so the same data.
 *
 *   run_answers make DIR DOCUMENTS ROWS     put them by a hundred into a new store's index and write them for other engines: id, title,
 *                                           taxonomy, text, separated by tabs. Prints µs of CPU a put, of which commits, and bytes a document
 *   run_answers again DIR DOCUMENTS         put a tenth of them once more, with another text: prints µs of CPU a put
 *   run_answers ask DIR QUERIES HITS        look each line up: prints to HITS the ten best ids of each, and on standard output for each
 *                                           the least µs of CPU of some passes
 *   run_answers unseen DIR DOCUMENTS        sync them into a new store, and then a hundred of them as a complete sync: prints the least µs of CPU
 *                                           of a look-up of a frequent word before, after, and of that sync's last transaction
 *   run_answers queries                     prints queries: a class, a tab, the words
 */
#include "../../store/store.h"
#include "store/extent.h"
#include "store/text.h"


#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define VOCABULARY 50000
#define BATCH 100
#define PASSES 5
#define BEST 10

static const struct ulid agent = {{1, 2, 3}};
static struct store *s;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "run_answers: %s (%s)\n", what, s == NULL ? "" : store_why(s));
    exit(1);
}

static void must(enum store_status status, const char *what)
{
    if (status != STORE_OK)
        fail(what);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- documents ---- */

static uint32_t pick(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33) % below;
}

/* The ${n}-th word; the first are the frequent ones. */
static size_t put_word(char *to, uint32_t n)
{
    static const char *const bits[] = {"ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "xu", "da", "fe", "gi", "ho", "ju", "zy"};
    size_t at = 0;
    uint32_t v = n * 2654435761u >> 12; /* so that neighbours are not alike; no two are the same */
    for (int i = 0; i < 5; i++, v >>= 4, at += 2)
        memcpy(to + at, bits[v & 15], 2);
    return at;
}

/* A word's rank falls as its frequency does: halves of halves. */
static uint32_t pick_word(uint64_t *seed)
{
    uint32_t range = VOCABULARY >> pick(seed, 13);
    return pick(seed, range + 8) % VOCABULARY;
}

static size_t put_words(uint64_t *seed, char *to, unsigned count)
{
    size_t n = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            to[n++] = ' ';
        n += put_word(to + n, pick_word(seed));
    }
    to[n] = '\0';
    return n;
}

struct made {
    char title[128], taxonomy[64], text[2048];
};

static struct text_doc make(uint64_t id, unsigned version, struct made *m)
{
    uint64_t seed = id * 0x9e3779b97f4a7c15 + version;
    pick(&seed, 2);
    size_t title = put_words(&seed, m->title, 3 + pick(&seed, 6)), taxonomy = put_words(&seed, m->taxonomy, 1 + pick(&seed, 4));
    size_t text = put_words(&seed, m->text, 30 + pick(&seed, 141));
    return (struct text_doc){.title = {m->title, title}, .taxonomy = {m->taxonomy, taxonomy}, .text = {m->text, text}};
}

/* ---- putting ---- */

static uint64_t space_bytes(MDB_txn *txn, enum space space)
{
    struct walk w = {0};
    uint64_t bytes = 0;
    for (enum store_status status = walk_begin(s, txn, &w, space); status == STORE_OK; status = walk_next(&w))
        bytes += w.k.mv_size + w.v.mv_size;
    walk_end(&w);
    return bytes;
}

static double put_all(uint64_t from, uint64_t to, uint64_t step, FILE *rows, double *commits)
{
    struct made was_made, now_made;
    double all = 0;
    *commits = 0;
    for (uint64_t id = from; id <= to;) {
        struct store_txn *t;
        must(store_begin(s, &t), "begin");
        for (unsigned i = 0; i < BATCH && id <= to; i++, id += step) {
            struct text_doc was = make(id, 0, &was_made), now = make(id, step > 1, &now_made);
            double before = cpu_us();
            text_set(t, &agent, id, step > 1 ? &was : NULL, &now);
            all += cpu_us() - before;
            if (rows != NULL)
                fprintf(rows, "%llu\t%s\t%s\t%s\n", (unsigned long long)id, now_made.title, now_made.taxonomy, now_made.text);
        }
        double before = cpu_us();
        text_write(t);
        double written = cpu_us();
        must(store_commit(t), "commit");
        all += cpu_us() - before;
        *commits += cpu_us() - written;
    }
    return all;
}

static int make_main(uint64_t count, const char *path)
{
    FILE *rows = fopen(path, "w");
    double commits, all;
    MDB_txn *txn;
    struct text_manifest m;
    if (rows == NULL)
        fail(path);
    all = put_all(1, count, 1, rows, &commits);
    must(store_snapshot(s, &txn), "read");
    must(text_manifest(s, txn, &agent, &m), "read");
    uint64_t long_parts;
    must(extent_bytes(s, txn, &long_parts), "read");
    uint64_t bytes = long_parts + space_bytes(txn, SPACE_TEXT) + space_bytes(txn, SPACE_TEXT_PART) + space_bytes(txn, SPACE_TEXT_DEAD) +
                     space_bytes(txn, SPACE_TEXT_ROW);
    printf("%.2f %.2f %.1f %zu\n", all / (double)count, commits / (double)count, (double)bytes / (double)count, m.count);
    store_read_end(s);
    return fclose(rows) == 0 ? 0 : 1;
}

static int again_main(uint64_t count)
{
    double commits, all = put_all(1, count, 10, NULL, &commits);
    printf("%.2f\n", all / ((double)count / 10));
    return 0;
}

/* ---- asking ---- */

static double ask(const char *question, struct text_hit *hits, unsigned *count)
{
    struct text_question q;
    MDB_txn *txn;
    double before = cpu_us();
    must(store_snapshot(s, &txn), "read");
    must(text_ask(s, txn, &agent, str_of(question), &q), "ask");
    must(text_find(s, txn, &agent, &q, BEST, NULL, NULL, hits, count), "find");
    store_read_end(s);
    return cpu_us() - before;
}

static int ask_main(const char *queries, const char *to)
{
    FILE *in = fopen(queries, "r"), *out = fopen(to, "w");
    static char line[16384];
    if (in == NULL || out == NULL)
        fail(queries);
    while (fgets(line, sizeof(line), in) != NULL) {
        struct text_hit hits[TEXT_HITS_MAX];
        unsigned count = 0;
        double least = 1e12;
        char *words = strchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        if (words == NULL)
            fail("a query without a class");
        *words++ = '\0';
        for (int i = 0; i < PASSES; i++) {
            double us = ask(words, hits, &count);
            least = us < least ? us : least;
        }
        printf("%s\t%.1f\n", line, least);
        for (unsigned i = 0; i < count; i++)
            fprintf(out, "%s%llu", i == 0 ? "" : " ", (unsigned long long)hits[i].id);
        fprintf(out, "\n");
    }
    fclose(in);
    return fclose(out) == 0 ? 0 : 1;
}

/* ---- what a complete sync did not see ---- */

static uint64_t shop;
static struct ulid shop_agent;

static struct store_answer apply_one(const struct store_change *change)
{
    struct store_txn *t;
    struct store_answer answer = {0};
    must(store_begin(s, &t), "begin");
    store_apply(t, change, 1, &answer);
    must(answer.status, "apply");
    must(store_commit(t), "commit");
    return answer;
}

/* µs of CPU of the last of the batches. */
static double sync_all(uint64_t from, uint64_t to, const char *sync_id)
{
    double took = 0;
    for (uint64_t id = from; id <= to;) {
        struct buf rows = {0};
        for (unsigned i = 0; i < BATCH && id <= to; i++, id++) {
            struct made m;
            struct text_doc texts = make(id, 0, &m);
            uint8_t hash[16] = {(uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16)};
            sync_pack(&rows, SYNC_UPSERT, id, hash, 0, &(struct store_synced){.title = texts.title, .taxonomy = texts.taxonomy, .text = texts.text, .url = STR("https://shop.example/")});
        }
        double before = cpu_us();
        apply_one(&(struct store_change){.kind = CHANGE_SYNC,
                                         .workspace = shop,
                                         .agent = shop_agent,
                                         .name = STR("shop.example"),
                                         .status = SYNCED_POST,
                                         .text = str_of(sync_id),
                                         .fields = id > to ? SYNC_COMPLETE : 0,
                                         .data = buf_view(&rows)});
        took = cpu_us() - before;
        buf_free(&rows);
    }
    return took;
}

static void took_hits(void *arg, enum store_status status, const struct store_hit *hits, size_t count)
{
    (void)arg, (void)hits, (void)count;
    must(status == STORE_NOT_FOUND ? STORE_OK : status, "find");
}

static double look_up(void)
{
    double least = 1e12;
    char word[16];
    size_t n = put_word(word, 20);
    for (int i = 0; i < PASSES; i++) {
        double before = cpu_us();
        store_find(s, &shop_agent, (struct str){word, n}, 4, 200, took_hits, NULL);
        store_read_end(s);
        double us = cpu_us() - before;
        least = us < least ? us : least;
    }
    return least;
}

static int unseen_main(uint64_t count)
{
    shop = apply_one(&(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = STR("shop")}).id;
    shop_agent = apply_one(&(struct store_change){.kind = CHANGE_AGENT_CREATE, .workspace = shop, .name = STR("Shop"), .data = STR("{}"), .fields = AGENT_PUBLISHED}).first;
    sync_all(1, count, "one");
    double before = look_up(), end = sync_all(count - BATCH + 1, count, "two");
    printf("%.1f %.1f %.1f\n", before, look_up(), end);
    return 0;
}

/* Columns: class, how many queries, words of each, ranks of the words from … on and how many of them. */
static const struct {
    const char *name;
    unsigned queries, words;
    uint32_t from, range;
} classes[] = {
    {"a rare word", 40, 1, 5000, 45000},        {"a frequent word", 40, 1, 0, 200},   {"two words", 40, 2, 100, 20000},
    {"a question of six", 60, 6, 0, 20000},     {"six frequent ones", 40, 6, 0, 100}, {"4 KB of words", 20, 360, 0, 50000},
    {"4 KB of frequent ones", 20, 360, 0, 400},
};

static int queries_main(void)
{
    uint64_t seed = 7;
    for (size_t c = 0; c < sizeof(classes) / sizeof(*classes); c++)
        for (unsigned i = 0; i < classes[c].queries; i++) {
            printf("%s\t", classes[c].name);
            for (unsigned w = 0; w < classes[c].words; w++) {
                char word[16];
                size_t n = put_word(word, classes[c].from + pick(&seed, classes[c].range));
                printf("%s%.*s", w == 0 ? "" : " ", (int)n, word);
            }
            printf("\n");
        }
    return 0;
}

int main(int argc, char **argv)
{
    char why[512];
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "queries") == 0)
        return queries_main();
    bool makes = strcmp(mode, "make") == 0 && argc == 5, again = strcmp(mode, "again") == 0 && argc == 4, unseen = strcmp(mode, "unseen") == 0 && argc == 4;
    if (!makes && !again && !unseen && !(strcmp(mode, "ask") == 0 && argc == 5)) {
        fprintf(stderr, "usage: run_answers make DIR DOCUMENTS ROWS | again DIR DOCUMENTS | unseen DIR DOCUMENTS | ask DIR QUERIES HITS | queries\n");
        return 2;
    }
    const struct store_options o = {
        .dir = argv[2], .map_size = 4ull << 30, .max_readers = 64, .mode = STORE_WRITE};
    mkdir(argv[2], 0700);
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK) {
        fprintf(stderr, "run_answers: %s\n", why);
        return 1;
    }
    int status = makes   ? make_main(strtoull(argv[3], NULL, 10), argv[4])
                 : again ? again_main(strtoull(argv[3], NULL, 10))
                 : unseen ? unseen_main(strtoull(argv[3], NULL, 10))
                         : ask_main(argv[3], argv[4]);
    store_close(s);
    return status;
}
