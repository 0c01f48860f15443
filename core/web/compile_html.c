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
    static const char *const raw[] = {"script", "style", NULL};
    return in(element, raw);
}

static bool is_plain(const char *element)
{
    static const char *const plain[] = {"title", "textarea", NULL};
    return in(element, plain);
}

static bool is_noscript(const char *element)
{
    return strcasecmp(element, "noscript") == 0;
}

static bool is_url(const char *attribute)
{
    static const char *const urls[] = {"href",       "xlink:href", "src",    "action",
                                       "formaction", "cite",       "poster", "background",
                                       "data",       "longdesc",   NULL};
    return in(attribute, urls);
}

static void name_add(char *name, const struct source *s, char c)
{
    size_t n = strlen(name);
    if (n + 1 >= HTML_NAME_MAX)
        compile_fail(s, "the name %s… is too long", name);
    name[n] = (char)tolower((unsigned char)c);
    name[n + 1] = '\0';
}

/* ---- tags ---- */

static void end_tag(struct html_state *h)
{
    bool opens = !h->closing;
    h->place = opens && is_raw(h->element)     ? HTML_RAW
               : opens && is_plain(h->element) ? HTML_PLAIN
                                               : HTML_TEXT;
    h->noscript = is_noscript(h->element) ? opens : h->noscript;
    h->matched = 0;
    h->closing = false;
}

static void begin_tag(struct html_state *h)
{
    h->place = HTML_TAG_NAME;
    h->element[0] = '\0';
    h->attribute[0] = '\0';
    h->has_value = h->has_equiv = false;
    h->tags++;
}

static void read_text(struct html_state *h, char c)
{
    if (c == '<')
        h->place = HTML_LESS;
}

static void read_less(struct html_state *h, const struct source *s, char c)
{
    if (c == '!' && !h->closing) {
        h->place = HTML_DECLARATION;
        h->element[0] = '\0';
    } else if (c == '/' && !h->closing) {
        h->closing = true;
    } else if (isalpha((unsigned char)c)) {
        begin_tag(h);
        name_add(h->element, s, c);
    } else {
        compile_fail(s, "'%c' follows '<'; write &lt; for a sign", c);
    }
}

static void read_declaration(struct html_state *h, const struct source *s, char c)
{
    if (c == '>' && strncmp(h->element, "doctype", 7) == 0)
        h->place = HTML_TEXT;
    else if (strlen(h->element) < 7 && tolower((unsigned char)c) != "doctype"[strlen(h->element)])
        compile_fail(s, "only DOCTYPE may follow <!; write a comment as {{! … }}");
    else if (c == '<' || c == '>')
        compile_fail(s, "'%c' stands in <!DOCTYPE>", c);
    else if (strlen(h->element) < 7)
        name_add(h->element, s, c);
}

/* Elements that load, or that browsers read in ways of their own. */
static void element_named(const struct html_state *h, const struct source *s)
{
    static const char *const refused[] = {
        "animate", "animatemotion", "animatetransform", "applet",   "base",
        "embed",   "frame",         "foreignobject",    "frameset", "iframe",
        "math",    "noembed",       "object",           "noframes", "param",
        "set",     "plaintext",     "template",         "xmp",      NULL};
    if (in(h->element, refused))
        compile_fail(s, "the element %s is not safe; write the page without it", h->element);
}

static void slash(struct html_state *h, const struct source *s)
{
    if (!h->closing && (is_raw(h->element) || is_plain(h->element) || is_noscript(h->element)))
        compile_fail(s, "'/' does not end %s; write </%s>", h->element, h->element);
    h->place = HTML_TAG;
}

static void read_tag_name(struct html_state *h, const struct source *s, char c)
{
    if (isalnum((unsigned char)c)) {
        name_add(h->element, s, c);
        return;
    }
    element_named(h, s);
    if (c == '>')
        end_tag(h);
    else if (c == '/')
        slash(h, s);
    else if (isspace((unsigned char)c))
        h->place = HTML_TAG;
    else
        compile_fail(s, "'%c' stands in the name of the element %s", c, h->element);
}

