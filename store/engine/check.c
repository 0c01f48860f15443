#include "store/engine/check.h"

#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/pages_internal.h"
#include "store/engine/snapshot.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Each record and its derived rows are compared within one snapshot, so that concurrent writes
 * never look like a contradiction. After a batch the snapshot is renewed and the cursor continues
 * after its last key.
 */
#define BATCH 1000

void check_say(struct check *c, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    c->problems++;
    if (c->problem != NULL)
        c->problem(c->arg, sentence);
}

bool check_get(struct check *c, enum space space, struct key *key, MDB_val *out)
{
    enum store_status status = store_get(c->s, c->txn, space, key, out);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        check_say(c, "%s", store_why(c->s));
    return status == STORE_OK;
}

void check_step(struct check *c, uint64_t n)
{
    uint64_t before = c->done;
    c->done += n;
    if (c->progress != NULL && before / BATCH != c->done / BATCH &&
        !c->progress(c->arg, c->done, c->total > c->done ? c->total : c->done))
        c->stopped = true;
}

bool check_report_at(struct check *c, uint64_t id, struct store_report *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    return check_get(c, SPACE_REPORT, &k, &v) && schema_read_report(v, out);
}

/* A new snapshot, and the counters that ids are compared with. */
enum store_status check_renew(struct check *c)
{
    store_read_end(c->s);
    enum store_status status = store_snapshot(c->s, &c->txn);
    if (status != STORE_OK)
        return status;
    return store_counters(c->s, c->txn, &c->counters);
}

/*
 * One batch from ${from} on; ${from} becomes the first key not checked. False at the end of the
 * space.
 */
static bool check_batch(struct check *c, size_t pass, struct key *from, enum store_status *status)
{
    struct cursor w = {0};
    enum db db = schema_space_db[check_rows[pass].space];
    key_space(&w.prefix, check_rows[pass].space);
    *status = cursor_from(c->s, c->txn, &w, db, from);
    for (unsigned n = 0; *status == STORE_OK && n < BATCH && !c->stopped; n++) {
        check_rows[pass].look(c, &w);
        check_step(c, 1);
        *status = cursor_next(&w);
    }
    bool more = *status == STORE_OK && !c->stopped;
    if (more) {
        from->n = 0;
        key_bytes(from, w.k.mv_data, w.k.mv_size);
    }
    cursor_end(&w);
    if (*status == STORE_NOT_FOUND)
        *status = STORE_OK;
    return more;
}

static enum store_status run_pass(struct check *c, size_t pass)
{
    struct key from;
    enum store_status status;
    bool more = true;
    key_space(&from, check_rows[pass].space);
    store_stage_begins(c->s, check_rows[pass].what);
    while (more) {
        status = check_renew(c);
        if (status != STORE_OK)
            return status;
        more = check_batch(c, pass, &from, &status);
    }
    return status;
}

static enum store_status count_records(struct check *c)
{
    MDB_stat stat;
    enum store_status status = check_renew(c);
    for (int i = 0; i < DB_COUNT && status == STORE_OK; i++) {
        if (mdb_stat(c->txn, c->s->dbi[i], &stat) == 0)
            c->total += stat.ms_entries;
    }
    return status;
}

/* The counter of deletions is checked separately: nobody reads SPACE_DELETING while it is 0. */
static enum store_status check_deleting_count(struct check *c)
{
    struct cursor w = {0};
    uint64_t rows = 0;
    enum store_status status = check_renew(c);
    if (status == STORE_OK)
        status = cursor_begin(c->s, c->txn, &w, SPACE_DELETING);
    for (; status == STORE_OK; status = cursor_next(&w))
        rows++;
    cursor_end(&w);
    if (status == STORE_NOT_FOUND && rows != c->counters.deleting)
        check_say(c, "%llu deletions are pending, but the counter says %llu",
                  (unsigned long long)rows, (unsigned long long)c->counters.deleting);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* A long snapshot keeps the pages that every commit frees. */
#define COMMITS_ALLOWED 2000

static bool pages_may_go_on(void *arg, uint64_t done, uint64_t total)
{
    struct check *c = arg;
    MDB_envinfo info;
    (void)done;
    (void)total;
    return mdb_env_info(c->s->env, &info) != 0 ||
           info.me_last_txnid - mdb_txn_id(c->txn) <= COMMITS_ALLOWED;
}

/*
 * Pages first: LMDB would follow a damaged one out of the file. The snapshot keeps the checked
 * pages; if the file no longer has its root, renew it.
 */
static enum store_status check_pages(struct check *c)
{
    char why[512] = "";
    int fd;
    if (mdb_env_get_fd(c->s->env, &fd) != 0)
        return STORE_OK;
    for (int tries = 0; tries < 100; tries++) {
        struct pages_facts facts;
        enum store_status status = check_renew(c);
        if (status != STORE_OK)
            return status;
        status = pages_facts_read(fd, mdb_txn_id(c->txn), &facts, why, sizeof(why));
        if (status == STORE_NOT_FOUND)
            continue;
        if (status == STORE_OK)
            status = pages_look(fd, &facts, PAGES_ALL, pages_may_go_on, c, why, sizeof(why));
        if (status == STORE_IO && !pages_may_go_on(c, 0, 0))
            status = STORE_OK;
        if (status == STORE_CORRUPT)
            check_say(c, "%s", why);
        else if (status != STORE_OK)
            snprintf(c->s->why, sizeof(c->s->why), "%s", why);
        return status;
    }
    return STORE_OK;
}

static enum store_status check_all(struct store *s, bool records_only, store_progress_fn *progress,
                                   store_problem_fn *problem, void *arg, uint64_t *records)
{
    struct check c = {
        .s = s, .records_only = records_only, .progress = progress, .problem = problem, .arg = arg};
    store_stage_begins(s, "the pages of data.mdb");
    enum store_status status = check_pages(&c);
    if (status == STORE_OK)
        status = count_records(&c);
    for (size_t i = 0; check_rows[i].look != NULL && status == STORE_OK && !c.stopped; i++)
        status = run_pass(&c, i);
    for (size_t i = 0; check_stages[i].run != NULL && status == STORE_OK && !c.stopped; i++) {
        if (check_stages[i].what != NULL)
            store_stage_begins(s, check_stages[i].what);
        status = check_stages[i].run(&c);
    }
    if (status == STORE_OK && !c.stopped)
        status = check_deleting_count(&c);
    store_read_end(s);
    if (records != NULL)
        *records = c.done;
    if (progress != NULL && !c.stopped)
        progress(arg, c.done, c.done);
    if (status != STORE_OK)
        return status;
    if (c.stopped) {
        snprintf(s->why, sizeof(s->why), "the check was stopped");
        return STORE_IO;
    }
    return c.problems == 0 ? STORE_OK : STORE_CORRUPT;
}

enum store_status store_check(struct store *s, store_progress_fn *progress,
                              store_problem_fn *problem, void *arg, uint64_t *records)
{
    return check_all(s, false, progress, problem, arg, records);
}

enum store_status store_check_records(struct store *s, store_progress_fn *progress,
                                      store_problem_fn *problem, void *arg, uint64_t *records)
{
    return check_all(s, true, progress, problem, arg, records);
}
