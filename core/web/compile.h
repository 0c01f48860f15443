/*
 * The template compiler, a program of the build: HTML files with tags in, C functions out.
 *
 * Tags, a subset of Mustache:
 *     {{name}}  {{a.b}}              a value of the view, escaped for where it stands
 *     {{#name}}…{{/name}}            only if the value is true, not empty and not 0; a list: for
 *                                    each item, whose members are {{name.member}} inside; an
 *                                    item that is a text is {{.}}
 *     {{^name}}…{{/name}}            only if it is false, empty or 0
 *     {{> file}}                     the file templates/file, compiled in place
 *     {{t.key}}                      a text of the language; its tags are compiled in place
 *     {{! comment }}
 *
 * Each value is a member of the view, a struct of core/web/views.h, or of the item of a list, so
 * the C compiler checks names and types. The first tag of a page names its view:
 * {{! view: report_view }}.
 *
 * The compiler follows the HTML around the tags and stops with file and line where a value is not
 * safe: outside of text and of attributes in double quotes, in scripts, styles, event handlers, and
 * where a section could end in another place than it begins. It also stops at HTML that browsers
 * can read in two ways: comments, attributes without double quotes, a "<" that begins no tag.
 * Addresses of scripts and stylesheets are members of page.
 */
#ifndef ASSAY_WEB_COMPILE_H
#define ASSAY_WEB_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

/* ---- source: compile_source.c ---- */

/* A position in a file, for errors. */
struct source {
    const char *file, *text, *at;
    unsigned line;
    bool plain; /* a text of the language: its markup is shown */
};

/* compile_fail(s, format, …): print "file:line: message" and end the program. */
void compile_fail(const struct source *s, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* compile_read(from, path): the file ${path}, or an error at ${from} (NULL: none). */
struct source compile_read(const struct source *from, const char *path);

/* compile_alloc(size): zeroed memory that lives as long as the program. */
void *compile_alloc(size_t size);
/* compile_copy(p, n): a string of ${n} bytes. */
char *compile_copy(const char *p, size_t n);
/* compile_print(format, …): a formatted string. */
char *compile_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* compile_escaped(text, n): plain text as HTML. */
char *compile_escaped(const char *text, size_t n);

/* ---- texts of a language: compile_texts.c ---- */

struct text {
    const char *key, *value;
    unsigned line;
};
struct texts {
    const char *language, *file;
    struct text *rows;
    size_t count;
};

/* texts_read(path, language): the keys and texts of a file; sorted by key. */
struct texts texts_read(const char *path, const char *language);
const struct text *texts_find(const struct texts *texts, const char *key);

/* texts_compare(a, b): fail unless both have the same keys. */
void texts_compare(const struct texts *a, const struct texts *b);

/* ---- where a tag stands in the HTML: compile_html.c ---- */

enum html_place {
    HTML_TEXT,
    HTML_LESS,        /* after "<" */
    HTML_DECLARATION, /* in <!DOCTYPE> */
    HTML_TAG_NAME,
    HTML_TAG,       /* between attributes */
    HTML_ATTRIBUTE, /* in a name */
    HTML_EQUALS,    /* after "=" */
    HTML_VALUE,     /* in double quotes */
    HTML_PLAIN,     /* in a title or textarea: text without elements */
    HTML_RAW,       /* in a script or style */
};

/* What stands before in an attribute whose value is a URL. */
enum url_place {
    URL_START,
    URL_SCHEME, /* what can be a scheme, or values */
    URL_REST,
    URL_REFUSED, /* behind a scheme that can run scripts */
};
#define HTML_NAME_MAX 32
struct html_state {
    enum html_place place;
    bool closing;              /* the tag is an end tag */
    bool noscript;             /* in a noscript */
    bool has_value, has_equiv; /* the tag has a value; it has http-equiv */
    unsigned tags, attributes; /* how many have begun */
    size_t matched;            /* HTML_PLAIN, HTML_RAW: read characters of the end tag */
    char element[HTML_NAME_MAX], attribute[HTML_NAME_MAX];
    enum url_place url;
    char scheme[HTML_NAME_MAX]; /* URL_SCHEME: its characters; '?' for a value */
};

/*
 * html_read(h, s, p, n): follow the HTML ${p}, whose line is that of ${s}.
 * html_same(before, after): a section may begin at ${before} and end at ${after}.
 */
void html_read(struct html_state *h, const struct source *s, const char *p, size_t n);
bool html_same(const struct html_state *before, const struct html_state *after);

/*
 * html_escape_of(h, s, own): how a value that stands here is escaped; an error where none is safe.
 * ${own}: the server makes the value itself.
 */
enum html_escape { ESCAPE_TEXT, ESCAPE_URL, ESCAPE_URL_PART };
enum html_escape html_escape_of(struct html_state *h, const struct source *s, bool own);

/* ---- the tree of a page: compile_parse.c ---- */

enum node_kind { NODE_LITERAL, NODE_VALUE, NODE_SECTION };
struct node {
    enum node_kind kind;
    const char *text; /* the literal, or the value or section in C */
    const char *item; /* NODE_SECTION: the last part of its name, by which tags name an item */
    enum html_escape escape;
    bool inverted, list;
    struct node *first, *next;
};

/* A page in one language. */
struct page {
    const char *name, *view;
    struct node *first;
};

/* page_parse(folder, name, texts): compile FOLDER/NAME. */
struct page page_parse(const char *folder, const char *name, const struct texts *texts);

/* ---- C: compile_emit.c ---- */

/* emit_page(page, language): a static function. emit_texts(texts): their table. */
void emit_page(const struct page *page, const char *language);
void emit_texts(const struct texts *texts);

#endif
