#include "core/writer/held_changes.h"

#include "core/writer/grow.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const struct held_change *c)
{
    return held_is_refused(c) ? 0 : c->head.payload;
}

void held_add(struct held_changes *h, struct client *client, const struct frame *frame)
{
    const size_t n = frame->payload.n;
    char *payload = n > HELD_BYTES - h->bytes ? NULL : malloc(n + 1);
    if (payload != NULL)
        memcpy(payload, frame->payload.p, n);
    h->list = array_grow(h->list, h->count, &h->room, sizeof(*h->list));
    h->list[h->count++] = (struct held_change){.client = client,
                                               .head = frame->head,
                                               .payload = payload,
                                               .until_ms = clock_mono_ms() + HELD_MS};
    h->bytes += bytes_of(&h->list[h->count - 1]);
}

bool held_is_refused(const struct held_change *c)
{
    return c->payload == NULL;
}

struct frame held_frame(const struct held_change *c)
{
    return (struct frame){.head = c->head, .payload = {c->payload, c->head.payload}};
}

static void end_one(struct held_changes *h, struct held_change *c)
{
    h->bytes -= bytes_of(c);
    free(c->payload);
}

void held_drop(struct held_changes *h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        end_one(h, &h->list[i]);
    h->count -= count;
    if (count > 0)
        memmove(h->list, h->list + count, h->count * sizeof(*h->list));
}

void held_forget(struct held_changes *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++)
        if (h->list[i].client->gone)
            end_one(h, &h->list[i]);
        else
            h->list[kept++] = h->list[i];
    h->count = kept;
}

void held_free(struct held_changes *h)
{
    held_drop(h, h->count);
    free(h->list);
}
