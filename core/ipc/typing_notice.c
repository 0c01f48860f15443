#include "core/ipc/typing_notice.h"

void typing_notice_put(struct channel *c, const struct typing_notice *notice)
{
    if (channel_pending(c) < TYPING_NOTICE_PENDING)
        channel_put(c, FRAME_TYPING, notice->left_ms, notice->who,
                    (struct str){(const char *)notice->conversation.b, ULID_BYTES});
}

bool typing_notice_get(const struct frame *frame, struct typing_notice *out)
{
    if (frame->payload.n != ULID_BYTES || frame->head.a > TYPING_MS || frame->head.b >= TYPISTS)
        return false;
    *out = (struct typing_notice){.who = (enum typist)frame->head.b,
                                  .left_ms = (unsigned)frame->head.a};
    memcpy(out->conversation.b, frame->payload.p, ULID_BYTES);
    return true;
}
