#include "core/web/results_view_internal.h"

#include "core/text/json_span.h"

#define ELEMENTS_SHOWN 5

/* Values in JSON of members that have one of a few values. */
static const struct str categories[] = {STR("\"seo\""), STR("\"performance\""), STR("\"security\""),
                                        STR("\"misc\"")};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

enum { HIGH, MEDIUM, LOW, IMPORTANCES };
static const struct str importances[] = {
    [HIGH] = STR("\"high\""), [MEDIUM] = STR("\"medium\""), [LOW] = STR("\"low\"")};

enum { PASSED, SKIPPED, FAILED, OUTCOMES };
static const struct str outcomes[] = {
    [PASSED] = STR("true"), [SKIPPED] = STR("null"), [FAILED] = STR("false")};

/* Checks that are being collected. */
struct collection {
    struct finding_view *at;
    size_t n, cap;
};

struct texts {
    struct html *at;
    size_t n, cap;
};

/* What is being read. */
struct results {
    struct str rest; /* JSON that is not read yet */
    char *html;      /* memory for its strings as HTML */
    enum language language;
    const struct view_memory *memory;
    struct collection checks[OUTCOMES];
    struct category_view categories[CATEGORIES + 1]; /* the last one: of unknown categories */
    size_t next_texts;                               /* of texts_of_check */
};

/* A check of the results. */
struct check {
    struct html id, message;
    struct html value;     /* if it is a string */
    struct str value_json; /* empty for null */
    size_t category, importance, outcome;
    struct texts details;
};

static struct html html_of(struct str text, const struct view_memory *memory)
{
    if (text.n == 0)
        return (struct html){0};
    char *p = memory->alloc(memory->of, HTML_MAX(text.n));
    return (struct html){p, (size_t)(html_write(p, text) - p)};
}

struct html results_check_name(enum language l, struct str id, const struct view_memory *memory)
{
    size_t next = 0;
    const struct check_texts *texts = texts_of_check(l, id, &next);
    return texts == NULL ? html_of(id, memory) : texts->name->html;
}

/* Memory for one more item than ${n}, with the items ${at} of ${size} bytes. */
static void *grow(const struct view_memory *memory, void *at, size_t n, size_t *cap, size_t size)
{
    enum { AT_FIRST = 32 };
    if (n < *cap)
        return at;
    *cap = n == 0 ? AT_FIRST : 2 * n;
    void *larger = memory->alloc(memory->of, *cap * size);
    if (n > 0)
        memcpy(larger, at, n * size);
    return larger;
}

static struct finding_view *collect(struct collection *c, const struct view_memory *memory)
{
    c->at = grow(memory, c->at, c->n, &c->cap, sizeof(*c->at));
    return &c->at[c->n++];
}

static struct finding_list list_of(const struct collection *c)
{
    return (struct finding_list){c->at, c->n};
}

/* ---- JSON, as core/audit/results.c writes it: without white space ---- */

/* ${rest} begins with ${start}; then that is taken. */
static inline bool take(struct str *rest, struct str start)
{
    if (!str_starts(*rest, start))
        return false;
    *rest = (struct str){rest->p + start.n, rest->n - start.n};
    return true;
}

/* The next value: the index of one of ${words}, or ${other}. Unrolled, no word needs a call. */
static inline size_t take_word(struct str *rest, const struct str *words, size_t count,
                               size_t other)
{
    struct str value;
#pragma GCC unroll 4
    for (size_t i = 0; i < count; i++)
        if (take(rest, words[i]))
            return i;
    json_span_item(rest, &value);
    return other;
}

/* The rest of a string behind its first quote. */
static inline struct html take_characters(struct results *from)
{
    const char *p = from->html;
    from->html = html_write_json(from->html, &from->rest);
    return (struct html){p, (size_t)(from->html - p)};
}

/* The next value: its text, empty if it is no string; false: the end. */
static inline bool take_text(struct results *from, struct html *text)
{
    if (take(&from->rest, STR("\""))) {
        *text = take_characters(from);
        return true;
    }
    *text = (struct html){0};
    struct str other;
    return take(&from->rest, STR("null")) || json_span_item(&from->rest, &other);
}

static void add_text(struct texts *to, struct html text, const struct view_memory *memory)
{
    to->at = grow(memory, to->at, to->n, &to->cap, sizeof(*to->at));
    to->at[to->n++] = text;
}

