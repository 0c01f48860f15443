#include "core/writer/typing_notices.h"

bool typing_notices_get(const struct client *client, const struct frame *frame,
                        struct typing_notice *out)
{
    return (client->role == ROLE_WORKER || client->wants_notices) && typing_notice_get(frame, out);
}

bool typing_notices_count(struct client *client, uint64_t now_ms)
{
    if (now_ms - client->notices_since_ms >= 1000) {
        client->notices_since_ms = now_ms;
        client->notices = 0;
    }
    return client->notices++ < NOTICES_A_SECOND;
}

void typing_notices_show(const struct process *p, const struct typing_notice *notice,
                         uint64_t now_ms)
{
    const uint64_t until_ms = notice->left_ms == 0 ? 0 : now_ms + notice->left_ms;
    typing_table_set(p->typing, &notice->conversation, notice->who, until_ms, now_ms);
}

void typing_notices_tell(struct clients *c, const struct client *from,
                         const struct typing_notice *notice)
{
    for (size_t i = 0; i < c->count; i++) {
        struct client *client = c->list[i];
        if (client->wants_notices && client != from && !client->gone)
            typing_notice_put(&client->channel, notice);
    }
}
