#include "store/engine/free_space.h"
#include "store/engine/txn.h"
#include "store/index/index.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/grading.h"
#include "store/records/idempotency.h"
#include "store/records/job.h"
#include "store/records/project.h"
#include "store/records/report.h"
#include "store/records/result.h"
#include "store/records/thresholds.h"

/* Changes of reports: create, update, delete, the end of a grading. */

#define HASH_BYTES 32
#define TEXT_MAX_BYTES 2048 /* of an error message, or of a password hash */
#define DEATHS_ALLOWED 2

/* A report that may be changed: of that workspace (0: any), and not being deleted. */
static enum store_status report_open(struct store_txn *t, uint64_t workspace, uint64_t id,
                                     struct store_report *out)
{
    enum store_status status = report_load(t, id, out);
    if (status == STORE_OK &&
        ((workspace != 0 && out->workspace != workspace) || !report_active(t, out)))
        return STORE_NOT_FOUND;
    return status;
}

static void queue(struct store_txn *t, const struct store_report *r)
{
    const struct job_record job = {
        .workspace = r->workspace, .order = txn_next(t, job), .attempt = r->attempt};
    job_put(t, r->id, &job);
    txn_event(t, EVENT_JOB_ADDED, r->workspace, r->id, r->attempt);
}

static bool queue_full(const struct cached_record *w, const struct store_change *c)
{
    return c->limit != 0 && w->workspace.pending + c->beside >= c->limit;
}

/* ---- create ---- */

static bool create_well_formed(const struct store_change *c)
{
    return c->url.n != 0 && c->url.n <= URL_MAX_BYTES && memchr(c->url.p, 0, c->url.n) == NULL &&
           c->name.n != 0 && c->name.n <= NAME_MAX_BYTES && c->privacy <= PRIVACY_PASSWORD &&
           c->hash.n <= TEXT_MAX_BYTES &&
           (c->idem_key.n == 0 || (c->idem_key.n == HASH_BYTES && c->idem_body.n == HASH_BYTES));
}

enum store_status report_create(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    if (!create_well_formed(c))
        return STORE_INVALID;
    enum store_status status = idempotency_look(t, c, answer);
    if (status != STORE_NOT_FOUND || answer->replayed)
        return status;
    if (c->privacy == PRIVACY_PASSWORD && c->hash.n == 0)
        return STORE_NO_PASSWORD;
    struct cached_record *w = txn_workspace_active(t, c->workspace);
    if (w == NULL)
        return STORE_NOT_FOUND;
    if (txn_is_full(t))
        return STORE_FULL;
    if (queue_full(w, c))
        return STORE_QUEUE_FULL;
    struct cached_record *p = project_for(t, w, c->name);
    if (p == NULL)
        return t->error;
    struct store_report r = {
        .id = txn_next(t, report),
        .workspace = w->id,
        .project = p->id,
        .version = 1,
        .status = REPORT_PENDING,
        .privacy = c->privacy,
        .score = -1,
        .attempt = 1,
        .created_at = t->now,
        .updated_at = t->now,
        .url = c->url,
        .project_name = p->name,
        .password_hash = c->privacy == PRIVACY_PASSWORD ? c->hash : (struct str){NULL, 0},
    };
    report_write(t, &r);
    index_move(t, NULL, &r);
    project_count(t, w, p, NULL, &r);
    queue(t, &r);
    idempotency_put(t, c, r.id);
    answer->id = r.id;
    answer->version = 1;
    answer->code = c->code;
    return STORE_OK;
}

/* ---- update, delete ---- */

static enum store_status judge_privacy(const struct store_change *c, const struct store_report *old)
{
    bool sent = c->fields & CHANGE_HAS_PRIVACY, password = c->fields & CHANGE_HAS_PASSWORD;
    if ((sent && c->privacy > PRIVACY_PASSWORD) ||
        (password && (c->hash.n == 0 || c->hash.n > TEXT_MAX_BYTES)))
        return STORE_INVALID;
    if (sent && c->privacy == PRIVACY_PASSWORD && !password && old->password_hash.n == 0)
        return STORE_NO_PASSWORD;
    return !sent && password && old->privacy != PRIVACY_PASSWORD ? STORE_NOT_PROTECTED : STORE_OK;
}

/* ${new} becomes ${old} with the caller's changes. True if they differ. */
static bool set_fields(const struct store_change *c, const struct store_report *old,
                       struct store_report *new)
{
    *new = *old;
    if (c->fields & CHANGE_HAS_PRIVACY)
        new->privacy = c->privacy;
    if (new->privacy != PRIVACY_PASSWORD)
        new->password_hash.n = 0;
    else if (c->fields & CHANGE_HAS_PASSWORD)
        new->password_hash = c->hash;
    if ((c->fields & CHANGE_REGENERATE) && old->status != REPORT_PENDING) {
        new->status = REPORT_PENDING;
        new->attempt++;
        new->error_code.n = new->error_message.n = 0;
    }
    return new->privacy != old->privacy || new->status != old->status ||
           !str_eq(new->password_hash, old->password_hash);
}