/* The rest of an array behind its bracket. */
static void take_texts(struct results *from, struct texts *to)
{
    struct html text;
    to->n = 0;
    while (!take(&from->rest, STR("]")) && take_text(from, &text)) {
        add_text(to, text, from->memory);
        take(&from->rest, STR(","));
    }
}

static void take_value(struct results *from, struct check *to)
{
    const char *start = from->rest.p;
    if (take(&from->rest, STR("null")))
        return;
    take_text(from, &to->value);
    to->value_json = (struct str){start, (size_t)(from->rest.p - start)};
}

/* The next member is ${name}, with a colon; then that is taken. */
static inline bool take_name(struct str *rest, struct str name)
{
    take(rest, STR(","));
    return take(rest, name);
}

/* In the order of core/audit/results.c. */
static void take_members(struct results *from, struct check *to)
{
    struct str *rest = &from->rest;
    if (take_name(rest, STR("\"category\":")))
        to->category = take_word(rest, categories, CATEGORIES, CATEGORIES);
    if (take_name(rest, STR("\"importance\":")))
        to->importance = take_word(rest, importances, IMPORTANCES, LOW);
    if (take_name(rest, STR("\"passed\":")))
        to->outcome = take_word(rest, outcomes, OUTCOMES, FAILED);
    if (take_name(rest, STR("\"value\":")))
        take_value(from, to);
    if (take_name(rest, STR("\"message\":")))
        take_text(from, &to->message);
    if (take_name(rest, STR("\"details\":[")))
        take_texts(from, &to->details);
}

/* The next check; false: the end. */
static bool next_check(struct results *from, struct check *to)
{
    struct str name, value;
    if (!take_name(&from->rest, STR("\"")))
        return false;
    *to = (struct check){.id = take_characters(from),
                         .category = CATEGORIES,
                         .importance = LOW,
                         .outcome = FAILED,
                         .details = {to->details.at, 0, to->details.cap}};
    if (!take(&from->rest, STR(":{")))
        return false;
    while (!take(&from->rest, STR("}"))) {
        const char *before = from->rest.p;
        take_members(from, to);
        if (from->rest.p == before && !json_span_member(&from->rest, &name, &value))
            break; /* the end; other members are not shown */
    }
    return true;
}

/* ---- a failed check ---- */

static void fill_elements(struct finding_view *f, const struct texts *details,
                          const struct view_memory *memory)
{
    if (details->n == 0)
        return;
    size_t shown = details->n < ELEMENTS_SHOWN ? details->n : ELEMENTS_SHOWN;
    struct html *at = memory->alloc(memory->of, details->n * sizeof(*at));
    memcpy(at, details->at, details->n * sizeof(*at));
    f->elements = (struct html_list){at, shown};
    f->more = (struct html_list){at + shown, details->n - shown};
    f->more_count = (unsigned)f->more.n;
}

/* Sentences of results are English and have the numbers; other languages show the value. */
static void fill_texts(struct finding_view *f, const struct check *c,
                       const struct check_texts *texts, const struct results *to)
{
    bool english = to->language == LANGUAGE_EN;
    if (texts != NULL) {
        f->why = texts->why->html;
        f->mend = texts->mend->html;
        f->wrong = texts->wrong->html;
    }
    if ((english || texts == NULL) && c->message.n > 0)
        f->wrong = c->message;
    f->found = english || c->value.n > 0 ? c->value : html_of(c->value_json, to->memory);
}

/* ---- all checks ---- */

static void add_check(struct results *to, const struct check *c)
{
    const struct str id = {c->id.p, c->id.n}; /* those of checks are the same as HTML */
    const struct check_texts *texts = texts_of_check(to->language, id, &to->next_texts);
    struct finding_view *f = collect(&to->checks[c->outcome], to->memory);
    *f = (struct finding_view){.name = texts == NULL ? c->id : texts->name->html};
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
    fill_elements(f, &c->details, to->memory);
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
    struct results to = {.rest = json_span_inside(results),
                         .html = memory->alloc(memory->of, HTML_MAX(results.n)),
                         .language = l,
                         .memory = memory};
    struct check check = {0};
    name_categories(&to);
    while (next_check(&to, &check))
        add_check(&to, &check);
    view->findings = by_importance(&to.checks[FAILED], memory);
    view->passed = list_of(&to.checks[PASSED]);
    view->skipped = list_of(&to.checks[SKIPPED]);
    view->passed_count = (unsigned)view->passed.n;
    view->skipped_count = (unsigned)view->skipped.n;
    view->categories = list_categories(&to);
}
