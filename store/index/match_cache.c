#include "store/index/match_cache_internal.h"

#include "store/index/context_internal.h"
#include "store/index/snapshot.h"

#include <stdlib.h>

#define KEPT_BYTES ((size_t)32 << 20)
#define KEPT_PATTERNS 512 /* every search goes through them */

static void entry_free(struct match_cache_entry *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->segments[i].bits);
    free(f->segments);
    buf_free(&f->tail.bits);
    buf_free(&f->names.bits);
    free(f->pattern);
    free(f);
}

void match_cache_free(struct store *s)
{
    while (s->index->match_cache != NULL) {
        struct match_cache_entry *f = s->index->match_cache;
        s->index->match_cache = f->next;
        entry_free(f);
    }
    s->index->match_cache_bytes = s->index->match_cache_count = 0;
}

/* The list is in the order of use: drop its end, but never its first entry. */
static void make_room(struct store *s)
{
    while (
        (s->index->match_cache_bytes > KEPT_BYTES || s->index->match_cache_count > KEPT_PATTERNS) &&
        s->index->match_cache != NULL && s->index->match_cache->next != NULL) {
        struct match_cache_entry **at = &s->index->match_cache;
        while ((*at)->next != NULL)
            at = &(*at)->next;
        s->index->match_cache_bytes -= (*at)->bytes;
        s->index->match_cache_count--;
        entry_free(*at);
        *at = NULL;
    }
}

static void grown(struct store *s, struct match_cache_entry *f, size_t bytes)
{
    f->bytes += bytes;
    s->index->match_cache_bytes += bytes;
    make_room(s);
}

static struct match_cache_entry *entry_new(struct store *s, uint64_t workspace, struct str pattern)
{
    struct match_cache_entry *f = calloc(1, sizeof(*f));
    char *copy = malloc(pattern.n);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        return NULL;
    }
    memcpy(copy, pattern.p, pattern.n);
    f->workspace = workspace;
    f->pattern = copy;
    f->pattern_n = pattern.n;
    f->bytes = sizeof(*f) + pattern.n;
    f->next = s->index->match_cache;
    s->index->match_cache = f;
    s->index->match_cache_bytes += f->bytes;
    s->index->match_cache_count++;
    make_room(s);
    return f;
}

struct match_cache_entry *match_cache_get(struct store *s, uint64_t workspace, struct str pattern)
{
    for (struct match_cache_entry **at = &s->index->match_cache; *at != NULL; at = &(*at)->next) {
        struct match_cache_entry *f = *at;
        if (f->workspace != workspace || !str_eq((struct str){f->pattern, f->pattern_n}, pattern))
            continue;
        *at = f->next;
        f->next = s->index->match_cache;
        s->index->match_cache = f;
        return f;
    }
    return entry_new(s, workspace, pattern);
}

const uint64_t *match_cache_segment(const struct match_cache_entry *f, uint64_t number)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->segments[i].number == number)
            return f->segments[i].bits;
    return NULL;
}

static bool has_segment(const struct index_snapshot *v, uint64_t number)
{
    for (size_t i = 0; i < v->segment_count; i++)
        if (v->segments[i].number == number)
            return true;
    return false;
}

void match_cache_drop_merged(struct store *s, struct match_cache_entry *f,
                             const struct index_snapshot *v)
{
    size_t kept = 0, freed = 0;
    if (f->count <= 2 * v->segment_count)
        return;
    for (size_t i = 0; i < f->count; i++) {
        struct match_cache_segment *g = &f->segments[i];
        if (has_segment(v, g->number)) {
            f->segments[kept++] = *g;
            continue;
        }
        freed += g->bytes;
        free(g->bits);
    }
    f->count = kept;
    f->bytes -= freed;
    s->index->match_cache_bytes -= freed;
}

static bool reserve_segment(struct match_cache_entry *f)
{
    if (f->count < f->cap)
        return true;
    size_t cap = f->cap == 0 ? 32 : f->cap * 2;
    struct match_cache_segment *more = realloc(f->segments, cap * sizeof(*more));
    if (more == NULL)
        return false;
    f->segments = more;
    f->cap = cap;
    return true;
}

bool match_cache_add(struct store *s, struct match_cache_entry *f, uint64_t number, uint64_t *bits,
                     uint32_t words)
{
    size_t bytes = words * sizeof(*bits);
    if (!reserve_segment(f)) {
        free(bits);
        return false;
    }
    f->segments[f->count++] = (struct match_cache_segment){number, bits, bytes};
    grown(s, f, bytes);
    return true;
}

uint64_t *match_cache_rows(struct store *s, struct match_cache_entry *f,
                           struct match_cache_rows *rows, uint64_t made, uint32_t count)
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
