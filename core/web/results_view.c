#include "core/web/results_view_internal.h"

#include "core/text/json_span.h"
#include "core/text/word.h"

#define ELEMENTS_SHOWN 5

static const struct str categories[] = {STR("seo"), STR("performance"), STR("security"),
                                        STR("misc")};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

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
    struct collection failed, passed, skipped;
    struct category_view categories[CATEGORIES];
    size_t next_texts;    /* of texts_of_check */
    struct items details; /* of the last check; its memory is used again */
};

/* The members of a check, still as JSON. */
struct check_json {
    struct str id, category, importance, passed, value, message;
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

/* The characters between the quotes of a string that has no escapes. */
static struct str inside_quotes(struct str value)
{
    return value.n < 2 ? (struct str){0} : (struct str){value.p + 1, value.n - 2};
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
    if (take(rest, STR("\"details\":[")))
        while (!take(rest, STR("]")) && json_span_item(rest, &item))
            add_item(&to->details, item, to->memory);
}

/* If the next member is ${start}, a name and a colon, then its value is taken. */
static inline void take_member(struct str *rest, struct str start, struct str *value)
{
    if (take(rest, start) && json_span_item(rest, value))
        take(rest, STR(","));
}

/* In the order of core/audit/results.c. */
static void take_members(struct str *rest, struct results *to, struct check_json *c)
{
    take_member(rest, STR("\"category\":"), &c->category);
    take_member(rest, STR("\"importance\":"), &c->importance);
    take_member(rest, STR("\"passed\":"), &c->passed);
    take_member(rest, STR("\"value\":"), &c->value);
    take_member(rest, STR("\"message\":"), &c->message);
    take_details(rest, to);
}

/* The next check of the results; false: the end. */
static bool next_check(struct str *rest, struct results *to, struct check_json *out)
{
    struct str id, name, value;
    if (!json_span_item(rest, &id) || id.n < 2 || !take(rest, STR(":{")))
        return false;
    *out = (struct check_json){.id = inside_quotes(id)};
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
    if (!english && f->found.n == 0 && !str_eq(c->value, STR("null")))
        f->found = c->value;
}

static void fill_failed(struct results *to, const struct check_json *c, struct str name,
                        struct str category, const struct check_texts *texts)
{
    struct str importance = inside_quotes(c->importance);
    struct finding_view *f = collect(&to->failed, to->memory);
    *f = (struct finding_view){
        .name = name,
        .category = category,
        .high = str_eq(importance, STR("high")),
        .medium = str_eq(importance, STR("medium")),
    };
    f->low = !f->high && !f->medium;
    fill_texts(f, c, texts, to);
    fill_elements(f, to);
}

/* ---- all checks ---- */

/* Counts the check in its category and returns the name of that; empty: the category is unknown. */
static struct str count_category(struct results *to, const struct check_json *c, bool passed)
{
    struct str category = inside_quotes(c->category);
    for (size_t i = 0; i < CATEGORIES; i++)
        if (str_eq(category, categories[i])) {
            to->categories[i].applied++;
            to->categories[i].passed += passed;
            return to->categories[i].name;
        }
    return (struct str){0};
}

static void add_check(struct results *to, const struct check_json *c)
{
    const struct check_texts *texts = texts_of_check(to->language, c->id, &to->next_texts);
    struct str name = texts == NULL ? c->id : texts->name->text;
    bool passed = str_eq(c->passed, STR("true")), applies = !str_eq(c->passed, STR("null"));
    struct str category = applies ? count_category(to, c, passed) : (struct str){0};
    if (applies && !passed)
        fill_failed(to, c, name, category, texts);
    else
        *collect(passed ? &to->passed : &to->skipped, to->memory) =
            (struct finding_view){.name = name};
}

/* Stable: checks of one importance keep their order. */
static struct finding_list by_importance(const struct results *from)
{
    size_t n = 0;
    struct finding_view *sorted =
        from->memory->alloc(from->memory->of, (from->failed.n + 1) * sizeof(*sorted));
    for (int level = 0; level < 3; level++)
        for (size_t i = 0; i < from->failed.n; i++) {
            const struct finding_view *f = &from->failed.at[i];
            if (level == (f->high ? 0 : f->medium ? 1 : 2))
                sorted[n++] = *f;
        }
    return (struct finding_list){sorted, n};
}

static void name_categories(struct results *to)
{
    for (size_t i = 0; i < CATEGORIES; i++)
        to->categories[i].name = text_find(to->language, "category", categories[i], NULL);
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
    view->findings = by_importance(&to);
    view->passed = list_of(&to.passed);
    view->skipped = list_of(&to.skipped);
    view->passed_count = (unsigned)to.passed.n;
    view->skipped_count = (unsigned)to.skipped.n;
    view->categories = list_categories(&to);
}
