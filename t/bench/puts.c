#include "t/bench/puts.h"

#include "store/index/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAP_BYTES ((size_t)4 << 30)
#define PROJECT "shop.localhost"

static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi dbi[DB_COUNT];
static struct counters_record counters;
static uint64_t workspace, project;
uint64_t puts_bytes;
static struct buf entries; /* of the log, a record of it each commit */

static void must(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "bench: %s: %s\n", what, mdb_strerror(rc));
        exit(1);
    }
}

static void put(enum db db, struct key *key, const void *value, size_t n)
{
    MDB_val k = key_val(key), v = {n, (void *)(uintptr_t)value};
    must(mdb_put(txn, dbi[db], &k, &v, 0), "put");
    puts_bytes += key->n + n;
}

static void counters_key(struct key *k)
{
    key_space(k, SPACE_META);
    key_bytes(k, "c", 1);
}

/* What a report with that URL is stored as: of the real record's size. */
static size_t report_value(struct str url, char *out)
{
    const struct report_record zero = {0};
    memcpy(out, &zero, sizeof(zero));
    memcpy(out + sizeof(zero), url.p, url.n);
    memcpy(out + sizeof(zero) + url.n, PROJECT, strlen(PROJECT));
    return sizeof(zero) + url.n + strlen(PROJECT);
}

void puts_report(unsigned page)
{
    char text[128], value[4096];
    struct key k;
    uint64_t id = ++counters.report;
    struct str url = {
        text, (size_t)snprintf(text, sizeof(text), "http://shop.localhost:40000/page/%08u", page)};
    key_id(&k, SPACE_REPORT, id);
    put(DB_RECORD, &k, value, report_value(url, value));
    const struct log_entry entry = {
        .kind = LOG_ADD, .id = id, .score = -1, .project = project, .url_n = (uint16_t)url.n};
    buf_add(&entries, &entry, sizeof(entry));
    buf_str(&entries, url);
    const struct job_record job = {.workspace = workspace, .order = ++counters.job, .attempt = 1};
    key_id(&k, SPACE_JOB, id);
    put(DB_BASE, &k, &job, sizeof(job));
}

/*
 * What changes once a commit: the workspace, the project, the counters, and the channel with the
 * answers of the whole batch.
 */
void puts_commit(size_t batch)
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
    put(DB_BASE, &k, value, sizeof(p) + strlen(PROJECT));
    key_id(&k, SPACE_LOG, workspace);
    key_u64(&k, counters.report);
    put(DB_LIST, &k, entries.p, entries.n);
    buf_reset(&entries);
    counters_key(&k);
    put(DB_BASE, &k, &counters, sizeof(counters));
    key_id(&k, SPACE_SENDER, UINT64_MAX);
    put(DB_BASE, &k, channel,
        sizeof(uint64_t) +
            (batch * answer < sizeof(channel) - 8 ? batch * answer : sizeof(channel) - 8));
    must(mdb_txn_commit(txn), "commit");
}

void puts_begin(void)
{
    must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
}

void puts_open(const char *dir, uint64_t number)
{
    struct key k;
    MDB_val v;
    workspace = project = number;
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

void puts_close(void)
{
    mdb_env_close(env);
    buf_free(&entries);
}
