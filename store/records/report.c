#include "store/records/report.h"

#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/index/index.h"
#include "store/records/cached_records.h"
#include "store/records/project.h"
#include "store/records/result.h"
#include "store/records/ulid_keys.h"

/* ---- reading ---- */

static enum store_status get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                             struct store_report *out)
{
    MDB_txn *txn;
    MDB_val v;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    status = store_get_report(s, id, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_report(v, out))
        return store_corrupt(s, "a report's record");
    if ((workspace != STORE_ANY_WORKSPACE && out->workspace != workspace) ||
        store_is_deleting(s, txn, out->workspace, out->project))
        return STORE_NOT_FOUND;
    /* a report that was never graded has no results */
    bool graded = out->status != REPORT_PENDING || out->attempt > 1;
    return with_results && graded ? report_results(s, txn, out) : STORE_OK;
}

enum store_status report_results(struct store *s, MDB_txn *txn, struct store_report *r)
{
    return result_get(s, txn, r->id, &r->results);
}

void store_report_get(struct store *s, uint64_t workspace, uint64_t id, bool with_results,
                      store_report_fn *done, void *arg)
{
    struct store_report r;
    enum store_status status = get(s, workspace, id, with_results, &r);
    done(arg, status, status == STORE_OK ? &r : NULL);
}

/* ---- records within a transaction ---- */

enum store_status report_load(struct store_txn *t, uint64_t id, struct store_report *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    enum store_status status = txn_get_copy(t, SPACE_REPORT, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_report(v, out))
        return txn_fail(t, 0, "a report's record");
    return STORE_OK;
}

bool report_active(struct store_txn *t, const struct store_report *r)
{
    return !store_is_deleting(t->s, t->mdb, r->workspace, r->project);
}

void report_write(struct store_txn *t, const struct store_report *r)
{
    const struct report_record head = {
        .status = (uint8_t)r->status,
        .privacy = (uint8_t)r->privacy,
        .result = (uint8_t)r->result,
        .score = (int8_t)r->score,
        .attempt = r->attempt,
        .id = r->id,
        .workspace = r->workspace,
        .project = r->project,
        .version = r->version,
        .created_at = r->created_at,
        .updated_at = r->updated_at,
        .generated_at = r->generated_at,
        .issues_high = r->issues_high,
        .issues_medium = r->issues_medium,
        .issues_low = r->issues_low,
        .issues_passed = r->issues_passed,
        .url_n = (uint16_t)r->url.n,
        .name_n = (uint16_t)r->project_name.n,
        .hash_n = (uint16_t)r->password_hash.n,
        .code_n = (uint16_t)r->error_code.n,
        .message_n = (uint16_t)r->error_message.n,
    };
    struct key k;
    key_id(&k, SPACE_REPORT, r->id);
    char *to = txn_reserve(t, SPACE_REPORT, &k,
                           sizeof(head) + r->url.n + r->project_name.n + r->password_hash.n +
                               r->error_code.n + r->error_message.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&head, sizeof(head)});
    to = append_str(to, r->url);
    to = append_str(to, r->project_name);
    to = append_str(to, r->password_hash);
    to = append_str(to, r->error_code);
    append_str(to, r->error_message);
}

void report_replace(struct store_txn *t, const struct store_report *old, struct store_report *new)
{
    struct cached_record *w = txn_workspace(t, old->workspace);
    struct cached_record *p = txn_project(t, old->project);
    if (w == NULL || p == NULL) {
        txn_fail(t, 0, "a report's workspace or project");
        return;
    }
    new->version = old->version + 1;
    new->updated_at = t->now;
    report_write(t, new);
    index_move(t, old, new);
    project_count(t, w, p, old, new);
}
