#include "store/check_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Every record is held against its indexes and counters and every index entry against its record, each within one snapshot, in which they
 * must agree: so nothing a writer does meanwhile looks like a mistake. After a slice the snapshot is renewed and the walk goes on behind
 * the key it had reached.
 */
#define SLICE 1000

/* Columns: space, what looks at one of its records, what they are. */
static const struct {
    enum space space;
    check_fn *look;
    const char *what;
} passes[] = {
    {SPACE_WORKSPACE, check_workspace, "the workspaces"},
    {SPACE_WORKSPACE_NAME, check_workspace_name, "the names of workspaces"},
    {SPACE_KEY, check_key, "the keys"},
    {SPACE_KEY_ID, check_key_id, "the ids of keys"},
    {SPACE_KEY_WORKSPACE, check_key_workspace, "the keys of workspaces"},
    {SPACE_PROJECT, check_project, "the projects"},
    {SPACE_PROJECT_NAME, check_project_name, "the names of projects"},
    {SPACE_PROJECT_DATE, check_project_date, "the dates of projects"},
    {SPACE_REPORT, check_report, "the reports"},
    {SPACE_JOB, check_job, "the jobs"},
    {SPACE_RESULT, check_result, "the results"},
    {SPACE_LOG, check_log, "the logs of indexes"},
    {SPACE_INDEX, check_index_record, "the manifests of indexes"},
    {SPACE_SEGMENT, check_segment_row, "the segments of indexes"},
    {SPACE_BASE, check_base, "the bases of indexes"},
    {SPACE_INDEX_DUE, check_index_due, "the list of indexes that are due"},
    {SPACE_DYING, check_dying, "the rows of what is being deleted"},
    {SPACE_IDEM, check_idem, "the Idempotency-Keys"},
    {SPACE_IDEM_AGE, check_idem_age, "the ages of Idempotency-Keys"},
    {SPACE_CHANNEL, check_channel, "the answers of channels"},
    {SPACE_AGENT, check_agent, "the agents"},
    {SPACE_VISITOR, check_visitor, "the visitors"},
    {SPACE_VISITOR_SECRET, check_visitor_secret, "the secrets of visitors"},
    {SPACE_CONVERSATION, check_conversation, "the conversations"},
    {SPACE_MESSAGE, check_message, "the messages"},
    {SPACE_NOTE, check_note, "the notes"},
    {SPACE_ONCE, check_once, "the keys of what was sent once"},
    {SPACE_LEAD, check_lead, "the leads"},
    {SPACE_LEAD_EMAIL, check_lead_email, "the addresses of leads"},
    {SPACE_EVENT, check_event, "the events"},
    {SPACE_RATING, check_rating, "the ratings"},
    {SPACE_LISTED, check_listed_row, "the lists of the widget"},
    {SPACE_ERASING, check_erasing, "the rows of what is being erased"},
    {SPACE_COLLECTION, check_collection, "the collections"},
    {SPACE_COLLECTION_NAME, check_collection_name, "the names of collections"},
    {SPACE_GENERATION, check_generation, "the generations of syncs"},
    {SPACE_GENERATION_ID, check_generation_id, "the ids of generations"},
    {SPACE_ITEM, check_item, "the synced items"},
    {SPACE_DOCUMENT, check_document, "the documents"},
    {SPACE_ANSWERS, check_answers, "the records of answer files"},
    {SPACE_ANSWERS_LOG, check_answers_log, "the log of changed documents"},
    {SPACE_UNSEEN, check_unseen, "the purges of syncs"},
    {SPACE_COUPON, check_coupon, "the coupons"},
    {SPACE_STAGED, check_staged, "the staged coupons"},
    {SPACE_SYNC_ONCE, check_sync_once, "the keys of syncs"},
};

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
    if (c->progress != NULL && before / SLICE != c->done / SLICE &&
        !c->progress(c->arg, c->done, c->total > c->done ? c->total : c->done))
        c->stopped = true;
}

/* The records of the snapshot under way, and the counters the ids are held against. */
enum store_status check_renew(struct check *c)
{
    struct key k;
    MDB_val v;
    store_read_end(c->s);
    enum store_status status = store_snapshot(c->s, &c->txn);
    if (status != STORE_OK)
        return status;
    key_space(&k, SPACE_META);
    key_bytes(&k, "c", 1);
    status = store_get(c->s, c->txn, SPACE_META, &k, &v);
    const void *counters = status == STORE_OK ? store_record(v, sizeof(c->counters)) : NULL;
    if (counters == NULL)
        return store_corrupt(c->s, "the record of counters");
    memcpy(&c->counters, counters, sizeof(c->counters));
    return STORE_OK;
}

/* One slice from ${from} on; ${from} becomes the first key not looked at. False at the end of the space. */
static bool slice(struct check *c, size_t pass, struct key *from, enum store_status *status)
{
    struct walk w = {0};
    enum db db = schema_space_db[passes[pass].space];
    key_space(&w.prefix, passes[pass].space);
    *status = walk_from(c->s, c->txn, &w, db, from);
    for (unsigned n = 0; *status == STORE_OK && n < SLICE && !c->stopped; n++) {
        passes[pass].look(c, &w);
        check_step(c, 1);
        *status = walk_next(&w);
    }
    bool more = *status == STORE_OK && !c->stopped;
    if (more) {
        from->n = 0;
        key_bytes(from, w.k.mv_data, w.k.mv_size);
    }
    walk_end(&w);
    if (*status == STORE_NOT_FOUND)
        *status = STORE_OK;
    return more;
}

static enum store_status run_pass(struct check *c, size_t pass)
{
    struct key from;
    enum store_status status;
    bool more = true;
    key_space(&from, passes[pass].space);
    store_begins(c->s, passes[pass].what);
    while (more) {
        status = check_renew(c);
        if (status != STORE_OK)
            return status;
        more = slice(c, pass, &from, &status);
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

/* The number of dying things is looked at on its own: nobody looks for them while it is 0. */
static enum store_status check_dying_count(struct check *c)
{
    struct walk w = {0};
    uint64_t rows = 0;
    enum store_status status = check_renew(c);
    if (status == STORE_OK)
        status = walk_begin(c->s, c->txn, &w, SPACE_DYING);
    for (; status == STORE_OK; status = walk_next(&w))
        rows++;
    walk_end(&w);
    if (status == STORE_NOT_FOUND && rows != c->counters.dying)
        check_say(c, "%llu things are being deleted and the counter says %llu",
                  (unsigned long long)rows, (unsigned long long)c->counters.dying);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* A snapshot must not be held for long beside a busy writer, since it pins what every commit frees. */
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
 * Pages first: LMDB would follow a damaged one out of the file. The snapshot pins what is looked at; one that cannot be told from the
 * file is renewed.
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
    store_begins(s, "the pages of data.mdb");
    enum store_status status = check_pages(&c);
    if (status == STORE_OK)
        status = count_records(&c);
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && status == STORE_OK && !c.stopped;
         i++)
        status = run_pass(&c, i);
    store_begins(s, "the indexes of reports");
    if (status == STORE_OK && !c.stopped && !records_only)
        status = check_index(&c);
    if (status == STORE_OK && !c.stopped)
        status = check_unindexed_count(&c);
    if (status == STORE_OK && !c.stopped)
        status = check_dying_count(&c);
    store_read_end(s);
    if (records != NULL)
        *records = c.done;
    if (progress != NULL && !c.stopped)
        progress(arg, c.done, c.done);
    if (status != STORE_OK)
        return status;
    if (c.stopped) {
        snprintf(s->why, sizeof(s->why), "the check was stopped before its end");
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
