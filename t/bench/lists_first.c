/*
 * The first lists of a process that has just opened the store: `run_lists_first DATA-DIR [cold]`. A
 * line for each list: its name, and in milliseconds, by the clock and of the processor, the longest
 * time between two looks whether to stop, and all of it. Each is asked of a store opened anew, and
 * (cold) with nothing of its files in memory; that takes files which no other process has open.
 * `run_lists_first DATA-DIR projects COUNT` makes a store of so many projects first, of a report
 * each.
 */
#include "store/backup.h"
#include "t/bench/bench.h"
#include "t/bench/list_answer.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 1000

/* Columns: name, of projects, search, sort, result, page from the end (0: the first), per_page. */
static const struct {
    const char *name;
    bool projects;
    const char *search;
    unsigned sort;
    enum report_result result;
    bool deep;
    unsigned per_page;
} lists[] = {
    {"reports, by id", false, "", REPORT_BY_ID, RESULT_NONE, false, 10},
    {"reports, by url", false, "", REPORT_BY_URL, RESULT_NONE, false, 100},
    {"reports, by url, deep", false, "", REPORT_BY_URL, RESULT_NONE, true, 100},
    {"reports, good by score, deep", false, "", REPORT_BY_SCORE, RESULT_GOOD, true, 100},
    {"reports, search by date", false, "garden", REPORT_BY_GENERATED_AT, RESULT_NONE, false, 100},
    {"projects, by date", true, "", PROJECT_BY_CREATED_AT, RESULT_NONE, false, 10},
    {"projects, by name, deep", true, "", PROJECT_BY_NAME, RESULT_NONE, true, 100},
    {"projects, search", true, "kitchen", PROJECT_BY_NAME, RESULT_NONE, false, 100},
};

static struct store *s;

static void die(const char *what)
{
    fprintf(stderr, "run_lists_first: %s\n", what);
    exit(1);
}

static void must(enum store_status status, const char *what)
{
    if (status != STORE_OK)
        die(s == NULL ? what : store_why(s));
}

static void open_store(const char *dir, enum store_mode mode)
{
    char why[512];
    const struct store_options o = {/* as a worker does */
                                    .dir = dir,
                                    .map_size = 16ull << 30,
                                    .max_readers = 256,
                                    .mode = mode};
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK)
        die(why);
}

/* what was written and nobody has mapped leaves the memory */
static void forget_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        die(path);
    close(fd);
}

static void forget_all(const char *dir)
{
    char path[4096];
    glob_t found;
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    forget_file(path);
    snprintf(path, sizeof(path), "%s/index/*.seg", dir);
    if (glob(path, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        forget_file(found.gl_pathv[i]);
    globfree(&found);
}

static void ask(size_t at, uint64_t pages)
{
    struct bench_measure m;
    struct list_answer o;
    struct store_list_query q = {.workspace = 1,
                                 .search = str_of(lists[at].search),
                                 .sort = lists[at].sort,
                                 .result = lists[at].result,
                                 .page = lists[at].deep ? pages : 1,
                                 .per_page = lists[at].per_page,
                                 .stop = bench_asked,
                                 .stop_arg = &m};
    bench_begin(&m);
    if (lists[at].projects)
        store_project_list(s, &q, bench_got_projects, &o);
    else
        store_report_list(s, &q, bench_got_reports, &o);
    store_read_end(s);
    bench_end(&m);
    must(o.status, lists[at].name);
    printf("%-30s %8.2f %8.2f %8.2f %8.2f\n", lists[at].name, m.longest[0], m.longest[1], m.all[0],
           m.all[1]);
}

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    return done <= total;
}

static void make(const char *dir, unsigned count)
{
    static const char *const words[] = {"shop", "kitchen", "garden", "news", "media"};
    struct store_txn *t;
    struct store_answer a;
    mkdir(dir, 0700);
    open_store(dir, STORE_WRITE);
    for (unsigned i = 0; i < count;) {
        must(store_begin(s, &t), "begin");
        if (i == 0)
            store_apply(t,
                        &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = STR("w1")},
                        1, &a);
        for (unsigned end = i + BATCH; i < end && i < count; i++) {
            char host[64], url[80];
            snprintf(host, sizeof(host), "%s-%u.example", words[i % 5], i * 7919u % 1000003u);
            snprintf(url, sizeof(url), "https://%s/", host);
            const struct store_change c = {.kind = CHANGE_REPORT_CREATE,
                                           .workspace = 1,
                                           .url = str_of(url),
                                           .name = str_of(host),
                                           .code = 201};
            store_apply(t, &c, 1000 + i / 3, &a);
            must((enum store_status)a.status, "create");
        }
        must(store_commit(t), "commit");
    }
    must(store_maintain(s, go_on, NULL), "merge");
    store_close(s);
    s = NULL;
}

int main(int argc, char **argv)
{
    bool cold = argc == 3 && strcmp(argv[2], "cold") == 0;
    if (argc != 2 && !cold && (argc != 4 || strcmp(argv[2], "projects") != 0))
        die("usage: run_lists_first DATA-DIR [cold | projects COUNT]");
    if (argc == 4)
        make(argv[1], (unsigned)strtoul(argv[3], NULL, 10));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct store_usage u;
        open_store(argv[1], STORE_READ);
        must(store_usage(s, &u), "usage");
        store_close(s);
        if (cold)
            forget_all(argv[1]);
        open_store(argv[1], STORE_READ);
        ask(i, (lists[i].projects ? u.projects : u.reports) / (lists[i].per_page * 2));
        store_close(s);
    }
    return 0;
}
