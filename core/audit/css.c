#include "core/audit/css_internal.h"
#include "core/audit/text.h"

/* The current at-rule: it decides what strings and URLs mean. */
enum rule { RULE_ANY, RULE_IMPORT, RULE_NAMESPACE };

static bool is_name(char c)
{
    return text_is_letter(c) || text_is_digit(c) || c == '-' || c == '_' || c == '\\' ||
           ((unsigned char)c & 0x80) != 0;
}

static struct str take_name(struct str *rest)
{
    size_t n = 0;
    while (n < rest->n && is_name(rest->p[n]))
        n++;
    struct str name = {rest->p, n};
    *rest = text_from(*rest, n);
    return name;
}

/*
 * The string at ${rest} without its quotes. If the closing quote is missing, it ends with the line.
 */
static struct str take_string(struct str *rest)
{
    char quote = rest->p[0];
    size_t n = 1;
    while (n < rest->n && rest->p[n] != quote && rest->p[n] != '\n')
        n += rest->p[n] == '\\' && n + 1 < rest->n ? 2 : 1;
    struct str text = {rest->p + 1, n - 1};
    *rest = text_from(*rest, n + 1);
    return text;
}

/* What follows "url(", up to the closing parenthesis. */
static struct str take_url(struct str *rest)
{
    struct str url;
    while (rest->n > 0 && text_is_space(rest->p[0]))
        *rest = text_from(*rest, 1);
    if (rest->n > 0 && (rest->p[0] == '"' || rest->p[0] == '\''))
        return take_string(rest);
    text_split(*rest, ')', &url, rest);
    return url;
}

static void skip_comment(struct str *rest)
{
    const char *end = memmem(rest->p + 2, rest->n - 2, "*/", 2);
    *rest = text_from(*rest, end == NULL ? rest->n : (size_t)(end - rest->p) + 2);
}

static enum rule take_at_rule(struct str *rest)
{
    *rest = text_from(*rest, 1);
    struct str name = take_name(rest);
    return text_eq(name, "import")      ? RULE_IMPORT
           : text_eq(name, "namespace") ? RULE_NAMESPACE
                                        : RULE_ANY;
}

bool css_url(struct str *rest, struct css_url *out)
{
    enum rule rule = RULE_ANY;
    while (rest->n > 0) {
        char c = rest->p[0];
        bool found = false;
        if (c == '/' && rest->n > 1 && rest->p[1] == '*') {
            skip_comment(rest);
        } else if (c == '"' || c == '\'') {
            out->url = take_string(rest);
            found = rule == RULE_IMPORT;
        } else if (c == '@') {
            rule = take_at_rule(rest);
        } else if (is_name(c)) {
            struct str name = take_name(rest);
            bool is_url = text_eq(name, "url") && rest->n > 0 && rest->p[0] == '(';
            if (is_url) {
                *rest = text_from(*rest, 1);
                out->url = take_url(rest);
            }
            found = is_url && rule != RULE_NAMESPACE;
        } else {
            rule = c == ';' || c == '{' || c == '}' ? RULE_ANY : rule;
            *rest = text_from(*rest, 1);
        }
        if (found) {
            out->url = text_trim(out->url);
            out->is_import = rule == RULE_IMPORT;
            return true;
        }
    }
    return false;
}