enum store_status report_update(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct store_report old, new;
    enum store_status status = report_open(t, c->workspace, c->id, &old);
    if (status != STORE_OK)
        return status;
    answer->id = old.id;
    answer->version = old.version;
    if (!txn_match(c->match, old.version))
        return STORE_PRECONDITION;
    status = judge_privacy(c, &old);
    if (status != STORE_OK || !set_fields(c, &old, &new))
        return status;
    bool again = new.status != old.status;
    struct cached_record *w = txn_workspace(t, old.workspace);
    if (again && txn_is_full(t))
        return STORE_FULL;
    if (again && w != NULL && queue_full(w, c))
        return STORE_QUEUE_FULL;
    report_replace(t, &old, &new);
    if (again)
        queue(t, &new);
    answer->version = new.version;
    return STORE_OK;
}

void report_remove(struct store_txn *t, const struct store_report *r)
{
    struct key k;
    index_move(t, r, NULL);
    result_drop(t, r->id);
    grading_drop_all(t, r->id);
    if (r->status == REPORT_PENDING)
        job_drop(t, r->id);
    key_id(&k, SPACE_REPORT, r->id);
    txn_del(t, SPACE_REPORT, &k);
}

enum store_status report_delete(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct store_report r;
    enum store_status status = report_open(t, c->workspace, c->id, &r);
    if (status != STORE_OK)
        return status;
    answer->id = r.id;
    answer->version = r.version;
    if (!txn_match(c->match, r.version))
        return STORE_PRECONDITION;
    struct cached_record *w = txn_workspace(t, r.workspace);
    struct cached_record *p = txn_project(t, r.project);
    if (w == NULL || p == NULL)
        return txn_fail(t, 0, "a report's workspace or project");
    report_remove(t, &r);
    project_count(t, w, p, &r, NULL);
    txn_event(t, EVENT_REPORT_DELETED, r.workspace, r.id, 0);
    return STORE_OK;
}

/* ---- the end of a grading ---- */

/* The report that waits for this attempt. */
static enum store_status waiting(struct store_txn *t, const struct store_change *c,
                                 struct store_report *out)
{
    enum store_status status = report_open(t, 0, c->id, out);
    if (status == STORE_NOT_FOUND)
        return STORE_STALE;
    return status == STORE_OK && (out->status != REPORT_PENDING || out->attempt != c->attempt)
               ? STORE_STALE
               : status;
}

static bool finish_well_formed(const struct store_change *c)
{
    if (c->status == REPORT_DONE)
        return c->score >= 0 && c->score <= 100 && c->result >= RESULT_GOOD &&
               c->result <= RESULT_BAD && c->results.n != 0 && c->results.n <= STORE_RESULTS_MAX &&
               c->results.p[0] == '{' && grading_well_formed(c);
    return c->status == REPORT_FAILED && c->error_code.n != 0 &&
           c->error_code.n <= TEXT_MAX_BYTES && c->error_message.n <= TEXT_MAX_BYTES;
}

/* An error also makes the head longer. */
static size_t result_bytes(const struct store_change *c)
{
    return c->status == REPORT_DONE ? c->results.n + grading_bytes(c) : 0;
}

static void finish(struct store_txn *t, const struct store_report *old, struct store_report *new,
                   struct store_answer *answer)
{
    report_replace(t, old, new);
    job_drop(t, old->id);
    txn_event(t, EVENT_REPORT_FINISHED, old->workspace, old->id, new->version);
    answer->id = old->id;
    answer->version = new->version;
}

static void fail(struct store_txn *t, const struct store_report *old, struct str code,
                 struct str message, struct store_answer *answer)
{
    struct store_report new = *old;
    new.status = REPORT_FAILED;
    new.error_code = code;
    new.error_message = message;
    finish(t, old, &new, answer);
}

enum store_status report_finish(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct store_report old;
    if (!finish_well_formed(c))
        return STORE_INVALID;
    enum store_status status = waiting(t, c, &old);
    if (status != STORE_OK)
        return status;
    if (!txn_results_fit(t, result_bytes(c)))
        return STORE_FULL;
    if (c->status == REPORT_FAILED) {
        fail(t, &old, c->error_code, c->error_message, answer);
        return STORE_OK;
    }
    struct store_report new = old;
    new.status = REPORT_DONE;
    new.score = c->score;
    new.result = thresholds_result(t->s, c->score, c->result);
    new.generated_at = t->now;
    new.issues_high = c->issues_high;
    new.issues_medium = c->issues_medium;
    new.issues_low = c->issues_low;
    new.issues_passed = c->issues_passed;
    result_put(t, old.id, c->results);
    grading_keep(t, &old);
    grading_put(t, &new, c);
    finish(t, &old, &new, answer);
    return STORE_OK;
}

enum store_status report_died(struct store_txn *t, const struct store_change *c,
                              struct store_answer *answer)
{
    struct store_report old;
    struct job_record job;
    enum store_status status = waiting(t, c, &old);
    if (status == STORE_OK)
        status = job_load(t, old.id, &job);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? txn_fail(t, 0, "a job") : status;
    answer->id = old.id;
    answer->version = old.version;
    if (++job.deaths < DEATHS_ALLOWED)
        job_put(t, old.id, &job);
    else
        fail(t, &old, STR("too_complex"),
             STR("The page could not be analysed: it ended the auditor twice."), answer);
    return STORE_OK;
}
