#include "page.h"
#include "text.h"

#include <libxml/HTMLparser.h>
#include <stdlib.h>
#include <time.h>

#define MAX_ARENA_BYTES ((size_t)64 * 1024 * 1024)
#define MAX_DEPTH 100000 /* an end tag may look at all open elements, so depth bounds what one slice costs */
#define MAX_CAPTURES 8
#define MAX_LANGS 32

const char *const page_deprecated_names[PAGE_DEPRECATED_COUNT] = {
    "acronym", "applet", "basefont", "big", "center", "dir", "font", "frame", "frameset", "isindex", "noframes", "s", "strike", "tt", "u",
};

static const char *const tag_names[TAG_COUNT] = {[TAG_OTHER] = "",
#define PAGE_TAG(id, name) [TAG_##id] = name,
                                                 PAGE_TAGS(PAGE_TAG)
#undef PAGE_TAG
};

/* Elements within a line of text: they part no words. Sorted. */
static const char *const inline_names[] = {
    "a",    "abbr",  "acronym", "b",      "bdi",    "bdo",  "big",  "cite", "code", "data", "del", "dfn",  "em",
    "font", "i",     "ins",     "kbd",    "label",  "mark", "nobr", "q",    "rb",   "rp",   "rt",  "ruby", "s",
    "samp", "small", "span",    "strike", "strong", "sub",  "sup",  "time", "tt",   "u",    "var", "wbr",
};

/* The text of an element that is still open. */
struct capture {
    struct page_element *element;
    size_t depth, from; /* where its text begins in page->text, or in ${aside} */
    bool is_aside;
};

struct reading {
    struct page *page;
    htmlParserCtxtPtr parser;
    struct timespec deadline;
    bool too_complex;
    size_t depth;
    size_t inert_depth, head_depth, svg_depth, picture_depth, media_depth; /* depth of the outermost one that is open; 0 none */
    struct buf aside;                                                      /* title or JSON-LD: text that is not in the body's */
    struct capture captures[MAX_CAPTURES];
    unsigned capture_count;
    struct {
        struct str lang;
        size_t depth;
    } langs[MAX_LANGS];
    unsigned lang_count;
};

const char *page_tag_name(enum page_tag tag)
{
    return tag_names[tag];
}

static enum page_tag tag_of(const char *name)
{
    for (unsigned t = TAG_OTHER + 1; t < TAG_COUNT; t++)
        if (strcmp(tag_names[t], name) == 0)
            return (enum page_tag)t;
    return TAG_OTHER;
}

static int compare_name(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_inline(const char *name)
{
    return bsearch(name, inline_names, sizeof(inline_names) / sizeof(*inline_names), sizeof(*inline_names), compare_name) != NULL;
}

/* Opening an element of a kind remembers the outermost one's depth; closing it forgets. */
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

static void part_words(struct reading *r)
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

static struct str cut_bytes(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xC0) == 0x80)
        max--;
    return (struct str){s.p, max};
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
        e->attributes[i].name = arena_copy(arena, cut_bytes(str_of((const char *)atts[2 * i]), 255));
        if (value != NULL)
            e->attributes[i].value = arena_copy(arena, cut_bytes(str_of(value), PAGE_VALUE_BYTES));
    }
    return true;
}

static struct page_element *keep(struct reading *r, enum page_tag tag, const xmlChar **atts)
{
    struct page *page = r->page;
    struct page_element *e = arena_get(&page->arena, sizeof(*e));
    if (e == NULL || !copy_attributes(&page->arena, e, atts))
        return NULL;
    if (page->count == page->room) {
        size_t room = page->room == 0 ? 256 : page->room * 2;
        struct page_element **more = realloc(page->elements, room * sizeof(*more));
        if (more == NULL) {
            page->arena.full = true;
            return NULL;
        }
        page->elements = more;
        page->room = room;
    }
    page->elements[page->count++] = e;
    e->tag = tag;
    e->flags = (r->head_depth > 0 ? ELEMENT_IN_HEAD : 0) | (r->svg_depth > 0 && r->svg_depth < r->depth ? ELEMENT_IN_SVG : 0) |
               (r->picture_depth > 0 ? ELEMENT_IN_PICTURE : 0) | (r->media_depth > 0 ? ELEMENT_IN_MEDIA : 0);
    if (r->lang_count > 0)
        e->lang = r->langs[r->lang_count - 1].lang;
    return e;
}

static bool is_json_ld(const xmlChar **atts)
{
    return text_eq(text_trim(value_of(atts, "type")), "application/ld+json");
}

static void capture(struct reading *r, struct page_element *e, const xmlChar **atts)
{
    bool aside = e->tag == TAG_TITLE || (e->tag == TAG_SCRIPT && is_json_ld(atts));
    bool heading = e->tag >= TAG_H1 && e->tag <= TAG_H6;
    if (!(aside || heading || e->tag == TAG_A || e->tag == TAG_BUTTON) || r->capture_count == MAX_CAPTURES)
        return;
    struct capture *c = &r->captures[r->capture_count++];
    *c = (struct capture){.element = e, .depth = r->depth, .is_aside = aside, .from = r->page->text.n};
    if (aside) {
        buf_reset(&r->aside);
        c->from = 0;
    }
}

/* White space runs become one space, as on the screen. */
static struct str collapse(struct arena *arena, struct str s)
{
    s = text_trim(s);
    char kept[PAGE_TEXT_BYTES + 4];
    size_t n = 0;
    bool space = false;
    for (size_t i = 0; i < s.n; i++) {
        if (text_is_space(s.p[i])) {
            space = true;
            continue;
        }
        /* cut before a code point that would not fit whole */
        if (n >= PAGE_TEXT_BYTES - 5 && ((unsigned char)s.p[i] & 0xC0) != 0x80)
            break;
        if (space)
            kept[n++] = ' ';
        space = false;
        kept[n++] = s.p[i];
    }
    return arena_copy(arena, (struct str){kept, n});
}

