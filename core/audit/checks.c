#include "checks.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

/* id (the member of results), category, importance (its weight), function. The order is that of audits.md and of the results. */
const struct check checks[] = {
    {"title", CATEGORY_SEO, IMPORTANCE_HIGH, check_title},
    {"meta_description", CATEGORY_SEO, IMPORTANCE_HIGH, check_meta_description},
    {"headings", CATEGORY_SEO, IMPORTANCE_HIGH, check_headings},
    {"image_alt", CATEGORY_SEO, IMPORTANCE_HIGH, check_image_alt},
    {"robots", CATEGORY_SEO, IMPORTANCE_HIGH, check_robots},
    {"noindex", CATEGORY_SEO, IMPORTANCE_HIGH, check_noindex},
    {"language", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_language},
    {"text_compression", CATEGORY_PERFORMANCE, IMPORTANCE_HIGH, check_text_compression},
    {"load_time", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_load_time},
    {"page_size", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_page_size},
    {"doctype", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_doctype},
    {"dom_size", CATEGORY_PERFORMANCE, IMPORTANCE_LOW, check_dom_size},
    {"https_encryption", CATEGORY_SECURITY, IMPORTANCE_HIGH, check_https_encryption},
    {"mixed_content", CATEGORY_SECURITY, IMPORTANCE_MEDIUM, check_mixed_content},
    {"hsts", CATEGORY_SECURITY, IMPORTANCE_LOW, check_hsts},
    {"structured_data", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_structured_data},
    {"meta_viewport", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_meta_viewport},
    {"charset", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_charset},
    {"deprecated_html_tags", CATEGORY_MISC, IMPORTANCE_LOW, check_deprecated_html_tags},
};
const size_t checks_count = sizeof(checks) / sizeof(*checks);

const char *check_category_name(enum check_category category)
{
    static const char *const names[] = {"seo", "performance", "security", "misc"};
    return names[category];
}

const char *check_importance_name(enum check_importance importance)
{
    static const char *const names[] = {"high", "medium", "low"};
    return names[importance];
}

void verdict_pass(struct verdict *v)
{
    v->outcome = OUTCOME_PASS;
}

static struct str format_text(struct arena *arena, const char *format, va_list args)
{
    char text[1024];
    int n = vsnprintf(text, sizeof(text), format, args);
    if (n < 0)
        return STR("");
    /* a cut of a long one may leave half a code point; the bytes after the last whole one go */
    struct str s = {text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1};
    return arena_copy(arena, text_cut(s, VERDICT_TEXT_POINTS));
}

void verdict_fail(struct verdict *v, const char *message, ...)
{
    va_list args;
    va_start(args, message);
    v->message = format_text(v->arena, message, args);
    va_end(args);
    v->outcome = OUTCOME_FAIL;
}

void verdict_advise(struct verdict *v, const char *message, ...)
{
    va_list args;
    va_start(args, message);
    v->message = format_text(v->arena, message, args);
    va_end(args);
}

void verdict_text(struct verdict *v, struct str value)
{
    v->value_kind = VALUE_TEXT;
    v->text = text_cut(value, VERDICT_TEXT_POINTS);
}

void verdict_number(struct verdict *v, double value)
{
    v->value_kind = VALUE_NUMBER;
    v->number = value;
}

void verdict_detail(struct verdict *v, const char *format, ...)
{
    if (v->detail_count == VERDICT_DETAILS_MAX)
        return;
    va_list args;
    va_start(args, format);
    v->details[v->detail_count++] = format_text(v->arena, format, args);
    va_end(args);
}

void verdict_element(struct verdict *v, const struct page_element *e)
{
    /* one of these tells which element it is; the first that stands is shown */
    static const char *const telling[] = {"src", "href", "srcset", "data", "action", "poster", "name", "property", "id", "class"};
    for (size_t i = 0; i < sizeof(telling) / sizeof(*telling); i++) {
        struct str value = page_value(e, telling[i]);
        if (value.n > 0) {
            verdict_detail(v, "<%s %s=\"%.*s\">", page_tag_name(e->tag), telling[i], STR_ARG(value));
            return;
        }
    }
    verdict_detail(v, "<%s>", page_tag_name(e->tag));
}
