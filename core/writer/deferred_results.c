#include "core/writer/deferred_results.h"

#include "core/base/log.h"
#include "core/writer/grow.h"

#include <stdlib.h>
#include <string.h>

/* Above either limit, results are dropped. */
#define DEFERRED_MAX 1024
#define DEFERRED_MAX_BYTES ((size_t)32 << 20)
#define RETRIES_MAX 16
#define RETRY_MS 1000 /* after a failure, only one is retried */

static size_t bytes_of(const struct item *item)
{
    return sizeof(*item) + change_size(&item->change);
}

bool deferred_add(struct deferred_results *d, const struct item *item)
{
    if (d->count >= DEFERRED_MAX || d->bytes + bytes_of(item) > DEFERRED_MAX_BYTES)
        return false;
    if (d->count == 0)
        log_warn("store full: holding grading results in memory until space is freed");
    d->items = array_grow(d->items, d->count, &d->capacity, sizeof(*d->items));
    d->items[d->count++] = *item;
    d->bytes += bytes_of(item);
    return true;
}

bool deferred_is_due(const struct deferred_results *d)
{
    return d->count != 0 && clock_mono_ms() >= d->retry_at_ms;
}

void deferred_retry(struct deferred_results *d, struct batch *batch)
{
    if (!deferred_is_due(d))
        return;
    size_t count = d->retries < d->count ? d->retries : d->count;
    for (size_t i = 0; i < count; i++) {
        d->bytes -= bytes_of(&d->items[i]);
        *batch_add(batch, NULL, 0) = d->items[i];
    }
    d->count -= count;
    memmove(d->items, d->items + count, d->count * sizeof(*d->items));
}

void deferred_settle(struct deferred_results *d, bool full)
{
    size_t more = d->retries * 2 < RETRIES_MAX ? d->retries * 2 : RETRIES_MAX;
    d->retries = full ? 1 : more;
    if (full)
        d->retry_at_ms = clock_mono_ms() + RETRY_MS;
}

bool deferred_has(const struct deferred_results *d, uint64_t report)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->items[i].change.id == report)
            return true;
    return false;
}

void deferred_free(struct deferred_results *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->items[i].payload);
    free(d->items);
}
