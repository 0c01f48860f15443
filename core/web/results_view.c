#include "core/web/results_view_internal.h"

#include "core/text/json_span.h"
#include "core/text/word.h"

#define ELEMENTS_SHOWN 5

/* Values in JSON of members that have one of a few values. */
static const struct str categories[] = {STR("\"seo\""), STR("\"performance\""), STR("\"security\""),
                                        STR("\"misc\"")};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

enum { HIGH, MEDIUM, LOW };
static const struct str importances[] = {[HIGH] = STR("\"high\""), [MEDIUM] = STR("\"medium\"")};

enum { PASSED, SKIPPED, FAILED, OUTCOMES };
static const struct str outcomes[] = {[PASSED] = STR("true"), [SKIPPED] = STR("null")};

/* Checks that are being collected. */
struct collection {
    struct finding_view *at;
    size_t n, cap;
};

/* The items of an array, still as JSON. */
struct items {
    struct str *at;
    size_t n, cap;
};

/* What is being read. */
struct results {
    enum language language;
    const struct view_memory *memory;
    struct collection checks[OUTCOMES];
    struct category_view categories[CATEGORIES + 1]; /* the last one: of unknown categories */
    size_t next_texts;                               /* of texts_of_check */
    struct items details; /* of the last check; its memory is used again */
};

/* The members of a check. */
struct check_json {
    struct str id, value, message; /* as JSON; empty: null */
    size_t category, importance, outcome;
};

struct str results_check_name(enum language l, struct str id)
{
    size_t next = 0;
    const struct check_texts *texts = texts_of_check(l, id, &next);
    return texts == NULL ? id : texts->name->text;
}

static struct finding_view *collect(struct collection *c, const struct view_memory *memory)
{
    enum { AT_FIRST = 32 };
    if (c->n == c->cap) {
        size_t cap = c->cap == 0 ? AT_FIRST : 2 * c->cap;
        struct finding_view *larger = memory->alloc(memory->of, cap * sizeof(*larger));
        if (c->n > 0)
            memcpy(larger, c->at, c->n * sizeof(*larger));
        c->at = larger;
        c->cap = cap;
    }
    return &c->at[c->n++];
}

static struct finding_list list_of(const struct collection *c)
{
    return (struct finding_list){c->at, c->n};
}

/* ---- JSON ---- */

/* Only the escapes that core/audit writes: \" and \\; of others the character stays. */
static struct str unescaped(const struct view_memory *memory, struct str s)
{
    char *out = memory->alloc(memory->of, s.n), *to = out;
    const char *at = s.p, *end = s.p + s.n;
    while (at < end) {
        size_t left = (size_t)(end - at), plain = 0;
        if (left >= WORD_BYTES) {
            plain = word_first(word_find(word_of(at), '\\'));
            memcpy(to, at, WORD_BYTES);
            to += plain;
            at += plain;
        }
        if (plain < WORD_BYTES) {
            at += *at == '\\' && at + 1 < end;
            *to++ = *at++;
        }
    }
    return (struct str){out, (size_t)(to - out)};
}

/* The characters of a string; empty for any other value. */
static struct str text_of(const struct view_memory *memory, struct str value)
{
    struct str text;
    if (json_span_text(value, &text))
        return text;
    if (value.n < 2 || value.p[0] != '"')
        return (struct str){0};
    return unescaped(memory, (struct str){value.p + 1, value.n - 2});
}

/* ${rest} begins with ${start}; then that is taken. */
static inline bool take(struct str *rest, struct str start)
{
    if (!str_starts(*rest, start))
        return false;
    *rest = (struct str){rest->p + start.n, rest->n - start.n};
    return true;
}

static void add_item(struct items *to, struct str item, const struct view_memory *memory)
{
    enum { AT_FIRST = 64 };
    if (to->n == to->cap) {
        size_t cap = to->cap == 0 ? AT_FIRST : 2 * to->cap;
        struct str *larger = memory->alloc(memory->of, cap * sizeof(*larger));
        if (to->n > 0)
            memcpy(larger, to->at, to->n * sizeof(*larger));
        to->at = larger;
        to->cap = cap;
    }
    to->at[to->n++] = item;
}

static void take_details(struct str *rest, struct results *to)
{
    struct str item;
    while (!take(rest, STR("]")) && json_span_item(rest, &item))
        add_item(&to->details, item, to->memory);
}

/* The next value: the index of one of ${words}, or ${count}. */
static inline size_t take_word(struct str *rest, const struct str *words, size_t count)
{
    struct str other;
    for (size_t i = 0; i < count; i++)
        if (take(rest, words[i]))
            return i;
    json_span_item(rest, &other);
    return count;
}

/* The next value, empty for null. */
static inline struct str take_value(struct str *rest)
{
    struct str value = {0};
    if (!take(rest, STR("null")))
        json_span_item(rest, &value);
    return value;
}

/* The next member is ${name}, with a colon; then that is taken. */
static inline bool take_name(struct str *rest, struct str name)
{
    take(rest, STR(","));
    return take(rest, name);
}

