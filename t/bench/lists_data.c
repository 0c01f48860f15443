/*
 * The data set of t/bench/lists: `run_lists_data DATA-DIR REPORTS ROWS-FILE [graded] [one]
 * [results=BYTES]` fills a new store as a server would have, and writes the same reports to
 * ROWS-FILE for other databases: id, workspace, project, url, result, score, generated_at (empty:
 * null), separated by tabs.
 *
 * Workspace 1 has REPORTS reports, workspace 2 a tenth as many. 2,000 projects of uneven size; URLs
 * of 40 to 120 characters made of shared words and numbers; one report in ten waits for its grade,
 * or (graded) none; (one) all are of a single project. What the checks of a graded one found is
 * `{}`, or (results=BYTES) an object of so many bytes, of which packing takes a quarter. The same
 * seed always, so the same data.
 */

#include "store/backup.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PROJECTS 2000
#define BATCH 500
#define NOW ((int64_t)1777986000000)

static uint64_t seed = 20261122;
static struct store *s;
static FILE *rows;
static int64_t now = NOW;
static bool graded, one;
static struct buf found; /* what the checks of each report found */

static uint32_t pick(uint32_t below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(seed >> 33) % below;
}

static void must(enum store_status status, const char *what)
{
    if (status == STORE_OK)
        return;
    fprintf(stderr, "run_lists_data: %s: %s (%s)\n", what, store_status_text(status),
            s == NULL ? "" : store_why(s));
    exit(1);
}

static const char *const words[] = {
    "products", "category", "blog",   "article", "summer",  "winter",   "collection", "shoes",
    "garden",   "kitchen",  "review", "guide",   "pricing", "features", "support",    "contact",
    "about-us", "careers",  "press",  "archive", "tag",     "author",   "Download",   "video",
    "image",    "gallery",  "travel", "health",  "finance", "science",  "music",      "sports"};
#define WORDS (sizeof(words) / sizeof(*words))
static const char *const sites[] = {"shop",  "store",  "news",  "portal",
                                    "world", "market", "media", "online"};
static const char *const ends[] = {"com", "org", "net", "de", "co.uk", "io", "fr", "example"};

static void make_host(uint32_t project, char *to, size_t size)
{
    snprintf(to, size, "%s%s-%u.%s", words[project % WORDS], sites[project / 7 % 8], project,
             ends[project / 3 % 8]);
    for (char *c = to; *c != '\0'; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
}

/* Half the projects have a tenth of the reports. */
static uint32_t pick_project(void)
{
    if (one)
        return 0;
    return pick(10) == 0 ? PROJECTS / 2 + pick(PROJECTS / 2)
           : pick(2)     ? pick(PROJECTS / 2)
                         : pick(PROJECTS / 20);
}

static void make_url(const char *host, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "%s://%s%s/", pick(5) ? "https" : "http",
                                pick(3) ? "www." : "", host);
    size_t want = 40 + pick(70);
    do
        n += (size_t)snprintf(to + n, size - n, "%s%s", words[pick(WORDS)], pick(4) ? "/" : "-");
    while (n + 8 < want);
    n += (size_t)snprintf(to + n, size - n, "%u", pick(1000000));
    if (pick(2) && n < 110)
        snprintf(to + n, size - n, "%s", pick(2) ? ".html" : "?p=1");
}

#define RESULTS_LEAST 16

static size_t own_from, own_upto; /* of them, what is each report's own */

static void make_results(size_t size)
{
    buf_adds(&found, "{\"more\":\"");
    own_from = found.n;
    own_upto = size - strlen("\"}");
    while (found.n < own_upto)
        buf_adds(&found, "x");
    buf_adds(&found, "\"}");
}

/* What packing makes little shorter, another one for each report. */
static struct str next_results(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static uint64_t x = 88172645463325252;
    for (size_t i = own_from; i < own_upto; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        found.p[i] = digits[x >> 40 & 63];
    }
    return buf_view(&found);
}

static void row(uint64_t id, int workspace, const char *host, const char *url, int score)
{
    static const char *const results[] = {"bad", "decent", "good"};
    fprintf(rows, "%llu\t%d\t%s\t%s\t", (unsigned long long)id, workspace, host, url);
    if (score < 0)
        fprintf(rows, "\t\t\n");
    else
        fprintf(rows, "%s\t%d\t%lld\n", results[(score >= 50) + (score >= 80)], score,
                (long long)now);
}

/*
 * Grades lag behind creation by up to a batch, and come in another order, so that dates are not in
 * the order of ids.
 */
