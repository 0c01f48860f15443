#include "core/writer/deferred_changes.h"

#include "core/writer/grow.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const struct deferred_change *c)
{
    return deferred_change_is_refused(c) ? 0 : c->head.payload;
}

void deferred_changes_add(struct deferred_changes *d, struct client *client,
                          const struct frame *frame)
{
    const size_t n = frame->payload.n;
    char *payload = n > DEFERRED_BYTES - d->bytes ? NULL : malloc(n + 1);
    if (payload != NULL)
        memcpy(payload, frame->payload.p, n);
    d->list = array_grow(d->list, d->count, &d->capacity, sizeof(*d->list));
    d->list[d->count++] = (struct deferred_change){.client = client,
                                                   .head = frame->head,
                                                   .payload = payload,
                                                   .until_ms = clock_mono_ms() + DEFERRED_MS};
    d->bytes += bytes_of(&d->list[d->count - 1]);
}

bool deferred_change_is_refused(const struct deferred_change *c)
{
    return c->payload == NULL;
}

struct frame deferred_change_frame(const struct deferred_change *c)
{
    return (struct frame){.head = c->head, .payload = {c->payload, c->head.payload}};
}

static void end_one(struct deferred_changes *d, struct deferred_change *c)
{
    d->bytes -= bytes_of(c);
    free(c->payload);
}

void deferred_changes_drop(struct deferred_changes *d, size_t count)
{
    for (size_t i = 0; i < count; i++)
        end_one(d, &d->list[i]);
    d->count -= count;
    if (count > 0)
        memmove(d->list, d->list + count, d->count * sizeof(*d->list));
}

void deferred_changes_forget(struct deferred_changes *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++)
        if (d->list[i].client->gone)
            end_one(d, &d->list[i]);
        else
            d->list[kept++] = d->list[i];
    d->count = kept;
}

void deferred_changes_free(struct deferred_changes *d)
{
    deferred_changes_drop(d, d->count);
    free(d->list);
}
