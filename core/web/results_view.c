#include "core/web/results_view_internal.h"

#include "core/text/json_span.h"

#define ELEMENTS_SHOWN 5

static const char *const categories[] = {"seo", "performance", "security", "misc"};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

/* What is being read. */
struct results {
    enum language language;
    const struct view_memory *memory;
    struct finding_view *failed, *passed, *skipped;
    size_t failed_count, passed_count, skipped_count;
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

static void read_check(struct str id, struct str value, struct check_json *out)
{
    struct str rest = json_span_inside(value), name, member;
    *out = (struct check_json){.id = id};
    const struct {
        const char *name;
        struct str *to;
    } members[] = {{"category", &out->category}, {"importance", &out->importance},
                   {"passed", &out->passed},     {"value", &out->value},
                   {"message", &out->message},   {"details", &out->details}};
    while (json_span_member(&rest, &name, &member))
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            if (str_eq(name, str_of(members[i].name)))
                *members[i].to = member;
}

/* ---- a failed check ---- */

static size_t items_in(struct str rest)
{
    struct str item;
    size_t n = 0;
    while (json_span_item(&rest, &item))
        n++;
    return n;
}

static void fill_elements(struct finding_view *f, struct str details,
                          const struct view_memory *memory)
{
    struct str rest = json_span_inside(details), item;
    size_t count = items_in(rest), shown = count < ELEMENTS_SHOWN ? count : ELEMENTS_SHOWN;
    struct str *at = memory->alloc(memory->of, (count + 1) * sizeof(*at));
    for (size_t i = 0; i < count && json_span_item(&rest, &item); i++)
        at[i] = text_of(memory, item);
    f->elements = (struct text_list){at, shown};
    f->more = (struct text_list){at + shown, count - shown};
    f->more_count = (unsigned)(count - shown);
}

/* Sentences of results are English and have the numbers; other languages show the value. */
static void fill_texts(struct finding_view *f, const struct check_json *c, const struct results *to)
{
    enum language l = to->language;
    f->why = text_find(l, "check", c->id, "why");
    f->mend = text_find(l, "check", c->id, "mend");
    f->wrong = l == LANGUAGE_EN ? text_of(to->memory, c->message) : (struct str){0};
    if (f->wrong.n == 0)
        f->wrong = text_find(l, "check", c->id, "wrong");
    if (f->wrong.n == 0)
        f->wrong = text_of(to->memory, c->message);
    f->found = text_of(to->memory, c->value);
    if (l != LANGUAGE_EN && f->found.n == 0 && !str_eq(c->value, STR("null")))
        f->found = c->value;
}

static void fill_failed(struct results *to, const struct check_json *c)
{
    struct str importance = text_of(to->memory, c->importance),
               category = text_of(to->memory, c->category);
    struct finding_view *f = &to->failed[to->failed_count++];
    *f = (struct finding_view){
        .id = c->id,
        .name = results_check_name(to->language, c->id),
        .category = text_find(to->language, "category", category, NULL),
        .high = str_eq(importance, STR("high")),
        .medium = str_eq(importance, STR("medium")),
    };
    f->low = !f->high && !f->medium;
    fill_texts(f, c, to);
    fill_elements(f, c->details, to->memory);
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
    const struct finding_view named = {.id = c->id,
                                       .name = results_check_name(to->language, c->id)};
    if (str_eq(c->passed, STR("null"))) {
        to->skipped[to->skipped_count++] = named;
        return;
    }
    count_category(to, c, passed);
    if (passed)
        to->passed[to->passed_count++] = named;
    else
        fill_failed(to, c);
}

/* Stable: checks of one importance keep their order. */
static struct finding_list by_importance(const struct results *from)
{
    size_t n = 0;
    struct finding_view *sorted =
        from->memory->alloc(from->memory->of, (from->failed_count + 1) * sizeof(*sorted));
    for (int level = 0; level < 3; level++)
        for (size_t i = 0; i < from->failed_count; i++) {
            const struct finding_view *f = &from->failed[i];
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
    struct str rest = json_span_inside(results), name, value;
    size_t most = 0;
    for (struct str counted = rest; json_span_member(&counted, &name, &value);)
        most++;
    struct finding_view *at = memory->alloc(memory->of, 3 * (most + 1) * sizeof(*at));
    struct results to = {.language = l,
                         .memory = memory,
                         .failed = at,
                         .passed = at + most,
                         .skipped = at + 2 * most};
    while (json_span_member(&rest, &name, &value)) {
        struct check_json check;
        read_check(name, value, &check);
        add_check(&to, &check);
    }
    view->findings = by_importance(&to);
    view->passed = (struct finding_list){to.passed, to.passed_count};
    view->skipped = (struct finding_list){to.skipped, to.skipped_count};
    view->passed_count = (unsigned)to.passed_count;
    view->skipped_count = (unsigned)to.skipped_count;
    view->categories = fill_categories(&to);
}
