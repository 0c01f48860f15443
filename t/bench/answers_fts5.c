/*
 * The answer index over many documents, and plain FTS5 over the same ones, for t/bench/answers:
 *
 *   run_answers_fts5 DIR DOCUMENTS SET.json...
 *
 * Builds an index of generated documents in DIR, with the pages of the sets among them, and a table
 * of FTS5 with its own Porter stemmer; then asks both: the sets' questions, titles of documents,
 * and
 * nine words of documents. Prints a line for each figure: its name, ours, FTS5's. Of each class of
 * questions the 95th percentile and the most, in µs of CPU; each question is asked three times, and
 * the least counts. FTS5, which takes a hundred times as long, is asked every fifth question once.
 */
#include "t/kit/answers_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>

#define PASSES 3
#define PLAIN_EACH 5
#define QUESTIONS_MAX 4000
#define CACHE_KIB 4096 /* of each */

struct benched {
    struct answers_reader *ours;
    sqlite3 *plain;
    sqlite3_stmt *find;
    const char *language;
};

struct times {
    double ours[QUESTIONS_MAX], plain[QUESTIONS_MAX];
    size_t count, plain_count;
};

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "run_answers_fts5: %s\n", what);
    exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
    must(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sqlite3_errmsg(db));
}

/* ---- plain FTS5 ---- */

static void insert(sqlite3_stmt *stmt, uint64_t id, const struct generated *g)
{
    sqlite3_bind_int64(stmt, 1, (int64_t)id);
    sqlite3_bind_text(stmt, 2, g->title, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, g->taxonomy, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 4, g->text, -1, SQLITE_STATIC);
    must(sqlite3_step(stmt) == SQLITE_DONE, "FTS5 refuses a document");
    sqlite3_reset(stmt);
}

static void build_plain(struct benched *b, const char *path, const struct vocabulary *v,
                        size_t documents)
{
    static struct generated g;
    sqlite3_stmt *stmt;
    char pragma[64];
    must(sqlite3_open(path, &b->plain) == SQLITE_OK, "no file for FTS5");
    snprintf(pragma, sizeof(pragma), "PRAGMA cache_size=-%d", CACHE_KIB);
    run(b->plain, pragma);
    run(b->plain, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    run(b->plain, "CREATE VIRTUAL TABLE d USING fts5(title, taxonomy, text,"
                  " tokenize='porter unicode61 remove_diacritics 2')");
    must(sqlite3_prepare_v2(b->plain,
                            "INSERT INTO d(rowid, title, taxonomy, text) VALUES(?1, ?2, ?3, ?4)",
                            -1, &stmt, NULL) == SQLITE_OK,
         "FTS5 has no table");
    for (size_t i = 0; i < documents; i++) {
        if (i % 500 == 0)
            run(b->plain, i == 0 ? "BEGIN" : "COMMIT; BEGIN");
        generate(v, i, &g);
        insert(stmt, i + 1, &g);
    }
    run(b->plain, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_finalize(stmt);
    must(sqlite3_prepare_v2(
             b->plain, "SELECT rowid FROM d WHERE d MATCH ?1 ORDER BY bm25(d, 4, 2, 1) LIMIT 3", -1,
             &b->find, NULL) == SQLITE_OK,
         "FTS5 has no table");
}

/* "refund" OR "days": every word of the question. */
static void expression_of(const char *question, struct buf *out)
{
    const char *before = "\"";
    buf_reset(out);
    for (const char *p = question; *p != '\0';) {
        size_t n = strcspn(p, " \"?!.,;:'()");
        if (n > 0) {
            buf_adds(out, before);
            buf_add(out, p, n);
            buf_adds(out, "\"");
            before = " OR \"";
        }
        p += n + (p[n] != '\0');
    }
    buf_add(out, "", 1);
}

static double ask_plain(const struct benched *b, const char *expression)
{
    int rc = SQLITE_ROW;
    double from = cpu_us();
    sqlite3_bind_text(b->find, 1, expression, -1, SQLITE_STATIC);
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(b->find);
    must(rc == SQLITE_DONE, sqlite3_errmsg(b->plain));
    sqlite3_reset(b->find);
    return cpu_us() - from;
}

/* ---- questions ---- */

static double ask_ours(const struct benched *b, const char *question)
{
    struct answers_hit hits[3];
    unsigned count;
    double from = cpu_us();
    const struct answers_question q = {
        .text = str_of(question), .language = str_of(b->language), .limit = 3};
    must(answers_ask(b->ours, &q, hits, &count) == STORE_OK, answers_reader_why(b->ours));
    return cpu_us() - from;
}

static void ask(const struct benched *b, const char *question, struct times *times)
{
    struct buf expression = {0};
    double ours = 1e12;
    if (times->count == QUESTIONS_MAX)
        return;
    for (int i = 0; i < PASSES; i++) {
        double us = ask_ours(b, question);
        ours = us < ours ? us : ours;
    }
    expression_of(question, &expression);
    if (times->count % PLAIN_EACH == 0 && expression.n > 1)
        times->plain[times->plain_count++] = ask_plain(b, expression.p);
    buf_free(&expression);
    times->ours[times->count++] = ours;
}

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void print(const char *class, struct times *times)
{
    size_t n = times->count, m = times->plain_count;
    qsort(times->ours, n, sizeof(*times->ours), by_time);
    qsort(times->plain, m, sizeof(*times->plain), by_time);
    printf("%s\t95\t%.0f\t%.0f\n", class, times->ours[n * 95 / 100], times->plain[m * 95 / 100]);
    printf("%s\tmost\t%.0f\t%.0f\n", class, times->ours[n - 1], times->plain[m - 1]);
    *times = (struct times){.count = 0};
}

static void ask_sets(const struct benched *b, const struct set *sets, size_t count,
                     struct times *times)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sets[i].question_count; j++) {
            struct json_object *q = json_object_array_get_idx(sets[i].questions, j), *text;
            if (json_object_object_get_ex(q, "q", &text))
                ask(b, json_object_get_string(text), times);
        }
    print("questions of shops", times);
}

