#include "core/writer.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* Beyond either, results are dropped. A sweep of the jobs grades their pages again (upkeep.c). */
#define HELD_MAX 1024
#define HELD_MAX_BYTES ((size_t)32 << 20)
#define HELD_SLICE 16
#define HELD_EVERY_MS 1000 /* one is tried, to see whether there is room again */

static size_t bytes_of(const struct item *item)
{
    return sizeof(*item) + item->change.results.n;
}

bool held_add(struct writer *w, const struct item *item)
{
    if (w->held_count >= HELD_MAX || w->held_bytes + bytes_of(item) > HELD_MAX_BYTES)
        return false;
    if (w->held_count == 0)
        log_warn("findings find no room in the store: they are kept in memory until there is some");
    w->held = writer_grow(w->held, w->held_count, &w->held_room, sizeof(*w->held));
    w->held[w->held_count++] = *item;
    w->held_bytes += bytes_of(item);
    return true;
}

bool held_is_due(const struct writer *w)
{
    return w->held_count != 0 && clock_mono_ms() >= w->held_at_ms;
}

void held_retry(struct writer *w)
{
    if (!held_is_due(w))
        return;
    size_t count = w->held_slice < w->held_count ? w->held_slice : w->held_count;
    for (size_t i = 0; i < count; i++) {
        w->held_bytes -= bytes_of(&w->held[i]);
        *writer_batch_add(w, NULL, 0) = w->held[i];
    }
    w->held_count -= count;
    memmove(w->held, w->held + count, w->held_count * sizeof(*w->held));
}

void held_settle(struct writer *w, bool full)
{
    size_t more = w->held_slice * 2 < HELD_SLICE ? w->held_slice * 2 : HELD_SLICE;
    w->held_slice = full ? 1 : more;
    if (full)
        w->held_at_ms = clock_mono_ms() + HELD_EVERY_MS;
}

bool held_has(const struct writer *w, uint64_t report)
{
    for (size_t i = 0; i < w->held_count; i++)
        if (w->held[i].change.id == report)
            return true;
    return false;
}

void held_free(struct writer *w)
{
    for (size_t i = 0; i < w->held_count; i++)
        free(w->held[i].payload);
    free(w->held);
}
