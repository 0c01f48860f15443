#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/index/check.h"
#include "store/records/checks.h"
#include "store/records/grading.h"
#include "store/records/result.h"

#define LL(v) ((unsigned long long)(v))

/* ---- a head against everything else ---- */

static void check_belongings(struct check *c, const struct store_report *r)
{
    struct key k;
    MDB_val v;
    struct str results = {0};
    enum store_status status = result_get(c->s, c->txn, r->id, &results);
    if (status != STORE_OK)
        check_say(c, "report %llu: %s", LL(r->id), store_why(c->s));
    else if ((results.n != 0) != (r->result != RESULT_NONE))
        check_say(c, "report %llu %s", LL(r->id),
                  r->result != RESULT_NONE ? "has a score but no results"
                                           : "has results but no score");
    key_id(&k, SPACE_JOB, r->id);
    const struct job_record *job =
        check_get(c, SPACE_JOB, &k, &v) ? store_record(v, sizeof(*job)) : NULL;
    if ((job != NULL) != (r->status == REPORT_PENDING))
        check_say(c, "report %llu %s", LL(r->id),
                  job == NULL ? "is pending but has no job" : "has a job but is not pending");
    else if (job != NULL && (job->attempt != r->attempt || job->workspace != r->workspace))
        check_say(c, "the job of report %llu is of another attempt", LL(r->id));
}

/* The newest row is the grading that gave the report its score. */
static bool is_last_grading(const struct store_report *r, const struct store_grading *g)
{
    return g->score == r->score && g->generated_at == r->generated_at && g->number <= r->attempt &&
           g->issues_high == r->issues_high && g->issues_medium == r->issues_medium &&
           g->issues_low == r->issues_low && g->issues_passed == r->issues_passed;
}

static void check_gradings(struct check *c, const struct store_report *r)
{
    struct cursor w = {0};
    struct store_grading g;
    unsigned n = 0;
    key_id(&w.prefix, SPACE_GRADING, r->id);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_GRADING, true);
    for (; status == STORE_OK && n <= STORE_GRADINGS_MAX; status = cursor_next(&w))
        if (n++ == 0 && grading_look(w.k, w.v, &g) && !is_last_grading(r, &g))
            check_say(c, "report %llu differs from its last grading", LL(r->id));
    cursor_end(&w);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        check_say(c, "%s", store_why(c->s));
    if (n > STORE_GRADINGS_MAX)
        check_say(c, "report %llu has more than %d gradings", LL(r->id), STORE_GRADINGS_MAX);
}

static void check_owners(struct check *c, const struct store_report *r)
{
    struct key k;
    MDB_val v;
    struct store_project p;
    key_id(&k, SPACE_PROJECT, r->project);
    bool good = check_get(c, SPACE_PROJECT, &k, &v) && schema_read_project(v, &p);
    if (!good || p.workspace != r->workspace || !str_eq(p.name, r->project_name))
        check_say(c, "report %llu belongs to project %llu, which does not exist or differs",
                  LL(r->id), LL(r->project));
}

void check_report(struct check *c, const struct cursor *w)
{
    uint64_t id;
    struct store_report r;
    if (!cursor_u64(w, 0, &id) || !schema_read_report(w->v, &r) || r.id != id) {
        check_say(c, "the record of a report is malformed");
        return;
    }
    if (id > c->counters.report)
        check_say(c, "report %llu has an id that was never given", LL(id));
    if ((r.result == RESULT_NONE) != (r.score < 0) ||
        (r.result == RESULT_NONE) != (r.generated_at == 0) ||
        (r.status == REPORT_DONE && r.result == RESULT_NONE) ||
        (r.status == REPORT_FAILED) != (r.error_code.n != 0))
        check_say(c, "status, score, result, date and error of report %llu are inconsistent",
                  LL(id));
    if ((r.privacy == PRIVACY_PASSWORD) != (r.password_hash.n != 0))
        check_say(c, "report %llu has privacy %d and %s password", LL(id), r.privacy,
                  r.password_hash.n != 0 ? "a" : "no");
    check_owners(c, &r);
    check_index_row(c, &r);
    check_belongings(c, &r);
    check_gradings(c, &r);
}

/* ---- and everything else against its head ---- */

void check_job(struct check *c, const struct cursor *w)
{
    uint64_t id;
    struct store_report r;
    if (!cursor_u64(w, 0, &id) || !check_report_at(c, id, &r) || r.status != REPORT_PENDING)
        check_say(c, "a job has no pending report");
}

void check_result(struct check *c, const struct cursor *w)
{
    uint64_t id, piece;
    struct store_report r;
    if (!cursor_u64(w, 0, &id) || !check_report_at(c, id, &r))
        check_say(c, "results have no report");
    else if (cursor_u64(w, 1, &piece) && !result_piece_good(c->s, c->txn, id, piece))
        check_say(c, "report %llu has a piece of results without the one before it", LL(id));
}

void check_grading(struct check *c, const struct cursor *w)
{
    uint64_t id;
    struct store_report r;
    struct store_grading g;
    if (!cursor_u64(w, 0, &id) || !grading_look(w->k, w->v, &g))
        check_say(c, "a grading is malformed");
    else if (!check_report_at(c, id, &r))
        check_say(c, "a grading has no report");
}
