#include "store/index/match_cache_internal.h"

#include "store/engine/environment.h"
#include "store/index/snapshot.h"

#include <stdlib.h>

#define KEPT_BYTES ((size_t)32 << 20)
#define KEPT_NEEDLES 512 /* which are gone through for each search */

static void found_free(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->segments[i].bits);
    free(f->segments);
    buf_free(&f->own.bits);
    buf_free(&f->names.bits);
    free(f->needle);
    free(f);
}

void found_forget(struct store *s)
{
    while (s->found != NULL) {
        struct found *f = s->found;
        s->found = f->next;
        found_free(f);
    }
    s->found_bytes = s->found_count = 0;
}

/* The list is in the order of use, so what goes is its end; never its first. */
static void make_room(struct store *s)
{
    while ((s->found_bytes > KEPT_BYTES || s->found_count > KEPT_NEEDLES) && s->found != NULL &&
           s->found->next != NULL) {
        struct found **at = &s->found;
        while ((*at)->next != NULL)
            at = &(*at)->next;
        s->found_bytes -= (*at)->bytes;
        s->found_count--;
        found_free(*at);
        *at = NULL;
    }
}

static void grown(struct store *s, struct found *f, size_t bytes)
{
    f->bytes += bytes;
    s->found_bytes += bytes;
    make_room(s);
}

static struct found *found_new(struct store *s, uint64_t workspace, struct str needle)
{
    struct found *f = calloc(1, sizeof(*f));
    char *copy = malloc(needle.n);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        return NULL;
    }
    memcpy(copy, needle.p, needle.n);
    f->workspace = workspace;
    f->needle = copy;
    f->needle_n = needle.n;
    f->bytes = sizeof(*f) + needle.n;
    f->next = s->found;
    s->found = f;
    s->found_bytes += f->bytes;
    s->found_count++;
    make_room(s);
    return f;
}

struct found *found_needle(struct store *s, uint64_t workspace, struct str needle)
{
    for (struct found **at = &s->found; *at != NULL; at = &(*at)->next) {
        struct found *f = *at;
        if (f->workspace != workspace || !str_eq((struct str){f->needle, f->needle_n}, needle))
            continue;
        *at = f->next;
        f->next = s->found;
        s->found = f;
        return f;
    }
    return found_new(s, workspace, needle);
}

const uint64_t *found_segment(const struct found *f, uint64_t number)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->segments[i].number == number)
            return f->segments[i].bits;
    return NULL;
}

static bool has_segment(const struct view *v, uint64_t number)
{
    for (size_t i = 0; i < v->segment_count; i++)
        if (v->segments[i].number == number)
            return true;
    return false;
}

void found_forget_merged(struct store *s, struct found *f, const struct view *v)
{
    size_t kept = 0, freed = 0;
    if (f->count <= 2 * v->segment_count)
        return;
    for (size_t i = 0; i < f->count; i++) {
        struct found_segment *g = &f->segments[i];
        if (has_segment(v, g->number)) {
            f->segments[kept++] = *g;
            continue;
        }
        freed += g->bytes;
        free(g->bits);
    }
    f->count = kept;
    f->bytes -= freed;
    s->found_bytes -= freed;
}

static bool segment_room(struct found *f)
{
    if (f->count < f->cap)
        return true;
    size_t cap = f->cap == 0 ? 32 : f->cap * 2;
    struct found_segment *more = realloc(f->segments, cap * sizeof(*more));
    if (more == NULL)
        return false;
    f->segments = more;
    f->cap = cap;
    return true;
}

bool found_add(struct store *s, struct found *f, uint64_t number, uint64_t *bits, uint32_t words)
{
    size_t bytes = words * sizeof(*bits);
    if (!segment_room(f)) {
        free(bits);
        return false;
    }
    f->segments[f->count++] = (struct found_segment){number, bits, bytes};
    grown(s, f, bytes);
    return true;
}

uint64_t *found_rows(struct store *s, struct found *f, struct found_rows *rows, uint64_t made,
                     uint32_t count)
{
    size_t bytes = ((size_t)count + 63) / 64 * sizeof(uint64_t), before = rows->bits.n;
    if (rows->made != made) {
        rows->made = made;
        rows->looked = 0;
        if (before != 0)
            memset(rows->bits.p, 0, before);
    }
    if (bytes <= before)
        return (uint64_t *)(void *)rows->bits.p;
    char *more = buf_reserve(&rows->bits, bytes - before);
    if (more == NULL) {
        buf_free(&rows->bits);
        rows->made = 0;
        return NULL;
    }
    memset(more, 0, bytes - before);
    rows->bits.n = bytes;
    grown(s, f, bytes - before);
    return (uint64_t *)(void *)rows->bits.p;
}
