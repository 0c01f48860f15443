#include "store/answers/answers.h"
#include "store/answers/follower.h"
#include "store/answers/follower_internal.h"
#include "store/answers/path.h"
#include "store/engine/environment.h"

#include <string.h>

/* The answer files that the follower has open. */

#define CACHE_BYTES ((size_t)4 << 20)

void follower_close_writer(struct open_writer *o)
{
    answers_close(o->writer);
    *o = (struct open_writer){.writer = NULL};
}

static struct open_writer *place_for(struct follower *f, const struct ulid *agent)
{
    struct open_writer *oldest = &f->files[0];
    for (size_t i = 0; i < FOLLOWER_FILES; i++) {
        struct open_writer *o = &f->files[i];
        if (o->writer != NULL && ulid_eq(&o->name.agent, agent))
            return o;
        if (o->used < oldest->used)
            oldest = o;
    }
    return oldest;
}

void follower_close(struct follower *f, const struct ulid *agent)
{
    struct open_writer *o = place_for(f, agent);
    if (o->writer != NULL && ulid_eq(&o->name.agent, agent))
        follower_close_writer(o);
}

bool answers_is_lost(enum store_status status)
{
    return status == STORE_NOT_FOUND || status == STORE_CORRUPT || status == STORE_OTHER_FORMAT ||
           status == STORE_STALE;
}

/* Delete the agent's files but the one of generation ${kept}. */
static void unlink_all(struct step *p, uint32_t kept)
{
    struct answers_name name = p->name;
    for (name.generation = p->state.oldest; name.generation <= p->name.generation;
         name.generation++)
        if (name.generation != kept)
            answers_unlink(p->f->s->dir, &name);
}

/* What is left when the process ends before, the next start deletes. */
void follower_unlink_serving(struct step *p)
{
    struct answers_name name = p->name;
    name.generation = p->state.serving;
    if (name.generation != 0)
        answers_unlink(p->f->s->dir, &name);
}

/* Create a new file and delete the agent's old ones, but not the one that answers. */
static enum store_status create(struct step *p, const char *path, struct answers_writer **out,
                                char *why, size_t why_size)
{
    static const struct answers_options options = {.cache_bytes = CACHE_BYTES};
    unlink_all(p, p->state.serving);
    return answers_create(path, p->name.store_id, &options, out, why, why_size);
}

static enum store_status open_writer(struct step *p, const char *path, struct answers_writer **out,
                                     char *why, size_t why_size)
{
    static const struct answers_options options = {.cache_bytes = CACHE_BYTES};
    enum store_status status = answers_open(path, p->name.store_id, &options, out, why, why_size);
    if (answers_is_lost(status) && p->state.state == ANSWERS_TO_BUILD)
        status = create(p, path, out, why, why_size);
    return status;
}

enum store_status follower_open(struct step *p)
{
    struct open_writer *o = place_for(p->f, &p->name.agent);
    char path[ANSWERS_PATH_BYTES], why[400] = "";
    if (o->writer == NULL || memcmp(&o->name, &p->name, sizeof(p->name)) != 0) {
        follower_close_writer(o);
        answers_path(path, p->f->s->dir, &p->name);
        enum store_status status = open_writer(p, path, &o->writer, why, sizeof(why));
        p->lost = answers_is_lost(status);
        if (status != STORE_OK)
            return follower_fail(p->f, status, path, why);
    }
    o->name = p->name;
    o->used = ++p->f->clock;
    p->writer = o->writer;
    return STORE_OK;
}

enum store_status follower_fail_file(struct step *p, enum store_status status)
{
    char path[ANSWERS_PATH_BYTES];
    p->lost = answers_is_lost(status);
    answers_path(path, p->f->s->dir, &p->name);
    return follower_fail(p->f, status, path, answers_why(p->writer));
}

enum store_status follower_delete_file(struct step *p)
{
    follower_close(p->f, &p->name.agent);
    unlink_all(p, 0);
    return follower_note(p, ANSWERS_NOTE_DELETED, 0);
}
