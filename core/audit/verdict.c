/* What the functions of the table of checks write. */
#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

#include <stdarg.h>
#include <stdio.h>

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
    /* text_cut drops an incomplete code point at the end of a truncated text */
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
    /* attributes that identify an element; the first one that is present is shown */
    static const char *const telling[] = {"src",  "href",     "srcset", "data",  "action", "poster",
                                          "name", "property", "id",     "class", "style"};
    for (size_t i = 0; i < sizeof(telling) / sizeof(*telling); i++) {
        struct str value = page_value(e, telling[i]);
        if (value.n > 0) {
            verdict_detail(v, "<%s %s=\"%.*s\">", e->name, telling[i], STR_ARG(value));
            return;
        }
    }
    verdict_detail(v, "<%s>", e->name);
}
