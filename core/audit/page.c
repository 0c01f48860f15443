#include "core/audit/page_internal.h"
#include "core/audit/page_tags_internal.h"
#include "core/audit/page_text_internal.h"
#include "core/audit/page_runs_internal.h"
#include "core/audit/text.h"

#include <libxml/HTMLparser.h>
#include <stdlib.h>
#include <time.h>

#define MAX_ARENA_BYTES ((size_t)64 * 1024 * 1024)
/* An end tag may visit all open elements, so the depth bounds the cost of one chunk. */
#define MAX_DEPTH 100000
#define MAX_CAPTURES 8
#define MAX_LANGS 32

const char *const page_deprecated_names[PAGE_DEPRECATED_COUNT] = {
    "acronym",  "applet",  "basefont", "big", "center", "dir", "font", "frame",
    "frameset", "isindex", "noframes", "s",   "strike", "tt",  "u",
};

static const char *const tag_names[TAG_COUNT] = {[TAG_OTHER] = "",
#define PAGE_TAG(id, name) [TAG_##id] = name,
                                                 PAGE_TAGS(PAGE_TAG)
#undef PAGE_TAG
};

/* Collects the text of an open element. */
struct capture {
    struct page_element *element;
    size_t depth, from; /* start of its text in page->text, or in ${aside} */
    bool is_aside;
    bool has_own_lang; /* a descendant set its language */
};

/* Cache of name lookups. libxml2 interns names: equal names have equal pointers. */
#define NAMES_KNOWN 64
struct known_name {
    const xmlChar *p;
    const struct page_tag_info *row;
};

struct parse_state {
    struct page *page;
    htmlParserCtxtPtr parser;
    struct timespec deadline;
    bool too_complex;
    size_t depth;
    /* Depth of the outermost open element of a kind; 0: none. */
    size_t inert_depth, svg_depth, picture_depth, media_depth, hidden_depth, unread_depth;
    bool head_over;
    bool space_pending; /* white space precedes the next text */
    struct page_runs runs;
    struct known_name names[NAMES_KNOWN];
    struct buf aside; /* text of title, style or JSON-LD, which is not in page->text */
    struct capture captures[MAX_CAPTURES];
    unsigned capture_count;
    struct {
        struct str lang;
        size_t depth;
    } langs[MAX_LANGS];
    unsigned lang_count;
};

static const struct page_tag_info unknown_name = {.tag = TAG_OTHER};

static const struct page_tag_info *name_of(struct parse_state *r, const xmlChar *name)
{
    struct known_name *known = &r->names[((uintptr_t)name ^ (uintptr_t)name >> 6) % NAMES_KNOWN];
    if (known->p != name) {
        const struct page_tag_info *row = page_tag_find(str_of((const char *)name));
        *known = (struct known_name){name, row == NULL ? &unknown_name : row};
    }
    return known->row;
}

/*
 * Opening an element of a kind stores the depth of the outermost one; closing that one clears it.
 */
static void enter(size_t *kind, size_t depth)
{
    if (*kind == 0)
        *kind = depth;
}

static void leave(size_t *kind, size_t depth)
{
    if (*kind == depth)
        *kind = 0;
}

static void separate_words(struct parse_state *r)
{
    struct buf *text = &r->page->text;
    if (text->n > 0 && text->p[text->n - 1] != '\n')
        buf_add(text, "\n", 1);
}

static struct str value_of(const xmlChar **atts, const char *name)
{
    for (size_t i = 0; atts != NULL && atts[i] != NULL; i += 2)
        if (strcmp((const char *)atts[i], name) == 0)
            return atts[i + 1] == NULL ? STR("") : str_of((const char *)atts[i + 1]);
    return (struct str){0};
}

static bool copy_attributes(struct arena *arena, struct page_element *e, const xmlChar **atts)
{
    size_t count = 0;
    while (atts != NULL && atts[count] != NULL)
        count += 2;
    e->attribute_count = count / 2;
    if (count == 0)
        return true;
    e->attributes = arena_get(arena, e->attribute_count * sizeof(*e->attributes));
    if (e->attributes == NULL)
        return false;
    for (size_t i = 0; i < e->attribute_count; i++) {
        const char *value = (const char *)atts[2 * i + 1];
        e->attributes[i].name =
            arena_copy(arena, text_cut_bytes(str_of((const char *)atts[2 * i]), 255));
        if (value != NULL)
            e->attributes[i].value =
                arena_copy(arena, text_cut_bytes(str_of(value), PAGE_VALUE_BYTES));
    }
    return true;
}

