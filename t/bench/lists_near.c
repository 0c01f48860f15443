/*
 * Lists whose search is slow on purpose: `run_lists_near DIR`. The longest texts, which differ from
 * the search pattern in one letter at each of its positions, in each part that a search scans: the
 * log's tail, n-gram blocks, the few rows of a small project in each of several segments, names of
 * projects. Prints for each part and pattern, in milliseconds of CPU, the longest time between two
 * calls of the pause function and the time of the whole search; then the total found.
 */
#include "store/backup.h"
#include "t/bench/bench.h"
#include "t/bench/list_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    URL = 2048,
    TAIL = 2000,
    SEGMENTS = 8,
    FEW = 256,
    SEGMENT_ROWS = 2048,
    NAMES = 20000,
    NAME = 250
};

/*
 * Columns: name, what the texts repeat, and so many times a pattern has of it, and what follows in
 * it.
 */
static const struct {
    const char *name, *repeated;
    unsigned times;
    const char *part, *last;
} patterns[] = {
    {"one letter 200 times",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
     200, "a", ""},
    {"one letter 64 times", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 64,
     "a", ""},
    {"170 letters that are encoded", "%d0%b1", 170, "\xD0\xB1", "\xD0\xB0"},
    {"the encoding itself", "%d0%b1", 33, "%d0%b1", "%e"},
};

static struct store *s;
static struct store_txn *t;
static char pattern[1024];

static void die(const char *what)
{
    fprintf(stderr, "run_lists_near: %s\n", what);
    exit(1);
}

static void must(enum store_status status)
{
    if (status != STORE_OK)
        die(store_why(s));
}

static void open_store(const char *dir, enum store_mode mode)
{
    char why[512];
    const struct store_options o = {.dir = dir,
                                    .map_size = 4ull << 30,
                                    .max_readers = 64,
                                    .mode = mode,
                                    .segment_rows = SEGMENT_ROWS};
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK)
        die(why);
}

static struct store_answer apply(struct store_change c)
{
    struct store_answer a;
    store_apply(t, &c, 1000, &a);
    must((enum store_status)a.status);
    return a;
}

static void create(uint64_t workspace, const char *url, const char *project)
{
    apply((struct store_change){.kind = CHANGE_REPORT_CREATE,
                                .workspace = workspace,
                                .url = str_of(url),
                                .name = str_of(project),
                                .code = 201});
}

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    return done <= total;
}

static void merge(void)
{
    must(store_commit(t));
    must(store_maintain(s, go_on, NULL));
    must(store_begin(s, &t));
}

static void repeat(char *to, const char *first, const char *what, size_t n)
{
    size_t at = strlen(strcpy(to, first)), more = strlen(what);
    for (; at + more <= n; at += more)
        memcpy(to + at, what, more);
    to[at] = '\0';
}

/*
 * Workspaces: 1 has it in the log's tail, 2 in n-gram blocks, and in segments of which it is an
 * eighth; 3 as names of projects.
 */
static void make(size_t which)
{
    char url[URL + 1], name[NAME + 16];
    const char *what = patterns[which].repeated;
    must(store_begin(s, &t));
    for (int i = 0; i < 3; i++)
        apply((struct store_change){.kind = CHANGE_WORKSPACE_CREATE,
                                    .name = str_of(&"one\0two\0six"[4 * i])});
    repeat(url, "http://a.test/", what, URL);
    for (int i = 0; i < SEGMENTS * SEGMENT_ROWS; i++)
        create(2, i % (SEGMENT_ROWS / FEW) == 0 ? url : "http://a.test/other",
               i % (SEGMENT_ROWS / FEW) == 0 ? "few.test" : "a.test");
    for (int i = 0; i < NAMES; i++) {
        repeat(name, "", what, NAME);
        sprintf(name + strlen(name), "%d", i);
        create(3, "http://a.test/", name);
    }
    merge();
    for (int i = 0; i < TAIL; i++)
        create(1, url, "a.test");
    must(store_commit(t));
}

static void ask(const char *where, size_t which, struct store_list_query q, bool projects)
{
    struct bench_measure m;
    struct list_answer o;
    q.page = 1;
    q.per_page = 10;
    q.stop = bench_asked;
    q.stop_arg = &m;
    bench_begin(&m);
    if (projects)
        store_project_list(s, &q, bench_got_projects, &o);
    else
        store_report_list(s, &q, bench_got_reports, &o);
    store_read_end(s);
    bench_end(&m);
    must(o.status);
    printf("%-20s %-30s %8.2f %8.2f  found %llu\n", where, patterns[which].name, m.longest[1],
           m.all[1], (unsigned long long)o.total);
}

int main(int argc, char **argv)
{
    char dir[4096];
    if (argc != 2)
        die("usage: run_lists_near DIR");
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        snprintf(dir, sizeof(dir), "%s/%zu", argv[1], i);
        if (mkdir(dir, 0700) != 0)
            die(dir);
        open_store(dir, STORE_WRITE);
        make(i);
        store_close(s);
        open_store(dir, STORE_READ);
        pattern[0] = '\0';
        for (unsigned n = 0; n < patterns[i].times; n++)
            strcat(pattern, patterns[i].part);
        strcat(pattern, patterns[i].last);
        ask("warm", i, (struct store_list_query){.workspace = 1}, false);
        ask("warm", i, (struct store_list_query){.workspace = 2}, false);
        ask("warm", i, (struct store_list_query){.workspace = 3}, true);
        ask("the log's tail", i,
            (struct store_list_query){.workspace = 1, .search = str_of(pattern)}, false);
        ask("a small project", i,
            (struct store_list_query){.workspace = 2, .project = 1, .search = str_of(pattern)},
            false);
        ask("blocks", i, (struct store_list_query){.workspace = 2, .search = str_of(pattern)},
            false);
        ask("names", i, (struct store_list_query){.workspace = 3, .search = str_of(pattern)}, true);
        store_close(s);
    }
    return 0;
}
