#include "core/web/results_view_internal.h"

#include "core/text/json_span.h"
#include "core/web/sentences.h"

#define ELEMENTS_SHOWN 5

static const char *const categories[] = {"seo", "performance", "security", "misc"};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

/* Checks that are being collected. */
struct collection {
    struct finding_view *at;
    size_t n, cap;
};

/* What is being read. */
struct results {
    enum language language;
    const struct view_memory *memory;
    struct collection failed, passed, skipped;
    unsigned category_passed[CATEGORIES], category_applied[CATEGORIES];
};

/* The members of a check, still as JSON. */
struct check_json {
    struct str id, category, importance, passed, value, message, details;
};

struct str results_check_name(enum language l, struct str id)
{
    struct str name = text_find(l, "check", id, "name");
    return name.n > 0 ? name : id;
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
    char *out = memory->alloc(memory->of, s.n);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n)
            i++;
        out[n++] = s.p[i];
    }
    return (struct str){out, n};
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

static void read_member(struct check_json *check, struct str name, struct str member)
{
    const struct {
        struct str name, *to;
    } members[] = {
        {STR("category"), &check->category}, {STR("importance"), &check->importance},
        {STR("passed"), &check->passed},     {STR("value"), &check->value},
        {STR("message"), &check->message},   {STR("details"), &check->details},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (str_eq(name, members[i].name)) {
            *members[i].to = member;
            return;
        }
}

/* ${c} is the next character of ${rest}; then it is taken. */
static bool take(struct str *rest, char c)
{
    if (rest->n == 0 || *rest->p != c)
        return false;
    *rest = (struct str){rest->p + 1, rest->n - 1};
    return true;
}

/* The next check of the results, as core/audit/results.c writes them; false: the end. */
static bool next_check(struct str *rest, struct check_json *out)
{
    struct str name, member;
    take(rest, ',');
    if (!json_span_item(rest, &name) || name.n < 2 || !take(rest, ':') || !take(rest, '{'))
        return false;
    *out = (struct check_json){.id = {name.p + 1, name.n - 2}};
    while (!take(rest, '}') && json_span_member(rest, &name, &member))
        read_member(out, name, member);
    return true;
}

/* ---- a failed check ---- */

/* A value or an element: in the language of the page, or as it stands. */
static struct str words_of(const struct results *to, const struct sentences *of, struct str value)
{
    struct str text = text_of(to->memory, value), own = sentence_in(of, text, to->memory);
    return own.n > 0 ? own : text;
}

static void fill_elements(struct finding_view *f, const struct check_json *c,
                          const struct sentences *of, const struct results *to)
{
    struct str rest = json_span_inside(c->details), item;
    struct str *at = to->memory->alloc(to->memory->of, (rest.n / 2 + 1) * sizeof(*at)); /* 1,2,3 */
    size_t count = 0;
    while (json_span_item(&rest, &item))
        at[count++] = words_of(to, of, item);
    size_t shown = count < ELEMENTS_SHOWN ? count : ELEMENTS_SHOWN;
    f->elements = (struct text_list){at, shown};
    f->more = (struct text_list){at + shown, count - shown};
    f->more_count = (unsigned)(count - shown);
}

static void fill_texts(struct finding_view *f, const struct check_json *c,
                       const struct sentences *of, const struct results *to)
{
    const struct text_row *rows = NULL;
    size_t count = texts_of(to->language, "check", c->id, &rows);
    f->why = texts_field(rows, count, STR("why"))->html;
    f->mend = texts_field(rows, count, STR("mend"))->html;
    struct str message = text_of(to->memory, c->message),
               own = sentence_in(of, message, to->memory);
    f->wrong = own;
    if (f->wrong.n == 0)
        f->wrong = texts_field(rows, count, STR("wrong"))->text;
    if (f->wrong.n == 0)
        f->wrong = message;
    f->found = words_of(to, of, c->value);
    if (own.n == 0 && f->found.n == 0 && !str_eq(c->value, STR("null")))
        f->found = c->value; /* the number that the sentence would have */
}

static void fill_failed(struct results *to, const struct check_json *c)
{
    struct str importance = text_of(to->memory, c->importance),
               category = text_of(to->memory, c->category);
    struct finding_view *f = collect(&to->failed, to->memory);
    *f = (struct finding_view){
        .name = results_check_name(to->language, c->id),
        .category = text_find(to->language, "category", category, NULL),
        .high = str_eq(importance, STR("high")),
        .medium = str_eq(importance, STR("medium")),
    };
    f->low = !f->high && !f->medium;
    const struct sentences sentences = sentences_of(to->language, c->id);
    fill_texts(f, c, &sentences, to);
    fill_elements(f, c, &sentences, to);
}

/* ---- all checks ---- */

static void count_category(struct results *to, const struct check_json *c, bool passed)
{
    struct str category = text_of(to->memory, c->category);
    for (size_t i = 0; i < CATEGORIES; i++)
        if (str_eq(category, str_of(categories[i]))) {
            to->category_applied[i]++;
            to->category_passed[i] += passed;
        }
}

static void add_check(struct results *to, const struct check_json *c)
{
    bool passed = str_eq(c->passed, STR("true"));
    const struct finding_view named = {.name = results_check_name(to->language, c->id)};
    if (str_eq(c->passed, STR("null"))) {
        *collect(&to->skipped, to->memory) = named;
        return;
    }
    count_category(to, c, passed);
    if (passed)
        *collect(&to->passed, to->memory) = named;
    else
        fill_failed(to, c);
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

static struct category_list fill_categories(const struct results *from)
{
    struct category_view *at = from->memory->alloc(from->memory->of, CATEGORIES * sizeof(*at));
    size_t n = 0;
    for (size_t i = 0; i < CATEGORIES; i++) {
        unsigned applied = from->category_applied[i], passed = from->category_passed[i];
        if (applied > 0)
            at[n++] = (struct category_view){
                .name = text_find(from->language, "category", str_of(categories[i]), NULL),
                .passed = passed,
                .applied = applied,
                .percent = passed * 100 / applied,
            };
    }
    return (struct category_list){at, n};
}

void results_view_fill(struct report_view *view, struct str results, enum language l,
                       const struct view_memory *memory)
{
    struct str rest = json_span_inside(results);
    struct results to = {.language = l, .memory = memory};
    struct check_json check;
    while (next_check(&rest, &check))
        add_check(&to, &check);
    view->findings = by_importance(&to);
    view->passed = list_of(&to.passed);
    view->skipped = list_of(&to.skipped);
    view->passed_count = (unsigned)to.passed.n;
    view->skipped_count = (unsigned)to.skipped.n;
    view->categories = fill_categories(&to);
}
