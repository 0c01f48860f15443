#include "core/web/compile.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool in(const char *name, const char *const *names)
{
    while (*names != NULL && strcasecmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool is_raw(const char *element)
{
    static const char *const raw[] = {"script", "style", "iframe", "noscript", "xmp", NULL};
    return in(element, raw);
}

static void name_add(char *name, const struct source *s, char c)
{
    size_t n = strlen(name);
    if (n + 1 >= HTML_NAME_MAX)
        compile_fail(s, "the name %s… is too long", name);
    name[n] = (char)tolower((unsigned char)c);
    name[n + 1] = '\0';
}

static void end_tag(struct html_state *h)
{
    h->place = is_raw(h->element) && !h->closing ? HTML_RAW : HTML_TEXT;
    h->closing = false;
    h->attribute[0] = '\0';
    if (h->place == HTML_TEXT)
        h->element[0] = '\0';
}

static void read_text(struct html_state *h, const struct source *s, const char *p, const char *end)
{
    (void)s;
    if (*p != '<')
        return;
    const char *next = p + 1;
    if (next < end && (*next == '!' || *next == '?')) {
        h->place = HTML_COMMENT;
        return;
    }
    h->closing = next < end && *next == '/';
    h->place = HTML_TAG_NAME;
    h->element[0] = '\0';
}

static void read_tag_name(struct html_state *h, const struct source *s, char c)
{
    if (c == '/' && h->element[0] == '\0')
        return;
    if (c == '>')
        end_tag(h);
    else if (isspace((unsigned char)c) || c == '/')
        h->place = HTML_TAG;
    else if (isalnum((unsigned char)c))
        name_add(h->element, s, c);
    else
        compile_fail(s, "'%c' follows '<'; write &lt; for a sign", c);
}

static void read_tag(struct html_state *h, const struct source *s, char c)
{
    if (c == '>') {
        end_tag(h);
    } else if (!isspace((unsigned char)c) && c != '/') {
        h->place = HTML_ATTRIBUTE;
        h->attribute[0] = '\0';
        name_add(h->attribute, s, c);
    }
}

static void read_attribute(struct html_state *h, const struct source *s, char c)
{
    if (c == '=')
        h->place = HTML_EQUALS;
    else if (c == '>')
        end_tag(h);
    else if (isspace((unsigned char)c))
        h->place = HTML_TAG;
    else
        name_add(h->attribute, s, c);
}

static void read_equals(struct html_state *h, const struct source *s, char c)
{
    if (c != '"')
        compile_fail(s, "the value of %s needs double quotes", h->attribute);
    h->place = HTML_VALUE;
    h->value_read = false;
}

static void read_value(struct html_state *h, char c)
{
    if (c == '"')
        h->place = HTML_TAG;
    else
        h->value_read = true;
}

static void read_raw(struct html_state *h, const char *p, const char *end)
{
    size_t n = strlen(h->element);
    if ((size_t)(end - p) < n + 2 || p[0] != '<' || p[1] != '/' ||
        strncasecmp(p + 2, h->element, n) != 0)
        return;
    h->place = HTML_TAG_NAME;
    h->closing = true;
    h->element[0] = '\0';
}

static void read_one(struct html_state *h, const struct source *s, const char *p, const char *end)
{
    switch (h->place) {
    case HTML_TEXT:
        read_text(h, s, p, end);
        break;
    case HTML_TAG_NAME:
        read_tag_name(h, s, *p);
        break;
    case HTML_TAG:
        read_tag(h, s, *p);
        break;
    case HTML_ATTRIBUTE:
        read_attribute(h, s, *p);
        break;
    case HTML_EQUALS:
        read_equals(h, s, *p);
        break;
    case HTML_VALUE:
        read_value(h, *p);
        break;
    case HTML_RAW:
        read_raw(h, p, end);
        break;
    case HTML_COMMENT:
        if (*p == '>')
            h->place = HTML_TEXT;
        break;
    }
}

void html_read(struct html_state *h, const struct source *s, const char *p, size_t n)
{
    for (const char *end = p + n; p < end; p++)
        read_one(h, s, p, end);
}

static bool is_url(const char *attribute)
{
    static const char *const urls[] = {"href",   "src",        "action", "formaction", "cite",
                                       "poster", "background", "data",   NULL};
    return in(attribute, urls);
}

bool html_same(const struct html_state *a, const struct html_state *b)
{
    return a->place == b->place && a->closing == b->closing &&
           strcmp(a->element, b->element) == 0 &&
           (a->place != HTML_VALUE || strcmp(a->attribute, b->attribute) == 0) &&
           (a->place != HTML_VALUE || a->value_read == b->value_read || !is_url(a->attribute));
}

enum html_escape html_escape_of(struct html_state *h, const struct source *s)
{
    static const char *const refused[] = {"style", "srcset", "srcdoc", "http-equiv", "id", NULL};
    if (h->place == HTML_TEXT)
        return ESCAPE_TEXT;
    if (h->place != HTML_VALUE)
        compile_fail(s, "no value is safe here: only in text and in attributes in double quotes");
    if (strncmp(h->attribute, "on", 2) == 0 || in(h->attribute, refused))
        compile_fail(s, "no value is safe in the attribute %s", h->attribute);
    bool first = !h->value_read;
    h->value_read = true;
    if (!is_url(h->attribute))
        return ESCAPE_TEXT;
    return first ? ESCAPE_URL : ESCAPE_URL_PART;
}
