/*
 * What the disk and LMDB allow: the puts of creating reports, and nothing else. The keys are the store's own, the values as large as the store's, the
 * rows those of store/report.c, index.c, job.c for each report and of txn.c, project.c and channel.c for each commit; every commit is synced.
 *
 *   run_lmdb DIR BATCH RECORDS WORKSPACE     DIR/data.mdb is made, or grows. Prints: seconds, records a second, bytes put per record
 */
#include "bench.h"
#include "../../store/index.h"
#include "api/render.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAP_BYTES ((size_t)4 << 30)
#define PROJECT "shop.localhost"

static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi dbi[DB_COUNT];
static struct counters_record counters;
static uint64_t workspace, project, bytes;
static struct buf json, entries; /* of the log, a record of it each commit */

static void must(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "run_lmdb: %s: %s\n", what, mdb_strerror(rc));
        exit(1);
    }
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void put(enum db db, struct key *key, const void *value, size_t n)
{
    MDB_val k = key_val(key), v = {n, (void *)(uintptr_t)value};
    must(mdb_put(txn, dbi[db], &k, &v, 0), "put");
    bytes += key->n + n;
}

static void counters_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "c", 1);
}

/* What a report with that URL is stored as: of the real record's size, its JSON rendered by the real renderer. */
static size_t report_value(struct str url, char *out)
{
    const struct report_record zero = {.format = RECORD_FORMAT};
    memcpy(out, &zero, sizeof(zero));
    memcpy(out + sizeof(zero), url.p, url.n);
    memcpy(out + sizeof(zero) + url.n, PROJECT, strlen(PROJECT));
    memcpy(out + sizeof(zero) + url.n + strlen(PROJECT), json.p, json.n);
    return sizeof(zero) + url.n + strlen(PROJECT) + json.n;
}

static void one_report(unsigned page)
{
    char text[128], value[4096];
    struct key k;
    uint64_t id = ++counters.report;
    struct str url = {text, (size_t)snprintf(text, sizeof(text), "http://shop.localhost:40000/page/%08u", page)};
    key_id(&k, SPACE_REPORT, id);
    put(DB_RECORD, &k, value, report_value(url, value));
    const struct log_entry entry = {.kind = LOG_ADD, .id = id, .score = -1, .project = project, .url_n = (uint16_t)url.n};
    buf_add(&entries, &entry, sizeof(entry));
    buf_str(&entries, url);
    const struct job_record job = {.workspace = workspace, .order = ++counters.job, .attempt = 1};
    key_id(&k, SPACE_JOB, id);
    put(DB_BASE, &k, &job, sizeof(job));
}

/* What changes once a commit: the workspace, the project with its JSON, the counters, and the channel with the answers of the whole batch. */
static void once_a_commit(size_t batch)
{
    static const struct workspace_record w;
    static const struct project_record p;
    static char channel[8 + 64 * 1024];
    const size_t answer = sizeof(uint64_t) + sizeof(struct store_answer);
    char value[1024] = "";
    struct key k;
    key_id(&k, SPACE_WORKSPACE, workspace);
    put(DB_BASE, &k, value, sizeof(w) + strlen("w1"));
    key_id(&k, SPACE_PROJECT, project);
    put(DB_BASE, &k, value, sizeof(p) + strlen(PROJECT) + 160);
    key_id(&k, SPACE_LOG, workspace);
    key_u64(&k, counters.report);
    put(DB_LIST, &k, entries.p, entries.n);
    buf_reset(&entries);
    counters_key(&k);
    put(DB_BASE, &k, &counters, sizeof(counters));
    key_id(&k, SPACE_CHANNEL, UINT64_MAX);
    put(DB_BASE, &k, channel, sizeof(uint64_t) + (batch * answer < sizeof(channel) - 8 ? batch * answer : sizeof(channel) - 8));
}

static void open_all(const char *dir)
{
    struct key k;
    MDB_val v;
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_maxdbs(env, DB_COUNT), "maxdbs");
    must(mdb_env_set_mapsize(env, MAP_BYTES), "mapsize");
    must(mdb_env_open(env, dir, MDB_NOTLS, 0600), dir);
    must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    for (int i = 0; i < DB_COUNT; i++)
        must(mdb_dbi_open(txn, schema_db_names[i], MDB_CREATE, &dbi[i]), "open");
    counters_key(&k);
    MDB_val key = key_val(&k);
    if (mdb_get(txn, dbi[DB_BASE], &key, &v) == 0)
        memcpy(&counters, v.mv_data, sizeof(counters));
    must(mdb_txn_commit(txn), "commit");
}

static void render(void)
{
    size_t link_at, results_at;
    const struct store_report r = {.id = counters.report + 1,
                                   .score = -1,
                                   .created_at = 1760000000000,
                                   .updated_at = 1760000000000,
                                   .url = STR("http://shop.localhost:40000/page/00000000"),
                                   .project_name = STR(PROJECT)};
    render_records.report(&r, &json, &link_at, &results_at);
    if (!buf_ok(&json))
        must(ENOMEM, "render");
}

int main(int argc, char **argv)
{
    size_t batch = argc == 5 ? strtoul(argv[2], NULL, 10) : 0, records = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    if (batch == 0 || records == 0) {
        fprintf(stderr, "usage: run_lmdb DIR BATCH RECORDS WORKSPACE\n");
        return 2;
    }
    workspace = project = strtoul(argv[4], NULL, 10);
    open_all(argv[1]);
    render();
    double began = now();
    for (size_t done = 0; done < records;) {
        size_t n = records - done < batch ? records - done : batch;
        must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
        for (size_t i = 0; i < n; i++)
            one_report(bench_page((unsigned)(done + i)));
        once_a_commit(n);
        must(mdb_txn_commit(txn), "commit");
        done += n;
    }
    double took = now() - began;
    printf("%.6f %.1f %.0f\n", took, (double)records / took, (double)bytes / (double)records);
    mdb_env_close(env);
    buf_free(&json);
    buf_free(&entries);
    return 0;
}