static struct page_element *keep_element(struct parse_state *r, enum page_tag tag, const char *name,
                                         const xmlChar **atts)
{
    struct page *page = r->page;
    struct page_element *e = arena_get(&page->arena, sizeof(*e));
    if (e == NULL || !copy_attributes(&page->arena, e, atts))
        return NULL;
    e->name = tag == TAG_OTHER ? arena_copy(&page->arena, text_cut_bytes(str_of(name), 32)).p
                               : tag_names[tag];
    if (page->count == page->capacity) {
        size_t capacity = page->capacity == 0 ? 256 : page->capacity * 2;
        struct page_element **more = realloc(page->elements, capacity * sizeof(*more));
        if (more == NULL) {
            page->arena.full = true;
            return NULL;
        }
        page->elements = more;
        page->capacity = capacity;
    }
    page->elements[page->count++] = e;
    e->tag = tag;
    e->flags = (!r->head_over ? ELEMENT_IN_HEAD : 0) |
               (r->svg_depth > 0 && r->svg_depth < r->depth ? ELEMENT_IN_SVG : 0) |
               (r->picture_depth > 0 ? ELEMENT_IN_PICTURE : 0) |
               (r->media_depth > 0 ? ELEMENT_IN_MEDIA : 0) |
               (r->hidden_depth > 0 ? ELEMENT_HIDDEN : 0) |
               (r->unread_depth > 0 ? ELEMENT_UNREAD : 0);
    if (r->lang_count > 0)
        e->lang = r->langs[r->lang_count - 1].lang;
    return e;
}

static bool is_json_ld(const xmlChar **atts)
{
    return text_eq(text_trim(value_of(atts, "type")), "application/ld+json");
}

static void start_capture(struct parse_state *r, struct page_element *e, const xmlChar **atts)
{
    bool aside =
        e->tag == TAG_TITLE || e->tag == TAG_STYLE || (e->tag == TAG_SCRIPT && is_json_ld(atts));
    bool heading = e->tag >= TAG_H1 && e->tag <= TAG_H6;
    if (!(aside || heading || e->tag == TAG_A || e->tag == TAG_BUTTON) ||
        r->capture_count == MAX_CAPTURES)
        return;
    struct capture *c = &r->captures[r->capture_count++];
    *c = (struct capture){
        .element = e, .depth = r->depth, .is_aside = aside, .from = r->page->text.n};
    if (aside) {
        buf_reset(&r->aside);
        c->from = 0;
    }
}

static void end_capture(struct parse_state *r)
{
    struct capture *c = &r->captures[--r->capture_count];
    const struct buf *from = c->is_aside ? &r->aside : &r->page->text;
    struct str text = text_from(buf_view(from), c->from);
    bool as_it_is = c->element->tag == TAG_SCRIPT || c->element->tag == TAG_STYLE;
    c->element->points = c->element->tag == TAG_TITLE ? page_points(text) : 0;
    c->element->text =
        as_it_is ? arena_copy(&r->page->arena, text) : page_collapse(&r->page->arena, text);
}

static void add_style_sample(struct page *page, const char *name, struct str style)
{
    if (page->style_attributes < sizeof(page->style_samples) / sizeof(*page->style_samples)) {
        struct str cut = text_cut_bytes(style, 200);
        page->style_samples[page->style_attributes] =
            arena_printf(&page->arena, "<%.32s style=\"%.*s\">", name, (int)cut.n, cut.p);
    }
    page->style_attributes++;
}

/* Set the current language, and that of the enclosing link if its descendants agree. */
static void set_lang(struct parse_state *r, struct str lang)
{
    if (lang.p != NULL && r->lang_count < MAX_LANGS) {
        r->langs[r->lang_count].lang =
            arena_copy(&r->page->arena, text_cut_bytes(text_trim(lang), 64));
        r->langs[r->lang_count++].depth = r->depth;
    }
    struct capture *c = r->capture_count > 0 ? &r->captures[r->capture_count - 1] : NULL;
    if (c == NULL || c->element->tag != TAG_A || r->lang_count == 0)
        return;
    struct str here = r->langs[r->lang_count - 1].lang;
    if (c->has_own_lang && !page_same_language(c->element->lang, here))
        c->element->lang = STR("");
    else if (!c->has_own_lang)
        c->element->lang = here;
    c->has_own_lang = true;
}

