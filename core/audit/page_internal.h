/*
 * A page's HTML, parsed once: the elements that checks need, in document order, with attributes and
 * texts, and counts of all others. Wraps libxml2's push parser. Everything lives in the page's
 * arena until page_free.
 */
#ifndef ASSAY_PAGE_INTERNAL_H
#define ASSAY_PAGE_INTERNAL_H

#include "core/audit/arena_internal.h"
#include "core/audit/page_tags_internal.h"

enum {
    ELEMENT_IN_HEAD = 1 << 0,
    ELEMENT_IN_SVG = 1 << 1, /* inside <svg>; not the <svg> itself */
    ELEMENT_IN_PICTURE = 1 << 2,
    ELEMENT_IN_MEDIA = 1 << 3, /* inside <video> or <audio> */
    /* it or an ancestor is hidden, by the attribute or by display:none in its style */
    ELEMENT_HIDDEN = 1 << 4,
    ELEMENT_UNREAD = 1 << 5, /* it or an ancestor has aria-hidden=true */
};

struct page_attribute {
    struct str name; /* lower case */
    /* Decoded, cut at PAGE_VALUE_BYTES; p is NULL for an attribute without a value. */
    struct str value;
};

#define PAGE_VALUE_BYTES 4096
#define PAGE_TEXT_BYTES 1024
#define PAGE_RAW_BYTES (256 * 1024) /* of one title, style or JSON-LD */

struct page_element {
    enum page_tag tag; /* TAG_OTHER: kept for its style attribute */
    unsigned flags;
    const char *name;
    size_t attribute_count;
    struct page_attribute *attributes;
    /*
     * title, a, button, h1–h6: white space collapsed, cut at PAGE_TEXT_BYTES. JSON-LD
     * and style: raw.
     */
    struct str text;
    size_t points; /* title: length in code points before the cut */
    /*
     * Language of the text: the nearest lang attribute, its own included; of an <a>, that of its
     * descendants if they have one. Empty if there is none or they differ.
     */
    struct str lang;
};

/* Deprecated elements, in the order of page_deprecated_names. */
#define PAGE_DEPRECATED_COUNT 15
extern const char *const page_deprecated_names[PAGE_DEPRECATED_COUNT];

enum page_mode { PAGE_NO_QUIRKS, PAGE_LIMITED_QUIRKS, PAGE_QUIRKS };

enum page_status { PAGE_OK, PAGE_TOO_COMPLEX, PAGE_NO_MEMORY };

struct page {
    struct arena arena;
    struct page_element **elements; /* in document order */
    size_t count, capacity;
    size_t element_count; /* of all elements */
    size_t depth;         /* of the deepest element */
    size_t style_attributes;
    size_t deprecated[PAGE_DEPRECATED_COUNT];
    size_t html_bytes;  /* of the document as UTF-8 */
    struct str doctype; /* between <! and >; empty if there is none */
    enum page_mode mode;
    struct str style_samples[50]; /* elements with a style attribute: "tag: style" */
    struct buf text;              /* visible text of the body; a newline separates blocks */
};

/*
 * page_read(page, html, deadline_ms):
 * Parse ${html}, which is UTF-8 without NUL. Returns PAGE_TOO_COMPLEX when that takes longer than
 * ${deadline_ms} of CPU time or exceeds the page's memory limit. ${page} must be freed in any case.
 */
enum page_status page_read(struct page *page, struct str html, unsigned deadline_ms);
void page_free(struct page *page);

/*
 * page_next(page, tag, from): the next element of ${tag} at index ${*from} or later, and advance
 * ${*from} past it. NULL at the end.
 */
const struct page_element *page_next(const struct page *page, enum page_tag tag, size_t *from);

/*
 * page_attribute(element, name, out): false if the attribute is absent; one without a value is
 * empty.
 */
bool page_attribute(const struct page_element *element, const char *name, struct str *out);
/* page_value(element, name): the attribute's value, trimmed; empty if absent. */
struct str page_value(const struct page_element *element, const char *name);

/* page_mode_of(doctype): quirks mode by WHATWG HTML, 13.2.6.4.1; ${doctype} as in struct page. */
enum page_mode page_mode_of(struct str doctype);

#endif