static void batch(int workspace, unsigned count)
{
    struct store_txn *t;
    struct store_answer a;
    must(store_begin(s, &t), "begin");
    struct waiting {
        uint64_t id;
        char host[64], url[160];
    } *waiting = calloc(count, sizeof(*waiting));
    for (unsigned i = 0; i < count; i++) {
        make_host(pick_project(), waiting[i].host, sizeof(waiting[i].host));
        make_url(waiting[i].host, waiting[i].url, sizeof(waiting[i].url));
        struct store_change c = {.kind = CHANGE_REPORT_CREATE,
                                 .workspace = (uint64_t)workspace,
                                 .url = str_of(waiting[i].url),
                                 .name = str_of(waiting[i].host),
                                 .code = 201};
        store_apply(t, &c, now, &a);
        must((enum store_status)a.status, "create");
        waiting[i].id = a.id;
    }
    for (unsigned i = 0; i < count; i++) {
        struct waiting *w = &waiting[(i * 7919u) % count];
        int score = pick(10) == 0 && !graded ? -1 : (int)(20 + pick(41) + pick(41));
        now += pick(30) == 0 ? 1000 : 0;
        row(w->id, workspace, w->host, w->url, score);
        if (score < 0)
            continue;
        struct store_change c = {.kind = CHANGE_REPORT_FINISH,
                                 .id = w->id,
                                 .attempt = 1,
                                 .status = REPORT_DONE,
                                 .score = score,
                                 .result = score >= 80   ? RESULT_GOOD
                                           : score >= 50 ? RESULT_DECENT
                                                         : RESULT_BAD,
                                 .issues_high = pick(5),
                                 .issues_medium = pick(9),
                                 .issues_low = pick(9),
                                 .issues_passed = 30,
                                 .results = next_results()};
        store_apply(t, &c, now, &a);
        must((enum store_status)a.status, "finish");
    }
    must(store_commit(t), "commit");
    free(waiting);
}

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    return done <= total;
}

static void merge(void)
{
    must(store_maintain(s, go_on, NULL), "merge");
}

static void fill(int workspace, unsigned reports)
{
    struct store_txn *t;
    struct store_answer a;
    char name[8];
    snprintf(name, sizeof(name), "w%d", workspace);
    must(store_begin(s, &t), "begin");
    store_apply(t, &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = str_of(name)},
                now, &a);
    must(store_commit(t), "make a workspace");
    for (unsigned done = 0; done < reports; done += BATCH) {
        batch(workspace, reports - done < BATCH ? reports - done : BATCH);
        if ((done + BATCH) % 50000 != 0)
            continue;
        merge();
        fprintf(stderr, "\rworkspace %d: %u of %u reports", workspace, done + BATCH, reports);
    }
    fprintf(stderr, "\n");
}

static bool read_option(const char *word)
{
    static const char named[] = "results=";
    if (strcmp(word, "graded") == 0) {
        graded = true;
    } else if (strcmp(word, "one") == 0) {
        one = true;
    } else if (strncmp(word, named, strlen(named)) == 0) {
        char *end;
        size_t size = strtoul(word + strlen(named), &end, 10);
        if (*end != '\0' || size < RESULTS_LEAST || found.n != 0)
            return false;
        make_results(size);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    char why[512];
    bool known = argc >= 4;
    for (int i = 4; i < argc && known; i++)
        known = read_option(argv[i]);
    if (!known) {
        fprintf(stderr,
                "usage: run_lists_data DATA-DIR REPORTS ROWS-FILE [graded] [one] [results=BYTES, "
                "%d or more]\n",
                RESULTS_LEAST);
        return 2;
    }
    if (found.n == 0)
        buf_adds(&found, "{}");
    const struct store_options o = {
        .dir = argv[1], .map_size = 16ull << 30, .max_readers = 256, .mode = STORE_WRITE};
    unsigned reports = (unsigned)strtoul(argv[2], NULL, 10);
    mkdir(argv[1], 0700);
    rows = fopen(argv[3], "w");
    if (rows == NULL || store_open(&o, &s, why, sizeof(why)) != STORE_OK) {
        fprintf(stderr, "run_lists_data: %s\n", rows == NULL ? argv[3] : why);
        return 1;
    }
    fill(1, reports);
    fill(2, reports / 10);
    merge();
    struct store_usage u;
    must(store_usage(s, &u), "usage");
    printf("%llu reports, %llu bytes each\n", (unsigned long long)u.reports,
           (unsigned long long)((u.space.used_bytes + u.space.index_bytes) /
                                (u.reports + !u.reports)));
    store_close(s);
    buf_free(&found);
    return fclose(rows) == 0 ? 0 : 1;
}