/* ---- attributes ---- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == ':' || c == '.';
}

static void read_tag(struct html_state *h, const struct source *s, char c)
{
    if (c == '>') {
        end_tag(h);
    } else if (c == '/') {
        slash(h, s);
    } else if (is_name(c)) {
        h->place = HTML_ATTRIBUTE;
        h->attribute[0] = '\0';
        h->attributes++;
        name_add(h->attribute, s, c);
    } else if (!isspace((unsigned char)c)) {
        compile_fail(s, "'%c' begins no attribute; write NAME=\"VALUE\" without blanks", c);
    }
}

/* A meta with http-equiv can open another address. */
static void attribute_named(struct html_state *h, const struct source *s)
{
    if (strcmp(h->attribute, "http-equiv") != 0)
        return;
    h->has_equiv = true;
    if (h->has_value)
        compile_fail(s, "no value is safe in an element with http-equiv");
}

static void read_attribute(struct html_state *h, const struct source *s, char c)
{
    if (is_name(c)) {
        name_add(h->attribute, s, c);
        return;
    }
    attribute_named(h, s);
    h->place = HTML_TAG;
    if (c == '=')
        h->place = HTML_EQUALS;
    else
        read_tag(h, s, c);
}

static void read_equals(struct html_state *h, const struct source *s, char c)
{
    if (c != '"')
        compile_fail(s, "the value of %s needs double quotes", h->attribute);
    h->place = HTML_VALUE;
    h->url = URL_START;
    h->scheme[0] = '\0';
}

static enum url_place behind_scheme(const char *scheme)
{
    static const char *const known[] = {"http", "https", "mailto", "tel", NULL};
    return in(scheme, known) ? URL_REST : URL_REFUSED;
}

static void read_url(struct html_state *h, const struct source *s, char c)
{
    if (h->url == URL_REST || h->url == URL_REFUSED)
        return;
    h->url = URL_SCHEME;
    if (strchr("/?#", c) != NULL)
        h->url = URL_REST;
    else if (c == '&') /* a character reference can stand for ':' */
        h->url = URL_REFUSED;
    else if (c == ':')
        h->url = behind_scheme(h->scheme);
    else
        name_add(h->scheme, s, c);
}

static void read_value(struct html_state *h, const struct source *s, char c)
{
    if (c == '"')
        h->place = HTML_TAG;
    else if (c == '<' || c == '>')
        compile_fail(s, "'%c' stands in the value of %s; write &lt; or &gt;", c, h->attribute);
    else if (is_url(h->attribute))
        read_url(h, s, c);
}

/* ---- elements without elements ---- */

/* The ${i}th character of the end tag. */
static char end_tag_at(const struct html_state *h, size_t i)
{
    return i < 2 ? "</"[i] : h->element[i - 2];
}

/* Only the end tag of the element may begin with '<'. */
static void read_until_end_tag(struct html_state *h, const struct source *s, char c)
{
    if (h->matched == 0 && c != '<')
        return;
    if (tolower((unsigned char)c) == end_tag_at(h, h->matched) && end_tag_at(h, h->matched) != 0) {
        h->matched++;
        return;
    }
    if (end_tag_at(h, h->matched) != '\0' || !(c == '>' || isspace((unsigned char)c)))
        compile_fail(s, "'<' does not begin </%s> in the element %s", h->element, h->element);
    h->matched = 0;
    h->closing = true;
    h->tags++;
    h->place = HTML_TAG;
    read_tag(h, s, c);
}

