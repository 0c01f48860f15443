/* What a step of the follower came to: its note in the store, or the sentence of its failure. */
#include "store/answers/follower_internal.h"

#include <stdio.h>

const char *follower_why(const struct follower *f)
{
    return f->why;
}

enum store_status follower_fail(struct follower *f, enum store_status status, const char *path,
                                const char *why)
{
    snprintf(f->why, sizeof(f->why), "%.600s: %.400s", path, why);
    return status;
}

enum store_status follower_fail_store(struct follower *f, enum store_status status)
{
    snprintf(f->why, sizeof(f->why), "%s", store_why(f->s));
    return status;
}

enum store_status follower_note(struct step *p, uint32_t what, uint64_t number)
{
    const struct store_change change = {.kind = CHANGE_ANSWERS,
                                        .fields = what,
                                        .agent = p->name.agent,
                                        .attempt = p->name.generation,
                                        .code = ANSWERS_FORMAT,
                                        .id = number};
    enum store_status status = p->f->note(p->f->arg, &change);
    if (status == STORE_STALE) /* deleted or lost meanwhile: the next step handles it */
        status = STORE_OK;
    return status == STORE_OK
               ? status
               : follower_fail(p->f, status, "Cannot record the state of an answer file",
                               store_status_text(status));
}
