#include "core/web/compile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 24

/* What is being compiled: one page in one language. */
struct parser {
    const char *folder;
    const struct texts *texts;
    struct html_state html;
    struct node **end;            /* where the next node goes */
    struct node *open[DEPTH_MAX]; /* sections */
    size_t depth;
    unsigned nested; /* partials and texts */
    bool begins;     /* nothing but white space and comments stands before */
    const char *view;
};

static struct node *add(struct parser *p, enum node_kind kind, const char *text)
{
    struct node *node = compile_alloc(sizeof(*node));
    node->kind = kind;
    node->text = text;
    *p->end = node;
    p->end = &node->next;
    return node;
}

/* Template text without the indentation of lines and without empty lines. */
static char *unindented(const char *text, size_t n)
{
    char *out = compile_alloc(n + 1), *to = out;
    for (const char *end = text + n; text < end; text++) {
        *to++ = *text;
        if (*text == '\n')
            while (text + 1 < end && isspace((unsigned char)text[1]))
                text++;
    }
    *to = '\0';
    return out;
}

static void literal(struct parser *p, const struct source *s, const char *text, size_t n)
{
    bool keeps = p->html.place != HTML_TEXT && p->html.place != HTML_TAG;
    html_read(&p->html, s, text, n);
    while (n > 0 && p->begins && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    if (n == 0)
        return;
    p->begins = false;
    add(p, NODE_LITERAL, keeps ? compile_copy(text, n) : unindented(text, n));
}

static void parse(struct parser *p, struct source *s);

static void nest(struct parser *p, struct source inner, const struct source *s)
{
    if (++p->nested > DEPTH_MAX)
        compile_fail(s, "partials or texts contain each other");
    parse(p, &inner);
    p->nested--;
    if (*inner.at != '\0')
        compile_fail(&inner, "{{/…}} closes no section of this file");
}

static void text(struct parser *p, const struct source *s, const char *key)
{
    const struct text *row = texts_find(p->texts, key);
    if (row == NULL)
        compile_fail(s, "%s has no text %s", p->texts->file, key);
    struct html_state here = p->html;
    html_escape_of(&here, s, true);
    nest(p, (struct source){p->texts->file, row->value, row->value, row->line, true}, s);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static void style(struct parser *p, const struct source *s, const char *name,
                  const struct source *css)
{
    if (!ends_with(name, ".css") || strcmp(p->html.element, "style") != 0)
        compile_fail(s, "only a .css file may stand in a style");
    literal(p, css, css->text, strlen(css->text));
}

static struct source without_last_newline(struct source s)
{
    size_t n = strlen(s.text);
    if (n > 0 && s.text[n - 1] == '\n')
        s.at = s.text = compile_copy(s.text, n - 1);
    return s;
}

static void partial(struct parser *p, const struct source *s, const char *name)
{
    const char *path = compile_print("%s/%s", p->folder, name);
    struct source inner = compile_read(s, path);
    struct html_state before = p->html;
    if (p->html.place == HTML_RAW)
        style(p, s, name, &inner);
    else
        nest(p, without_last_newline(inner), s);
    bool same_place = before.place == HTML_VALUE
                          ? p->html.place == HTML_VALUE && before.attributes == p->html.attributes
                          : html_same(&before, &p->html);
    if (!same_place)
        compile_fail(s, "%s ends in another place of the HTML than it begins", path);
}

/* The open section whose item has the member ${path}, or is "."; NULL: it is of the view. */
static struct node *section_of(const struct parser *p, const char *path)
{
    size_t n = strcspn(path, ".");
    if (n == 0)
        return p->depth == 0 ? NULL : p->open[p->depth - 1];
    if (path[n] == '\0')
        return NULL;
    for (size_t i = p->depth; i > 0; i--) {
        const char *item = p->open[i - 1]->item;
        if (strncmp(path, item, n) == 0 && item[n] == '\0')
            return p->open[i - 1];
    }
    return NULL;
}

/* ${path} in C, of the view or of the item of a list. */
static const char *in_c(struct parser *p, const struct source *s, const char *path)
{
    if (strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789_.") != strlen(path) || *path == '\0')
        compile_fail(s, "%s is not a name: a to z, 0 to 9, _ and .", path);
    struct node *section = section_of(p, path);
    if (section == NULL && *path == '.')
        compile_fail(s, "{{%s}} stands in no list", path);
    if (section == NULL)
        return compile_print("view->%s", path);
    if (section->inverted)
        compile_fail(s, "%s has no items here", section->item);
    section->list = true;
    const char *member = strchr(path, '.') + 1;
    return *member == '\0' ? compile_print("(*%s)", section->item)
                           : compile_print("%s->%s", section->item, member);
}

/* The tag at s->at, behind its braces, must close the section ${path}. */
static void close_section(struct source *s, const char *path, unsigned line)
{
    size_t n = strcspn(s->at, "}");
    if (strncmp(s->at + n, "}}", 2) != 0)
        compile_fail(s, "a tag is not closed");
    if (strncmp(s->at + 1, path, n - 1) != 0 || path[n - 1] != '\0')
        compile_fail(s, "{{%.*s}} closes the section %s of line %u", (int)n, s->at, path, line);
    s->at += n + 2;
}

static void open_section(struct parser *p, struct source *s, const char *path, bool inverted)
{
    if (p->depth == DEPTH_MAX)
        compile_fail(s, "sections are nested too deep");
    struct node *node = add(p, NODE_SECTION, in_c(p, s, path));
    const char *dot = strrchr(path, '.');
    node->item = dot == NULL ? path : dot + 1;
    node->inverted = inverted;
    p->open[p->depth++] = node;
    p->end = &node->first;
    struct html_state before = p->html;
    unsigned line = s->line;
    parse(p, s);
    if (s->at[0] != '/')
        compile_fail(s, "the section %s of line %u is not closed", path, line);
    close_section(s, path, line);
    if (!html_same(&before, &p->html))
        compile_fail(s, "the section %s ends in another place of the HTML than it begins", path);
    p->depth--;
    p->end = &node->next;
}

static void value(struct parser *p, const struct source *s, const char *path)
{
    struct node *node = add(p, NODE_VALUE, in_c(p, s, path));
    node->escape = html_escape_of(&p->html, s, strncmp(path, "page.", 5) == 0);
}

static void comment(struct parser *p, const char *inside)
{
    if (p->view == NULL && strncmp(inside, "! view: ", 8) == 0)
        p->view = compile_copy(inside + 8, strcspn(inside + 8, " }"));
}

static char *name_in(const char *inside, size_t n)
{
    while (n > 0 && isspace((unsigned char)*inside)) {
        inside++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)inside[n - 1]))
        n--;
    return compile_copy(inside, n);
}

/* The tag at s->at, behind its braces. */
static void tag(struct parser *p, struct source *s)
{
    const char *inside = s->at;
    const char *end = strstr(inside, "}}");
    if (end == NULL)
        compile_fail(s, "a tag is not closed");
    bool has_sign = strchr("!#^>", *inside) != NULL;
    char *name = name_in(inside + has_sign, (size_t)(end - inside) - has_sign);
    for (const char *c = inside; c < end; c++)
        s->line += *c == '\n';
    s->at = end + 2;
    switch (*inside) {
    case '!':
        comment(p, inside);
        break;
    case '#':
    case '^':
        open_section(p, s, name, *inside == '^');
        break;
    case '>':
        partial(p, s, name);
        break;
    case '{':
    case '&':
        compile_fail(s, "a value that is not escaped is never safe");
    default:
        if (strncmp(name, "t.", 2) == 0)
            text(p, s, name + 2);
        else
            value(p, s, name);
    }
}

/* Up to the end of ${s}, or to the tag that closes a section. */
static void parse(struct parser *p, struct source *s)
{
    while (*s->at != '\0') {
        const char *tag_at = strstr(s->at, "{{");
        size_t n = tag_at == NULL ? strlen(s->at) : (size_t)(tag_at - s->at);
        if (s->plain)
            literal(p, s, compile_escaped(s->at, n), strlen(compile_escaped(s->at, n)));
        else
            literal(p, s, s->at, n);
        for (size_t i = 0; i < n && !s->plain; i++)
            s->line += s->at[i] == '\n';
        s->at += n;
        if (tag_at == NULL)
            return;
        s->at += 2;
        if (*s->at == '/')
            return;
        tag(p, s);
    }
}

struct page page_parse(const char *folder, const char *name, const struct texts *texts)
{
    struct page page = {.name = compile_copy(name, strcspn(name, "."))};
    struct parser p = {.folder = folder, .texts = texts, .end = &page.first, .begins = true};
    struct source s = compile_read(NULL, compile_print("%s/%s", folder, name));
    parse(&p, &s);
    if (*s.at != '\0')
        compile_fail(&s, "{{/…}} closes no section");
    if (p.html.place != HTML_TEXT || p.html.noscript)
        compile_fail(&s, "the page ends inside of a tag, a title, a script or a noscript");
    if (p.view == NULL)
        compile_fail(&s, "the page names no view; begin it with {{! view: NAME }}");
    page.view = p.view;
    return page;
}
