#include "core/writer/writer_internal.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

/* Beyond either, results are dropped. A sweep of the jobs grades their pages again (maintenance.c). */
#define DEFERRED_MAX 1024
#define DEFERRED_MAX_BYTES ((size_t)32 << 20)
#define HELD_SLICE 16
#define HELD_EVERY_MS 1000 /* one is tried, to see whether there is room again */

static size_t bytes_of(const struct item *item)
{
    return sizeof(*item) + item->change.results.n;
}

bool deferred_add(struct writer *w, const struct item *item)
{
    if (w->deferred_count >= DEFERRED_MAX || w->deferred_bytes + bytes_of(item) > DEFERRED_MAX_BYTES)
        return false;
    if (w->deferred_count == 0)
        log_warn("findings find no room in the store: they are kept in memory until there is some");
    w->held = writer_grow(w->held, w->deferred_count, &w->deferred_room, sizeof(*w->held));
    w->held[w->deferred_count++] = *item;
    w->deferred_bytes += bytes_of(item);
    return true;
}

bool deferred_is_due(const struct writer *w)
{
    return w->deferred_count != 0 && clock_mono_ms() >= w->deferred_at_ms;
}

void deferred_retry(struct writer *w)
{
    if (!deferred_is_due(w))
        return;
    size_t count = w->deferred_slice < w->deferred_count ? w->deferred_slice : w->deferred_count;
    for (size_t i = 0; i < count; i++) {
        w->deferred_bytes -= bytes_of(&w->held[i]);
        *writer_batch_add(w, NULL, 0) = w->held[i];
    }
    w->deferred_count -= count;
    memmove(w->held, w->held + count, w->deferred_count * sizeof(*w->held));
}

void deferred_settle(struct writer *w, bool full)
{
    size_t more = w->deferred_slice * 2 < HELD_SLICE ? w->deferred_slice * 2 : HELD_SLICE;
    w->deferred_slice = full ? 1 : more;
    if (full)
        w->deferred_at_ms = clock_mono_ms() + HELD_EVERY_MS;
}

bool deferred_has(const struct writer *w, uint64_t report)
{
    for (size_t i = 0; i < w->deferred_count; i++)
        if (w->held[i].change.id == report)
            return true;
    return false;
}

void deferred_free(struct writer *w)
{
    for (size_t i = 0; i < w->deferred_count; i++)
        free(w->held[i].payload);
    free(w->held);
}