static bool hides(struct str style)
{
    for (struct str one, name, value; text_token(&style, ";", &one);)
        if (text_split(one, ':', &name, &value) && text_eq(text_trim(name), "display") &&
            text_starts(text_trim(value), "none"))
            return true;
    return false;
}

/* Bookkeeping for every element. */
static void count_element(struct parse_state *r, const struct page_tag_info *known,
                          const char *name, const xmlChar **atts)
{
    struct page *page = r->page;
    page->element_count++;
    if (r->depth > page->depth)
        page->depth = r->depth;
    struct str style = value_of(atts, "style");
    if (style.p != NULL)
        add_style_sample(page, name, style);
    if (known->deprecated > 0)
        page->deprecated[known->deprecated - 1]++;
    set_lang(r, value_of(atts, "lang"));
    if (value_of(atts, "hidden").p != NULL || (style.p != NULL && hides(style)))
        enter(&r->hidden_depth, r->depth);
    if (text_eq(text_trim(value_of(atts, "aria-hidden")), "true"))
        enter(&r->unread_depth, r->depth);
    if (known->tag == TAG_OTHER && style.p != NULL && strstr(style.p, "(") != NULL)
        keep_element(r, TAG_OTHER, name, atts); /* its style may load something */
}

static void start_element(void *arg, const xmlChar *name, const xmlChar **atts)
{
    struct parse_state *r = arg;
    const struct page_tag_info *known = name_of(r, name);
    r->depth++;
    if (r->depth > MAX_DEPTH)
        r->too_complex = true;
    if (r->inert_depth > 0 || r->too_complex)
        return;
    if (known->tag == TAG_TEMPLATE) {
        r->page->element_count++;
        enter(&r->inert_depth, r->depth);
        return;
    }
    count_element(r, known, (const char *)name, atts);
    if ((known->flags & PAGE_TAG_INLINE) == 0)
        separate_words(r);
    if (known->tag == TAG_OTHER)
        return;
    struct page_element *e = keep_element(r, known->tag, NULL, atts);
    if (known->tag == TAG_SVG)
        enter(&r->svg_depth, r->depth);
    else if (known->tag == TAG_PICTURE)
        enter(&r->picture_depth, r->depth);
    else if (known->tag == TAG_VIDEO || known->tag == TAG_AUDIO)
        enter(&r->media_depth, r->depth);
    if (e != NULL)
        start_capture(r, e, atts);
}

static void end_element(void *arg, const xmlChar *name)
{
    struct parse_state *r = arg;
    if (r->depth == 0)
        return;
    if (r->inert_depth == 0 && (name_of(r, name)->flags & PAGE_TAG_INLINE) == 0)
        separate_words(r);
    while (r->capture_count > 0 && r->captures[r->capture_count - 1].depth >= r->depth)
        end_capture(r);
    while (r->lang_count > 0 && r->langs[r->lang_count - 1].depth >= r->depth)
        r->lang_count--;
    size_t *const kinds[] = {&r->inert_depth, &r->svg_depth,    &r->picture_depth,
                             &r->media_depth, &r->hidden_depth, &r->unread_depth};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        leave(kinds[i], r->depth);
    r->depth--;
}

/* ---- text: runs wait until the parser reaches their marks ---- */

static char add_run(void *arg, struct page_run run)
{
    struct parse_state *r = arg;
    return page_runs_add(&r->runs, run);
}

/* Where text goes now: the aside or the body; NULL if it is not visible. */
static struct buf *text_here(struct parse_state *r)
{
    struct capture *c = r->capture_count > 0 ? &r->captures[r->capture_count - 1] : NULL;
    if (r->inert_depth > 0)
        return NULL;
    if (c != NULL && c->is_aside)
        return r->aside.n < PAGE_RAW_BYTES ? &r->aside : NULL;
    return r->head_over ? &r->page->text : NULL;
}

static void add_text(struct parse_state *r, struct page_run run)
{
    struct buf *out = text_here(r);
    r->space_pending = r->space_pending || (run.flags & RUN_AFTER_SPACE) != 0;
    if (out == NULL)
        return;
    if (out == &r->aside)
        run.text = text_cut_bytes(run.text, PAGE_RAW_BYTES - out->n);
    if (r->space_pending)
        buf_add(out, " ", 1);
    r->space_pending = false;
    if ((run.flags & RUN_DECODED) != 0)
        page_decode(run.text, out);
    else
        buf_str(out, run.text);
}

