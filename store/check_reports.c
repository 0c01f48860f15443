#include "check_parts.h"

#define LL(v) ((unsigned long long)(v))

/* Columns: how a sentence names a list. */
static const char *const kinds[] = {[INDEX_ID] = "id", [INDEX_DATE] = "date", [INDEX_SCORE] = "score", [INDEX_URL] = "URL"};
static const char *const scopes[] = {[SCOPE_WORKSPACE] = "workspace", [SCOPE_PROJECT] = "project"};

static bool report_at(struct check *c, uint64_t id, struct store_report *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    return check_get(c, SPACE_REPORT, &k, &v) && schema_read_report(v, out);
}

/* ---- a head against everything else ---- */

static void check_indexes(struct check *c, const struct store_report *r)
{
    for (enum index_scope scope = SCOPE_WORKSPACE; scope <= SCOPE_PROJECT; scope++) {
        for (enum index_kind kind = INDEX_ID; kind <= INDEX_URL; kind++) {
            struct key k;
            MDB_val v;
            if (r->result == RESULT_NONE && (kind == INDEX_DATE || kind == INDEX_SCORE))
                continue;
            if (index_key(c->s, c->txn, r, scope, kind, &k) != STORE_OK || !check_get(c, SPACE_INDEX, &k, &v))
                check_say(c, "report %llu is missing in the list of its %s by %s", LL(r->id), scopes[scope], kinds[kind]);
        }
    }
}

static void check_belongings(struct check *c, const struct store_report *r)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_RESULT, r->id);
    if (check_get(c, SPACE_RESULT, &k, &v) != (r->result != RESULT_NONE))
        check_say(c, "report %llu %s", LL(r->id), r->result != RESULT_NONE ? "has lost its results" : "has results and no score");
    key_id(&k, SPACE_JOB, r->id);
    const struct job_record *job = check_get(c, SPACE_JOB, &k, &v) ? store_record(v, sizeof(*job)) : NULL;
    if ((job != NULL) != (r->status == REPORT_PENDING))
        check_say(c, "report %llu %s", LL(r->id), job == NULL ? "waits and nobody will generate it" : "has a job and does not wait");
    else if (job != NULL && (job->attempt != r->attempt || job->workspace != r->workspace))
        check_say(c, "the job of report %llu is of another attempt", LL(r->id));
}

static void check_owners(struct check *c, const struct store_report *r)
{
    struct key k;
    MDB_val v;
    struct store_project p;
    key_id(&k, SPACE_PROJECT, r->project);
    bool good = check_get(c, SPACE_PROJECT, &k, &v) && schema_read_project(v, &p);
    if (!good || p.workspace != r->workspace || !str_eq(p.name, r->project_name))
        check_say(c, "report %llu belongs to project %llu, which is not there or another", LL(r->id), LL(r->project));
}

void check_report(struct check *c, const struct walk *w)
{
    uint64_t id;
    struct store_report r;
    if (!walk_u64(w, 0, &id) || !schema_read_report(w->v, &r) || r.id != id) {
        check_say(c, "the record of a report is malformed");
        return;
    }
    if (id > c->counters.report)
        check_say(c, "report %llu has an id that was never given", LL(id));
    if ((r.result == RESULT_NONE) != (r.score < 0) || (r.result == RESULT_NONE) != (r.generated_at == 0) ||
        (r.status == REPORT_DONE && r.result == RESULT_NONE) || (r.status == REPORT_FAILED) != (r.error_code.n != 0))
        check_say(c, "report %llu contradicts itself in status, score, result, date or error", LL(id));
    if ((r.privacy == PRIVACY_PASSWORD) != (r.password_hash.n != 0))
        check_say(c, "report %llu has privacy %d and %s password", LL(id), r.privacy, r.password_hash.n != 0 ? "a" : "no");
    check_owners(c, &r);
    check_indexes(c, &r);
    check_belongings(c, &r);
}

/* ---- and everything else against its head ---- */

void check_job(struct check *c, const struct walk *w)
{
    uint64_t id;
    struct store_report r;
    if (!walk_u64(w, 0, &id) || !report_at(c, id, &r) || r.status != REPORT_PENDING)
        check_say(c, "a job has no report that waits for it");
}