static void end_capture(struct reading *r)
{
    struct capture *c = &r->captures[--r->capture_count];
    const struct buf *from = c->is_aside ? &r->aside : &r->page->text;
    struct str text = text_from(buf_view(from), c->from);
    c->element->text = c->element->tag == TAG_SCRIPT ? arena_copy(&r->page->arena, text) : collapse(&r->page->arena, text);
}

static void count_other(struct reading *r, const char *name, const xmlChar **atts)
{
    struct page *page = r->page;
    page->element_count++;
    if (r->depth > page->depth)
        page->depth = r->depth;
    struct str style = value_of(atts, "style");
    if (style.p != NULL) {
        if (page->style_attributes < sizeof(page->style_samples) / sizeof(*page->style_samples)) {
            style = cut_bytes(style, 200);
            page->style_samples[page->style_attributes] = arena_printf(&page->arena, "<%.32s style=\"%.*s\">", name, (int)style.n, style.p);
        }
        page->style_attributes++;
    }
    for (size_t i = 0; i < PAGE_DEPRECATED_COUNT; i++)
        if (strcmp(page_deprecated_names[i], name) == 0)
            page->deprecated[i]++;
    struct str lang = value_of(atts, "lang");
    if (lang.p != NULL && r->lang_count < MAX_LANGS) {
        r->langs[r->lang_count].lang = arena_copy(&page->arena, cut_bytes(text_trim(lang), 64));
        r->langs[r->lang_count++].depth = r->depth;
    }
}

static void start_element(void *arg, const xmlChar *xml_name, const xmlChar **atts)
{
    struct reading *r = arg;
    const char *name = (const char *)xml_name;
    r->depth++;
    if (r->depth > MAX_DEPTH)
        r->too_complex = true;
    if (r->inert_depth > 0 || r->too_complex)
        return;
    if (strcmp(name, "template") == 0) {
        r->page->element_count++;
        enter(&r->inert_depth, r->depth);
        return;
    }
    count_other(r, name, atts);
    if (!is_inline(name))
        part_words(r);
    enum page_tag tag = tag_of(name);
    if (tag == TAG_OTHER)
        return;
    if (tag == TAG_HEAD)
        enter(&r->head_depth, r->depth);
    struct page_element *e = keep(r, tag, atts);
    if (tag == TAG_SVG)
        enter(&r->svg_depth, r->depth);
    else if (tag == TAG_PICTURE)
        enter(&r->picture_depth, r->depth);
    else if (tag == TAG_VIDEO || tag == TAG_AUDIO)
        enter(&r->media_depth, r->depth);
    if (e != NULL)
        capture(r, e, atts);
}

static void end_element(void *arg, const xmlChar *xml_name)
{
    struct reading *r = arg;
    if (r->depth == 0)
        return;
    if (r->inert_depth == 0 && !is_inline((const char *)xml_name))
        part_words(r);
    while (r->capture_count > 0 && r->captures[r->capture_count - 1].depth >= r->depth)
        end_capture(r);
    while (r->lang_count > 0 && r->langs[r->lang_count - 1].depth >= r->depth)
        r->lang_count--;
    size_t *const kinds[] = {&r->inert_depth, &r->head_depth, &r->svg_depth, &r->picture_depth, &r->media_depth};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        leave(kinds[i], r->depth);
    r->depth--;
}

static void characters(void *arg, const xmlChar *text, int n)
{
    struct reading *r = arg;
    if (r->inert_depth > 0 || n <= 0)
        return;
    struct capture *c = r->capture_count > 0 ? &r->captures[r->capture_count - 1] : NULL;
    if (c != NULL && c->is_aside) {
        if (r->aside.n + (size_t)n <= PAGE_JSON_LD_BYTES)
            buf_add(&r->aside, text, (size_t)n);
    } else if (r->head_depth == 0) {
        buf_add(&r->page->text, text, (size_t)n);
    }
}

static bool is_late(const struct timespec *deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec > deadline->tv_sec || (now.tv_sec == deadline->tv_sec && now.tv_nsec > deadline->tv_nsec);
}

static bool feed(void *arg, const char *p, size_t n)
{
    struct reading *r = arg;
    htmlParseChunk(r->parser, p, (int)n, 0);
    if (is_late(&r->deadline) || r->page->arena.full)
        r->too_complex = true;
    return !r->too_complex;
}

static htmlParserCtxtPtr new_parser(struct reading *r)
{
    htmlSAXHandler sax = {
        .startElement = start_element,
        .endElement = end_element,
        .characters = characters,
        .ignorableWhitespace = characters,
        .cdataBlock = characters,
    };
    htmlParserCtxtPtr parser = htmlCreatePushParserCtxt(&sax, r, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
    if (parser != NULL)
        htmlCtxtUseOptions(parser, HTML_PARSE_IGNORE_ENC | HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                       HTML_PARSE_NONET | HTML_PARSE_COMPACT);
    return parser;
}

enum page_status page_read(struct page *page, struct str html, unsigned deadline_ms)
{
    struct reading r = {.page = page};
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
    if (page_scan(html, &doctype, feed, &r))
        htmlParseChunk(r.parser, NULL, 0, 1);
    if (r.parser->errNo == XML_ERR_NO_MEMORY)
        page->text.failed = true;
    htmlFreeParserCtxt(r.parser);
    page->doctype = arena_copy(&page->arena, cut_bytes(doctype, PAGE_TEXT_BYTES));
    page->mode = page_mode_of(doctype);
    bool memory = buf_ok(&r.aside) && buf_ok(&page->text);
    buf_free(&r.aside);
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