static void on_comment(void *arg, const xmlChar *comment)
{
    struct parse_state *r = arg;
    struct page_run run;
    if (comment[0] == PAGE_MARK_BODY)
        r->head_over = true;
    else if (page_runs_take(&r->runs, (char)comment[0], &run))
        add_text(r, run);
}

/*
 * Called for the content of scripts and styles only, and for a mark where the parser reads comments
 * as text.
 */
static void characters(void *arg, const xmlChar *text, int n)
{
    struct parse_state *r = arg;
    struct capture *c = r->capture_count > 0 ? &r->captures[r->capture_count - 1] : NULL;
    bool raw = c != NULL && (c->element->tag == TAG_SCRIPT || c->element->tag == TAG_STYLE);
    if (n <= 0)
        return;
    if (!raw && n == 8 && memcmp(text, "<!--", 4) == 0)
        on_comment(r, text + 4);
    else
        add_text(r, (struct page_run){{(const char *)text, (size_t)n}, 0});
}

static bool is_late(const struct timespec *deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec > deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec > deadline->tv_nsec);
}

static bool feed(void *arg, const char *p, size_t n)
{
    struct parse_state *r = arg;
    htmlParseChunk(r->parser, p, (int)n, 0);
    if (is_late(&r->deadline) || r->page->arena.full)
        r->too_complex = true;
    return !r->too_complex;
}

static htmlParserCtxtPtr new_parser(struct parse_state *r)
{
    htmlSAXHandler sax = {
        .startElement = start_element,
        .endElement = end_element,
        .characters = characters,
        .ignorableWhitespace = characters,
        .cdataBlock = characters,
        .comment = on_comment,
    };
    htmlParserCtxtPtr parser =
        htmlCreatePushParserCtxt(&sax, r, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
    if (parser != NULL)
        htmlCtxtUseOptions(parser, HTML_PARSE_IGNORE_ENC | HTML_PARSE_RECOVER | HTML_PARSE_NOERROR |
                                       HTML_PARSE_NOWARNING | HTML_PARSE_NONET |
                                       HTML_PARSE_COMPACT);
    return parser;
}

enum page_status page_read(struct page *page, struct str html, unsigned deadline_ms)
{
    struct parse_state r = {.page = page};
    *page = (struct page){.html_bytes = html.n};
    arena_init(&page->arena, MAX_ARENA_BYTES);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &r.deadline);
    r.deadline.tv_sec += deadline_ms / 1000;
    r.deadline.tv_nsec += (long)(deadline_ms % 1000) * 1000000;
    if (r.deadline.tv_nsec >= 1000000000) {
        r.deadline.tv_sec++;
        r.deadline.tv_nsec -= 1000000000;
    }
    r.parser = new_parser(&r);
    if (r.parser == NULL)
        return PAGE_NO_MEMORY;
    struct str doctype;
    if (page_scan(html, &doctype, &(struct page_sink){feed, add_run, &r}))
        htmlParseChunk(r.parser, NULL, 0, 1);
    if (r.parser->errNo == XML_ERR_NO_MEMORY)
        page->text.failed = true;
    htmlFreeParserCtxt(r.parser);
    page->doctype = arena_copy(&page->arena, text_cut_bytes(doctype, PAGE_TEXT_BYTES));
    page->mode = page_mode_of(doctype);
    bool memory = buf_ok(&r.aside) && buf_ok(&page->text) && !r.runs.failed;
    buf_free(&r.aside);
    page_runs_free(&r.runs);
    if (r.too_complex || page->arena.full)
        return PAGE_TOO_COMPLEX;
    return memory ? PAGE_OK : PAGE_NO_MEMORY;
}

void page_free(struct page *page)
{
    arena_free(&page->arena);
    free(page->elements);
    buf_free(&page->text);
    *page = (struct page){0};
}

const struct page_element *page_next(const struct page *page, enum page_tag tag, size_t *from)
{
    while (*from < page->count) {
        const struct page_element *e = page->elements[(*from)++];
        if (e->tag == tag)
            return e;
    }
    return NULL;
}

bool page_attribute(const struct page_element *element, const char *name, struct str *out)
{
    for (size_t i = 0; i < element->attribute_count; i++) {
        if (text_eq(element->attributes[i].name, name)) {
            *out = element->attributes[i].value;
            return true;
        }
    }
    *out = (struct str){0};
    return false;
}

struct str page_value(const struct page_element *element, const char *name)
{
    struct str value;
    page_attribute(element, name, &value);
    return value.p == NULL ? STR("") : text_trim(value);
}
