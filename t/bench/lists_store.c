/*
 * t/bench/lists asks the store itself, as SQLite is asked: in one process, without HTTP.
 * `run_lists_store DATA-DIR FILE`, where each line of FILE is a query:
 * class|search|project|result|sort_by|sort|per_page|page. A line for each: milliseconds of the
 * processor, and the answer: its total and the ids, apart by spaces.
 */

#include "store/store.h"
#include "t/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MS 30000 /* a query is stopped after that, as a worker's is */

struct outcome {
    enum store_status status;
    uint64_t total, ids[STORE_PER_PAGE_MAX];
    size_t count;
};

static void die(const char *what)
{
    fprintf(stderr, "run_lists_store: %s\n", what);
    exit(1);
}

static void listed(void *arg, enum store_status status, uint64_t total,
                   const struct store_report *reports, size_t count)
{
    struct outcome *o = arg;
    *o = (struct outcome){.status = status, .total = total, .count = count};
    for (size_t i = 0; i < count; i++)
        o->ids[i] = reports[i].id;
}

static void project_found(void *arg, enum store_status status, const struct store_project *project)
{
    if (status != STORE_OK)
        die("a project of the queries is not there");
    *(uint64_t *)arg = project->id;
}

static bool is_late(void *until)
{
    return bench_clock_ms(CLOCK_MONOTONIC) >= *(const double *)until;
}

static unsigned one_of(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (unsigned)i;
    die(name);
    return 0;
}

static void ask(struct store *s, char *line)
{
    static const char *const results[] = {"", "good", "decent", "bad"}, *const sorts[] = {
                                                                            "id", "generated_at",
                                                                            "url", "score"};
    char *field[8];
    for (int i = 0; i < 8; i++)
        if ((field[i] = strsep(&line, "|")) == NULL)
            die("a query lacks fields");
    double until = bench_clock_ms(CLOCK_MONOTONIC) + RUN_MS;
    struct store_list_query q = {.workspace = 1,
                                 .search = str_of(field[1]),
                                 .result = one_of(results, 4, field[3]),
                                 .sort = one_of(sorts, 4, field[4]),
                                 .ascending = strcmp(field[5], "asc") == 0,
                                 .per_page = (unsigned)strtoul(field[6], NULL, 10),
                                 .page = strtoull(field[7], NULL, 10),
                                 .stop = is_late,
                                 .stop_arg = &until};
    struct outcome o;
    double began = bench_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (field[2][0] != '\0')
        store_project_find(s, 1, str_of(field[2]), project_found, &q.project);
    store_report_list(s, &q, listed, &o);
    store_read_end(s);
    double took = bench_clock_ms(CLOCK_PROCESS_CPUTIME_ID) - began;
    if (o.status != STORE_OK)
        die(store_why(s));
    printf("%.4f %llu", took, (unsigned long long)o.total);
    for (size_t i = 0; i < o.count; i++)
        printf(" %llu", (unsigned long long)o.ids[i]);
    puts("");
}

int main(int argc, char **argv)
{
    char why[512], line[1024];
    struct store *s;
    FILE *f = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (f == NULL)
        die("usage: run_lists_store DATA-DIR FILE");
    const struct store_options o = {
        .dir = argv[1], .map_size = 64ull << 30, .max_readers = 256, .mode = STORE_READ};
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK)
        die(why);
    while (fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        ask(s, line);
    }
    store_close(s);
    return 0;
}