static void read_one(struct html_state *h, const struct source *s, char c)
{
    switch (h->place) {
    case HTML_TEXT:
        read_text(h, c);
        break;
    case HTML_LESS:
        read_less(h, s, c);
        break;
    case HTML_DECLARATION:
        read_declaration(h, s, c);
        break;
    case HTML_TAG_NAME:
        read_tag_name(h, s, c);
        break;
    case HTML_TAG:
        read_tag(h, s, c);
        break;
    case HTML_ATTRIBUTE:
        read_attribute(h, s, c);
        break;
    case HTML_EQUALS:
        read_equals(h, s, c);
        break;
    case HTML_VALUE:
        read_value(h, s, c);
        break;
    case HTML_PLAIN:
    case HTML_RAW:
        read_until_end_tag(h, s, c);
        break;
    }
}

void html_read(struct html_state *h, const struct source *s, const char *p, size_t n)
{
    struct source at = *s;
    for (const char *end = p + n; p < end; p++) {
        read_one(h, &at, *p);
        at.line += *p == '\n';
    }
}

/* ---- sections and values ---- */

static bool in_tag(const struct html_state *h)
{
    return h->place >= HTML_TAG_NAME && h->place <= HTML_VALUE;
}

static bool in_attribute(const struct html_state *h)
{
    return h->place >= HTML_ATTRIBUTE && h->place <= HTML_VALUE;
}

bool html_same(const struct html_state *a, const struct html_state *b)
{
    if (a->place != b->place || a->closing != b->closing || a->noscript != b->noscript ||
        a->matched != b->matched)
        return false;
    if (a->place != HTML_TEXT && strcmp(a->element, b->element) != 0)
        return false;
    if (in_tag(a) && a->tags != b->tags)
        return false;
    if (in_attribute(a) &&
        (a->attributes != b->attributes || strcmp(a->attribute, b->attribute) != 0))
        return false;
    return a->place != HTML_VALUE || !is_url(a->attribute) ||
           (a->url == b->url && strcmp(a->scheme, b->scheme) == 0);
}

static void check_attribute(const struct html_state *h, const struct source *s, bool own)
{
    static const char *const refused[] = {
        "attributename", "clip-path",   "cursor",       "fill",        "filter",
        "http-equiv",    "id",          "is",           "integrity",   "manifest",
        "marker-end",    "imagesrcset", "marker-mid",   "mask",        "nonce",
        "ping",          "srcdoc",      "marker-start", "srcset",      "stroke",
        "style",         "xml:base",    "xmlns",        "xmlns:xlink", NULL};
    static const char *const loading[] = {"link", "script", NULL};
    if (strncmp(h->attribute, "on", 2) == 0 || in(h->attribute, refused))
        compile_fail(s, "no value is safe in the attribute %s", h->attribute);
    if (h->has_equiv)
        compile_fail(s, "no value is safe in an element with http-equiv");
    if (!own && in(h->element, loading))
        compile_fail(s, "only a member of page is safe in the element %s", h->element);
}

static enum html_escape escape_url(struct html_state *h, const struct source *s)
{
    bool first = h->url == URL_START;
    if (h->url == URL_REFUSED)
        compile_fail(s, "no value is safe behind this scheme: only http, https, mailto and tel");
    if (h->url == URL_SCHEME)
        name_add(h->scheme, s, '?');
    if (first)
        h->url = URL_SCHEME;
    return first ? ESCAPE_URL : ESCAPE_URL_PART;
}

enum html_escape html_escape_of(struct html_state *h, const struct source *s, bool own)
{
    if (h->noscript)
        compile_fail(s, "no value is safe in a noscript");
    if (h->place == HTML_TEXT || (h->place == HTML_PLAIN && h->matched == 0))
        return ESCAPE_TEXT;
    if (h->place != HTML_VALUE)
        compile_fail(s, "no value is safe here: only in text and in attributes in double quotes");
    check_attribute(h, s, own);
    h->has_value = true;
    return is_url(h->attribute) ? escape_url(h, s) : ESCAPE_TEXT;
}