/* In the order of core/audit/results.c. */
static void take_members(struct str *rest, struct results *to, struct check_json *c)
{
    if (take_name(rest, STR("\"category\":")))
        c->category = take_word(rest, categories, CATEGORIES);
    if (take_name(rest, STR("\"importance\":")))
        c->importance = take_word(rest, importances, LOW);
    if (take_name(rest, STR("\"passed\":")))
        c->outcome = take_word(rest, outcomes, FAILED);
    if (take_name(rest, STR("\"value\":")))
        c->value = take_value(rest);
    if (take_name(rest, STR("\"message\":")))
        c->message = take_value(rest);
    if (take_name(rest, STR("\"details\":[")))
        take_details(rest, to);
}

/* The next check of the results; false: the end. */
static bool next_check(struct str *rest, struct results *to, struct check_json *out)
{
    struct str id, name, value;
    if (!json_span_item(rest, &id) || id.n < 2 || !take(rest, STR(":{")))
        return false;
    *out = (struct check_json){
        .id = {id.p + 1, id.n - 2}, .category = CATEGORIES, .importance = LOW, .outcome = FAILED};
    to->details.n = 0;
    while (!take(rest, STR("}"))) {
        const char *before = rest->p;
        take_members(rest, to, out);
        if (rest->p == before && !json_span_member(rest, &name, &value)) /* an unknown one */
            break;
    }
    return true;
}

/* ---- a failed check ---- */

static void fill_elements(struct finding_view *f, const struct results *from)
{
    const struct items *details = &from->details;
    struct str *at = from->memory->alloc(from->memory->of, (details->n + 1) * sizeof(*at));
    for (size_t i = 0; i < details->n; i++)
        at[i] = text_of(from->memory, details->at[i]);
    size_t shown = details->n < ELEMENTS_SHOWN ? details->n : ELEMENTS_SHOWN;
    f->elements = (struct text_list){at, shown};
    f->more = (struct text_list){at + shown, details->n - shown};
    f->more_count = (unsigned)f->more.n;
}

/* Sentences of results are English and have the numbers; other languages show the value. */
static void fill_texts(struct finding_view *f, const struct check_json *c,
                       const struct check_texts *texts, const struct results *to)
{
    bool english = to->language == LANGUAGE_EN;
    if (texts != NULL) {
        f->why = texts->why->html;
        f->mend = texts->mend->html;
        f->wrong = texts->wrong->text;
    }
    if (english || texts == NULL) {
        struct str message = text_of(to->memory, c->message);
        if (message.n > 0)
            f->wrong = message;
    }
    f->found = text_of(to->memory, c->value);
    if (!english && f->found.n == 0)
        f->found = c->value;
}

/* ---- all checks ---- */

static void add_check(struct results *to, const struct check_json *c)
{
    const struct check_texts *texts = texts_of_check(to->language, c->id, &to->next_texts);
    struct finding_view *f = collect(&to->checks[c->outcome], to->memory);
    *f = (struct finding_view){.name = texts == NULL ? c->id : texts->name->text};
    if (c->outcome == SKIPPED)
        return;
    struct category_view *category = &to->categories[c->category];
    category->applied++;
    category->passed += c->outcome == PASSED;
    if (c->outcome == PASSED)
        return;
    f->category = category->name;
    f->high = c->importance == HIGH;
    f->medium = c->importance == MEDIUM;
    f->low = c->importance == LOW;
    fill_texts(f, c, texts, to);
    fill_elements(f, to);
}

/* Stable: checks of one importance keep their order. */
static struct finding_list by_importance(const struct collection *failed,
                                         const struct view_memory *memory)
{
    size_t n = 0;
    struct finding_view *sorted = memory->alloc(memory->of, (failed->n + 1) * sizeof(*sorted));
    for (int level = HIGH; level <= LOW; level++)
        for (size_t i = 0; i < failed->n; i++) {
            const struct finding_view *f = &failed->at[i];
            if (level == (f->high ? HIGH : f->medium ? MEDIUM : LOW))
                sorted[n++] = *f;
        }
    return (struct finding_list){sorted, n};
}

static void name_categories(struct results *to)
{
    for (size_t i = 0; i < CATEGORIES; i++) {
        struct str id = {categories[i].p + 1, categories[i].n - 2};
        to->categories[i].name = text_find(to->language, "category", id, NULL);
    }
}

/* Those with checks that apply. */
static struct category_list list_categories(const struct results *from)
{
    struct category_view *at = from->memory->alloc(from->memory->of, CATEGORIES * sizeof(*at));
    size_t n = 0;
    for (size_t i = 0; i < CATEGORIES; i++) {
        const struct category_view *c = &from->categories[i];
        if (c->applied == 0)
            continue;
        at[n] = *c;
        at[n++].percent = c->passed * 100 / c->applied;
    }
    return (struct category_list){at, n};
}

void results_view_fill(struct report_view *view, struct str results, enum language l,
                       const struct view_memory *memory)
{
    struct str rest = json_span_inside(results);
    struct results to = {.language = l, .memory = memory};
    struct check_json check;
    name_categories(&to);
    while (next_check(&rest, &to, &check))
        add_check(&to, &check);
    view->findings = by_importance(&to.checks[FAILED], memory);
    view->passed = list_of(&to.checks[PASSED]);
    view->skipped = list_of(&to.checks[SKIPPED]);
    view->passed_count = (unsigned)view->passed.n;
    view->skipped_count = (unsigned)view->skipped.n;
    view->categories = list_categories(&to);
}
