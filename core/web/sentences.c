#include "core/web/sentences.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACES 3

/* {{n1}}: a number. {{t1}}: any text. */
struct place {
    char kind;
    unsigned index;
};

/* What the places of a pattern match. */
struct matches {
    struct str at[PLACES];
};

/* Cut the text before the next place off ${pattern}, and the place; false: no place follows. */
static bool cut_place(struct str *pattern, struct str *before, struct place *place)
{
    const size_t size = sizeof("{{n1}}") - 1;
    const char *at = pattern->n < size ? NULL : memmem(pattern->p, pattern->n, "{{", 2);
    *before = *pattern;
    if (at == NULL)
        return false;
    before->n = (size_t)(at - pattern->p);
    *place = (struct place){at[2], (unsigned)(at[3] - '1') % PLACES};
    *pattern = (struct str){at + size, pattern->n - before->n - size};
    return true;
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < '0' || s.p[i] > '9') && s.p[i] != '.')
            return false;
    return s.n > 0;
}

/* Cut ${start} off ${text}. */
static bool cut_start(struct str *text, struct str start)
{
    if (!str_starts(*text, start))
        return false;
    *text = (struct str){text->p + start.n, text->n - start.n};
    return true;
}

/* Cut ${text} up to ${end}, and ${end}: its first place, or the end of ${text} if ${last}. */
static bool cut_to(struct str *text, struct str end, bool last, struct str *out)
{
    if (text->n < end.n)
        return false;
    const char *at = last ? text->p + text->n - end.n : memmem(text->p, text->n, end.p, end.n);
    if (at == NULL || memcmp(at, end.p, end.n) != 0)
        return false;
    *out = (struct str){text->p, (size_t)(at - text->p)};
    *text = (struct str){at + end.n, text->n - out->n - end.n};
    return true;
}

static bool match(struct str pattern, struct str text, struct matches *out)
{
    struct str literal;
    struct place place;
    bool more = cut_place(&pattern, &literal, &place);
    if (!cut_start(&text, literal))
        return false;
    while (more) {
        const struct place now = place;
        more = cut_place(&pattern, &literal, &place);
        struct str *at = &out->at[now.index];
        if (!cut_to(&text, literal, !more, at) || (now.kind == 'n' && !is_number(*at)))
            return false;
    }
    return text.n == 0;
}

/* With the decimal separator of the language. */
static void add_number(struct buf *out, enum language l, struct str number)
{
    const char *point = memchr(number.p, '.', number.n);
    size_t whole = point == NULL ? number.n : (size_t)(point - number.p);
    buf_add(out, number.p, whole);
    if (point == NULL)
        return;
    buf_str(out, text_find(l, "number", STR("decimal"), NULL));
    buf_add(out, point + 1, number.n - whole - 1);
}

static void fill(struct buf *out, enum language l, struct str pattern, const struct matches *with)
{
    struct str literal;
    struct place place;
    while (cut_place(&pattern, &literal, &place)) {
        buf_str(out, literal);
        if (place.kind == 'n')
            add_number(out, l, with->at[place.index]);
        else
            buf_str(out, with->at[place.index]);
    }
    buf_str(out, literal);
}

static struct str filled(enum language l, struct str pattern, const struct matches *with,
                         const struct view_memory *memory)
{
    struct buf made = {0};
    struct str text = {0};
    fill(&made, l, pattern, with);
    if (buf_ok(&made) && made.n > 0) {
        char *copy = memory->alloc(memory->of, made.n);
        text = (struct str){memcpy(copy, made.p, made.n), made.n};
    }
    buf_free(&made);
    return text;
}

/* ---- texts ---- */

static int compare_prefix(const void *prefix, const void *row)
{
    return strncmp(prefix, ((const struct text_row *)row)->key.p, strlen(prefix));
}

/* The first of the rows sentence.ID.NAME, which follow each other, and their number. */
static size_t sentences_of(struct str id, size_t *first)
{
    char prefix[64];
    const struct text_table *table = &text_tables[LANGUAGE_EN];
    int n = snprintf(prefix, sizeof(prefix), "sentence.%.*s.", (int)id.n, id.p);
    const struct text_row *any =
        n >= (int)sizeof(prefix)
            ? NULL
            : bsearch(prefix, table->rows, table->count, sizeof(*table->rows), compare_prefix);
    if (any == NULL)
        return 0;
    size_t from = (size_t)(any - table->rows), to = from + 1;
    while (from > 0 && compare_prefix(prefix, &table->rows[from - 1]) == 0)
        from--;
    while (to < table->count && compare_prefix(prefix, &table->rows[to]) == 0)
        to++;
    *first = from;
    return to - from;
}

struct str sentence_in(enum language l, struct str id, struct str english,
                       const struct view_memory *memory)
{
    size_t first = 0;
    if (l == LANGUAGE_EN || english.n == 0)
        return english;
    size_t end = sentences_of(id, &first) + first;
    for (size_t i = first; i < end; i++) {
        struct matches with = {0};
        /* the build sees that languages have the same keys */
        if (match(text_tables[LANGUAGE_EN].rows[i].text, english, &with))
            return filled(l, text_tables[l].rows[i].text, &with, memory);
    }
    return (struct str){0};
}
