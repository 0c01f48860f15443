#include "store/engine/environment.h"
#include "store/engine/layers.h"
#include "store/records/answers_log.h"
#include "store/records/cached_records.h"
#include "store/records/collection.h"
#include "store/records/records.h"
#include "store/records/result.h"
#include "store/records/thresholds.h"

#include <stdlib.h>

/* What the engine calls in this layer: store/engine/layers.h. */

static void layer_open(struct store *s, const struct store_options *o)
{
    s->rates = o->rates;
    s->good = o->good;
    s->decent = o->decent;
}

static void layer_close(struct store *s)
{
    result_release(s);
    result_forget(s);
    free(s->reports);
    free(s->projects);
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
        t->s->rated = false; /* read again */
    if (failed && t->rated)
        thresholds_failed(t);
    cache_clear(t);
}

const struct layer records_layer = {
    .open = layer_open,
    .close = layer_close,
    .snapshot_end = result_release,
    .txn_write_back = layer_txn_write_back,
    .txn_end = layer_txn_end,
    .txn_free = cache_free,
};
