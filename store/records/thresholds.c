#include "store/records/thresholds.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/context.h"
#include "store/records/report.h"

#define BATCH 500 /* heads read by one step */
#define RATED UINT64_MAX

static void rating_key(struct key *k)
{
    key_meta(k, 'r');
}

static enum store_status rating_read(struct store *s, MDB_txn *txn, struct rating_record *out)
{
    struct key k;
    MDB_val v;
    rating_key(&k);
    enum store_status status = store_get(s, txn, SPACE_META, &k, &v);
    const void *found = status == STORE_OK ? store_record(v, sizeof(*out)) : NULL;
    *out = (struct rating_record){0};
    if (found != NULL)
        memcpy(out, found, sizeof(*out));
    else if (status == STORE_OK)
        status = store_corrupt(s, "the record of thresholds");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum report_result result_of(const struct store *s, int score)
{
    return score >= (int)s->records->good     ? RESULT_GOOD
           : score >= (int)s->records->decent ? RESULT_DECENT
                                              : RESULT_BAD;
}

/* After a reload an auditor may still grade by the old thresholds. */
enum report_result thresholds_result(const struct store *s, int score, enum report_result sent)
{
    return s->records->rates ? result_of(s, score) : sent;
}

static void rate(struct store_txn *t, uint64_t id)
{
    struct store_report old;
    if (report_load(t, id, &old) != STORE_OK) {
        txn_fail(t, 0, "a report's record");
        return;
    }
    if (old.score < 0 || old.result == result_of(t->s, old.score) || !report_active(t, &old))
        return;
    struct store_report new = old;
    new.result = result_of(t->s, old.score);
    report_replace(t, &old, &new);
}

void thresholds_failed(struct store_txn *t)
{
    t->s->records->rating_failed = true;
    t->s->records->rating_failed_at = t->now;
}

static bool rating_rests(struct store_txn *t)
{
    enum { REST_MS = 60000 };
    const struct store *s = t->s;
    int64_t since = t->now - s->records->rating_failed_at;
    bool rests = s->records->rating_failed && since >= 0 && since < REST_MS;
    return rests || txn_is_full(t);
}

bool thresholds_step(struct store_txn *t)
{
    struct rating_record r;
    struct key k;
    uint64_t ids[BATCH];
    const struct store *s = t->s;
    if (!s->records->rates || s->records->rated || t->error != STORE_OK || rating_rests(t))
        return false;
    if (rating_read(t->s, t->mdb, &r) != STORE_OK) {
        txn_fail(t, 0, "the record of thresholds");
        return false;
    }
    if (r.good != s->records->good || r.decent != s->records->decent)
        r = (struct rating_record){.good = s->records->good, .decent = s->records->decent};
    if (r.after == RATED) {
        t->s->records->rated = true;
        return false;
    }
    t->s->records->rerated = true;
    size_t count = record_ids(t, SPACE_REPORT, r.after, BATCH, ids);
    size_t done = 0;
    for (bool stops = false; done < count && t->error == STORE_OK && !stops;
         stops = txn_must_stop(t))
        rate(t, ids[done++]);
    r.after = count < BATCH && done == count ? RATED : ids[done - 1];
    rating_key(&k);
    txn_put(t, SPACE_META, &k, &r, sizeof(r));
    return true;
}

bool thresholds_progress(struct store *s, MDB_txn *txn, uint64_t *after)
{
    struct rating_record r;
    if (!s->records->rates || s->records->rated || rating_read(s, txn, &r) != STORE_OK)
        return false;
    *after = r.good == s->records->good && r.decent == s->records->decent ? r.after
                                                                          /*
                                                         * the end of other thresholds is the start
                                                         * of these
                                                         */
                                                                          : 0;
    return *after != RATED;
}