/* Titles: frequent words, rare ones, nonsense. */
static void ask_generated(const struct benched *b, const struct vocabulary *v, size_t documents,
                          struct times *times)
{
    static struct generated g;
    for (size_t i = 0; i < 300; i++) {
        generate(v, i * (documents / 300), &g);
        ask(b, g.title, times);
    }
    print("titles", times);
    for (size_t i = 0; i < 300; i++) {
        generate(v, i, &g);
        g.text[strcspn(g.text, ".")] = '\0'; /* nine words */
        ask(b, g.text, times);
    }
    print("nine words of a text", times);
}

static void open_ours(struct benched *b, const char *path)
{
    char why[256] = "";
    const struct answers_options options = {.cache_bytes = (size_t)CACHE_KIB << 10};
    must(answers_reader_open(path, sets_store_id, &options, &b->ours, why, sizeof(why)) == STORE_OK,
         why);
}

static double verify(const char *path)
{
    char why[256] = "";
    struct answers_writer *w;
    must(answers_open(path, sets_store_id, NULL, &w, why, sizeof(why)) == STORE_OK, why);
    double from = cpu_us();
    must(answers_verify(w, NULL, NULL) == STORE_OK, answers_why(w));
    from = cpu_us() - from;
    answers_close(w);
    return from;
}

int main(int argc, char **argv)
{
    static struct times times;
    struct set sets[32];
    char ours[4200], plain[4200];
    size_t count = 0, documents = argc < 4 ? 0 : strtoul(argv[2], NULL, 10);
    struct benched b = {.language = "en"};
    if (argc < 4 || documents < 300)
        return fprintf(stderr, "usage: run_answers_fts5 DIR DOCUMENTS SET.json...\n"), 2;
    for (int i = 3; i < argc && count < 32; i++)
        set_load(argv[i], &sets[count++]);
    snprintf(ours, sizeof(ours), "%s/buried", argv[1]);
    snprintf(plain, sizeof(plain), "%s/plain", argv[1]);
    struct vocabulary *v = vocabulary_of(sets, count);
    double from = cpu_us(), built;
    sets_bury(argv[1], sets, count, documents);
    built = cpu_us() - from;
    from = cpu_us();
    build_plain(&b, plain, v, documents);
    printf("insert\tcpu\t%.1f\t%.1f\n", built / (double)documents,
           (cpu_us() - from) / (double)documents);
    printf("bytes\teach\t%.0f\t%.0f\n", file_bytes(ours) / (double)documents,
           file_bytes(plain) / (double)documents);
    printf("verify\tcpu\t%.1f\t-\n", verify(ours) / (double)documents);
    open_ours(&b, ours);
    ask_sets(&b, sets, count, &times);
    ask_generated(&b, v, documents, &times);
    answers_reader_close(b.ours);
    sqlite3_finalize(b.find);
    sqlite3_close(b.plain);
    vocabulary_free(v);
    for (size_t i = 0; i < count; i++)
        set_free(&sets[i]);
    return 0;
}