void check_result(struct check *c, const struct walk *w)
{
    uint64_t id;
    struct store_report r;
    if (!walk_u64(w, 0, &id) || !report_at(c, id, &r))
        check_say(c, "results have no report");
}

/* How many URLs go through a node: the entries below it that end, and what its own nodes say. */
static uint64_t urls_below(struct check *c, const struct walk *from, uint64_t scope_id, uint64_t node)
{
    struct walk w = {0};
    uint64_t urls = 0;
    key_tag(&w.prefix, *(const uint8_t *)from->k.mv_data);
    key_u64(&w.prefix, scope_id);
    key_u64(&w.prefix, node);
    enum store_status status = walk_prefix(c->s, c->txn, &w, DB_INDEX, false);
    for (; status == STORE_OK; status = walk_next(&w)) {
        const uint8_t *p = (const uint8_t *)w.k.mv_data + w.prefix.n;
        size_t n = w.k.mv_size - w.prefix.n;
        bool ends = memchr(p, 0, n < INDEX_SEGMENT_BYTES + 1 ? n : INDEX_SEGMENT_BYTES + 1) != NULL;
        const struct index_node *below = ends ? NULL : store_record(w.v, sizeof(*below));
        urls += ends ? 1 : below == NULL ? 0 : below->urls;
    }
    walk_end(&w);
    return urls;
}

/* The report's id is what an entry ends in; where is told by how its key begins. False for a node, which is looked at here. */
static bool entry_id(struct check *c, const struct walk *w, enum index_kind kind, const uint8_t *at, const uint8_t *end, uint64_t scope_id,
                     uint64_t *id)
{
    uint64_t value;
    if (kind != INDEX_URL) {
        if ((kind == INDEX_ID || key_read_u64(&at, end, &value)) && key_read_u64(&at, end, id) && at == end)
            return true;
        check_say(c, "an entry of reports by %s is malformed", kinds[kind]);
        return false;
    }
    if (!key_read_u64(&at, end, &value)) {
        check_say(c, "an entry of reports by URL is malformed");
        return false;
    }
    size_t n = (size_t)(end - at);
    const uint8_t *nul = memchr(at, 0, n < INDEX_SEGMENT_BYTES + 1 ? n : INDEX_SEGMENT_BYTES + 1);
    if (nul != NULL) {
        at = nul + 1;
        if (key_read_u64(&at, end, id) && at == end)
            return true;
        check_say(c, "an entry of reports by URL is malformed");
        return false;
    }
    const struct index_node *node = store_record(w->v, sizeof(*node));
    if (n != INDEX_SEGMENT_BYTES + 1 || node == NULL || node->urls == 0 || node->urls != urls_below(c, w, scope_id, node->node))
        check_say(c, "a node of the reports by URL is malformed, or counts wrong");
    return false;
}

void check_index(struct check *c, const struct walk *w)
{
    const uint8_t *at = w->k.mv_data;
    const uint8_t *end = at + w->k.mv_size;
    unsigned kind = *at >> 4, scope = *at >> 3 & 1;
    uint64_t scope_id, id, project = 0;
    at++;
    if (kind < INDEX_ID || kind > INDEX_URL || !key_read_u64(&at, end, &scope_id)) {
        check_say(c, "an entry of reports is malformed");
        return;
    }
    if (!entry_id(c, w, kind, at, end, scope_id, &id))
        return;
    struct store_report r;
    struct key k;
    const uint8_t *value = w->v.mv_data;
    if (!report_at(c, id, &r) || index_key(c->s, c->txn, &r, scope, kind, &k) != STORE_OK || k.n != w->k.mv_size ||
        memcmp(k.b, w->k.mv_data, k.n) != 0)
        check_say(c, "the list of %s %llu by %s names report %llu, which is not there or belongs elsewhere in it", scopes[scope],
                  LL(scope_id), kinds[kind], LL(id));
    else if (scope == SCOPE_WORKSPACE ? !key_read_u64(&value, value + w->v.mv_size, &project) || project != r.project : w->v.mv_size != 0)
        check_say(c, "the list of %s %llu by %s has report %llu under another project", scopes[scope], LL(scope_id), kinds[kind], LL(id));
}
