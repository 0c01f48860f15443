#include "found.h"

#include <stdlib.h>

#define KEPT_BYTES ((size_t)32 << 20)

struct found {
    struct found *next;
    uint64_t workspace;
    char *needle;
    size_t needle_n;
    struct found_segment *segments;
    size_t count, cap, bytes;
};

static void found_free(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->segments[i].bits);
    free(f->segments);
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
    s->found_bytes = 0;
}

/* The list is in the order of use, so what goes is its end; never its first. */
static void make_room(struct store *s)
{
    while (s->found_bytes > KEPT_BYTES && s->found != NULL && s->found->next != NULL) {
        struct found **at = &s->found;
        while ((*at)->next != NULL)
            at = &(*at)->next;
        s->found_bytes -= (*at)->bytes;
        found_free(*at);
        *at = NULL;
    }
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
    make_room(s);
    return found_new(s, workspace, needle);
}

struct found_segment *found_segment(const struct found *f, uint64_t part)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->segments[i].part == part)
            return &f->segments[i];
    return NULL;
}

struct found_segment *found_add(struct store *s, struct found *f, uint64_t part, uint32_t words)
{
    if (f->count == f->cap) {
        size_t cap = f->cap == 0 ? 32 : f->cap * 2;
        struct found_segment *more = realloc(f->segments, cap * sizeof(*more));
        if (more == NULL)
            return NULL;
        f->segments = more;
        f->cap = cap;
    }
    uint64_t *bits = calloc(words, sizeof(*bits));
    if (bits == NULL)
        return NULL;
    f->segments[f->count++] = (struct found_segment){.part = part, .bits = bits};
    f->bytes += words * sizeof(*bits);
    s->found_bytes += words * sizeof(*bits);
    make_room(s);
    return &f->segments[f->count - 1];
}
