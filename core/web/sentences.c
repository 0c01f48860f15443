#include "core/web/sentences.h"

#include <stdlib.h>

#define PLACES 3

/* {{n1}}: a number. {{t1}}: any text. Sentences have no other braces (t/unit/sentences.c). */
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
    const char *at = pattern->n < size ? NULL : memchr(pattern->p, '{', pattern->n);
    *before = *pattern;
    if (at == NULL)
        return false;
    before->n = (size_t)(at - pattern->p);
    *place = (struct place){at[2], (unsigned)(at[3] - '1') % PLACES};
    *pattern = (struct str){at + size, pattern->n - before->n - size};
    return true;
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

static size_t digits(struct str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

/* "12" or "2.5" */
static bool cut_number(struct str *text, struct str *out)
{
    size_t n = digits(*text);
    if (n > 0 && n + 1 < text->n && text->p[n] == '.') {
        size_t fraction = digits((struct str){text->p + n + 1, text->n - n - 1});
        n += fraction > 0 ? fraction + 1 : 0;
    }
    *out = (struct str){text->p, n};
    *text = (struct str){text->p + n, text->n - n};
    return n > 0;
}

/* By their first characters, ${text} may match ${pattern}. Most elements of a page do not. */
static bool begins_so(struct str pattern, struct str text)
{
    if (pattern.p[0] != '{')
        return pattern.p[0] == text.p[0];
    return pattern.p[2] == 't' || digits((struct str){text.p, 1}) == 1;
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
        struct str *at = &out->at[now.index];
        if (now.kind == 'n' && !cut_number(&text, at)) /* before the pattern is searched */
            return false;
        more = cut_place(&pattern, &literal, &place);
        if (now.kind == 'n' ? !cut_start(&text, literal) : !cut_to(&text, literal, !more, at))
            return false;
    }
    return text.n == 0;
}

static char *put(char *to, struct str s)
{
    return s.n == 0 ? to : mempcpy(to, s.p, s.n);
}

/* With the decimal separator of the language. */
static char *put_number(char *to, struct str number, struct str decimal)
{
    const char *point = memchr(number.p, '.', number.n);
    if (point == NULL)
        return put(to, number);
    size_t whole = (size_t)(point - number.p);
    to = put(put(to, (struct str){number.p, whole}), decimal);
    return put(to, (struct str){point + 1, number.n - whole - 1});
}

/* At least the size of ${pattern} with the matches. */
static size_t size_of(struct str pattern, const struct matches *with, struct str decimal)
{
    struct str literal;
    struct place place;
    size_t size = pattern.n;
    while (cut_place(&pattern, &literal, &place))
        size += with->at[place.index].n + decimal.n;
    return size;
}

static struct str filled(enum language l, struct str pattern, const struct matches *with,
                         const struct view_memory *memory)
{
    struct str literal, decimal = text_find(l, "number", STR("decimal"), NULL);
    struct place place;
    char *start = memory->alloc(memory->of, size_of(pattern, with, decimal)), *to = start;
    while (cut_place(&pattern, &literal, &place)) {
        to = put(to, literal);
        to = place.kind == 'n' ? put_number(to, with->at[place.index], decimal)
                               : put(to, with->at[place.index]);
    }
    to = put(to, literal);
    return (struct str){start, (size_t)(to - start)};
}

/* ---- texts ---- */

/* "sentence.ID." */
struct prefix {
    char p[64];
    size_t n;
};

static bool make_prefix(struct prefix *out, struct str id)
{
    static const struct str group = STR("sentence.");
    if (group.n + id.n + 1 > sizeof(out->p))
        return false;
    char *to = put(put(out->p, group), id);
    *to++ = '.';
    out->n = (size_t)(to - out->p);
    return true;
}

static int compare_prefix(const void *prefix, const void *row)
{
    const struct prefix *wanted = prefix;
    return strncmp(wanted->p, ((const struct text_row *)row)->key.p, wanted->n);
}

/* The rows sentence.ID.NAME follow each other, and are in the same order in all languages. */
struct sentences sentences_of(enum language l, struct str id)
{
    struct prefix prefix;
    const struct text_table *table = &text_tables[LANGUAGE_EN];
    struct sentences of = {.language = l};
    if (l == LANGUAGE_EN || !make_prefix(&prefix, id))
        return of;
    const struct text_row *end = table->rows + table->count,
                          *first = bsearch(&prefix, table->rows, table->count, sizeof(*table->rows),
                                           compare_prefix);
    while (first != NULL && first > table->rows && compare_prefix(&prefix, first - 1) == 0)
        first--;
    of.patterns = first;
    while (first != NULL && first + of.count < end &&
           compare_prefix(&prefix, first + of.count) == 0)
        of.count++;
    of.own = first == NULL ? NULL : text_tables[l].rows + (first - table->rows);
    return of;
}

static struct str bytes_of(const struct text_row *row, bool html)
{
    return html ? (struct str){row->html.p, row->html.n} : row->text;
}

/* HTML of a text is that of its parts, one after another, so a pattern fits it as well. */
static struct str find(const struct sentences *of, bool html, struct str english,
                       const struct view_memory *memory)
{
    for (size_t i = 0; i < of->count && english.n > 0; i++) {
        struct str pattern = bytes_of(&of->patterns[i], html);
        if (!begins_so(pattern, english))
            continue;
        struct matches with = {0};
        if (match(pattern, english, &with))
            return filled(of->language, bytes_of(&of->own[i], html), &with, memory);
    }
    return (struct str){0};
}

struct str sentence_in(const struct sentences *of, struct str english,
                       const struct view_memory *memory)
{
    return of->language == LANGUAGE_EN ? english : find(of, false, english, memory);
}

struct html sentence_in_html(const struct sentences *of, struct html english,
                             const struct view_memory *memory)
{
    if (of->language == LANGUAGE_EN)
        return english;
    struct str own = find(of, true, (struct str){english.p, english.n}, memory);
    return (struct html){own.p, own.n};
}
