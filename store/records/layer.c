#include "store/engine/layers.h"
#include "store/engine/txn.h"
#include "store/records/answers_log.h"
#include "store/records/cached_records.h"
#include "store/records/collection.h"
#include "store/records/context.h"
#include "store/records/records.h"
#include "store/records/result.h"
#include "store/records/thresholds.h"

#include <stdlib.h>

/* What the engine calls in this layer: store/engine/layers.h. */

static bool layer_open(struct store *s, const struct store_options *o)
{
    struct records_context *c = s->records = calloc(1, sizeof(*c));
    if (c == NULL)
        return false;
    c->rates = o->rates;
    c->good = o->good;
    c->decent = o->decent;
    return true;
}

static void layer_close(struct store *s)
{
    result_release(s);
    result_forget(s);
    free(s->records->reports);
    free(s->records->projects);
    free(s->records);
}

static void layer_txn_begin(struct store_txn *t)
{
    struct records_context *c = t->s->records;
    c->rerated = false;
    c->synced_known = c->synced_dirty = false;
    c->answers = (struct changed_answers){0};
    c->unindexed = 0;
}

static void layer_txn_write_back(struct store_txn *t)
{
    cache_write(t);
    answers_write_back(t);
    synced_write_back(t);
}

static void layer_txn_end(struct store_txn *t, bool failed)
{
    if (failed)
        t->s->records->rated = false; /* read again */
    if (failed && t->s->records->rerated)
        thresholds_failed(t);
    cache_clear(t);
}

static void layer_txn_free(struct store_txn *t)
{
    cache_free(t);
    buf_free(&t->s->records->compressed);
}

const struct layer records_layer = {
    .open = layer_open,
    .close = layer_close,
    .snapshot_end = result_release,
    .txn_begin = layer_txn_begin,
    .txn_write_back = layer_txn_write_back,
    .txn_end = layer_txn_end,
    .txn_free = layer_txn_free,
};
