#include "core/web/reference_html.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void html_put_char(char c)
{
    const char *entity = c == '&'   ? "&amp;"
                         : c == '<' ? "&lt;"
                         : c == '>' ? "&gt;"
                         : c == '"' ? "&quot;"
                                    : NULL;
    if (entity == NULL)
        putchar(c);
    else
        fputs(entity, stdout);
}

void html_put(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        html_put_char(*text);
}

void html_code(const char *text)
{
    fputs("<code>", stdout);
    html_put(text);
    fputs("</code>", stdout);
}

/* Returns the start of the next paragraph. */
static const char *paragraph(const char *text)
{
    bool in_code = false;
    for (; *text != '\0' && strncmp(text, "\n\n", 2) != 0; text++)
        if (*text == '`')
            fputs((in_code = !in_code) ? "<code>" : "</code>", stdout);
        else
            html_put_char(*text);
    return *text == '\0' ? text : text + 2;
}

void html_inline(const char *text)
{
    if (text != NULL)
        paragraph(text);
}

void html_prose(const char *text)
{
    while (text != NULL && *text != '\0') {
        fputs("<p>", stdout);
        text = paragraph(text);
        puts("</p>");
    }
}

void html_method(const char *method)
{
    printf("<span class=\"method %s\">", method);
    for (; *method != '\0'; method++)
        putchar(toupper((unsigned char)*method));
    fputs("</span>", stdout);
}

/* ---- examples ---- */

static const char *token_class(const char *at, size_t n)
{
    if (*at != '"')
        return strchr("tfn", *at) != NULL ? "literal" : "number";
    return at[n] == ':' ? "key" : "string";
}

static size_t token_length(const char *at)
{
    const char *p = at + 1;
    if (*at != '"')
        return strcspn(at, ",\n ]}");
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    return (size_t)(p + 1 - at);
}

static void put_json(json *value)
{
    const char *p = json_object_to_json_string_ext(
        value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
    while (*p != '\0') {
        if (strchr("{}[],: \n", *p) != NULL) {
            html_put_char(*p++);
            continue;
        }
        size_t n = token_length(p);
        printf("<span class=\"%s\">", token_class(p, n));
        for (const char *end = p + n; p < end; p++)
            html_put_char(*p);
        fputs("</span>", stdout);
    }
}

void html_example(json *value)
{
    if (json_object_is_type(value, json_type_string))
        html_put(json_object_get_string(value));
    else
        put_json(value);
}

void html_sample_begin(const char *title, const char *detail)
{
    printf("<figure class=\"sample\">\n<figcaption>%s", title);
    if (detail != NULL) {
        fputs(" <span>", stdout);
        html_put(detail);
        fputs("</span>", stdout);
    }
    printf("</figcaption>\n<pre tabindex=\"0\" role=\"group\" aria-label=\"%s\"><code>", title);
}

void html_sample_end(void)
{
    puts("</code></pre>\n</figure>");
}

void html_table_begin(const char *caption)
{
    printf("<table>\n<caption>%s</caption>\n<tbody>\n", caption);
}

void html_table_end(void)
{
    puts("</tbody>\n</table>");
}
