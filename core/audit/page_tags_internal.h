/*
 * What is known of HTML's elements by their names: one table, a row each, for all that read a page.
 */
#ifndef ASSAY_PAGE_TAGS_INTERNAL_H
#define ASSAY_PAGE_TAGS_INTERNAL_H

#include "core/audit/page_internal.h"

/* What stands between an element's tags. */
enum page_content {
    CONTENT_MARKUP,
    CONTENT_DROPPED,  /* nothing of it is looked at */
    CONTENT_DECODED,  /* text with character references, and no markup */
    CONTENT_VERBATIM, /* text as it is */
    CONTENT_REST,     /* the rest of the document, as text */
    CONTENT_SCRIPT,   /* looked at when it is JSON-LD */
    CONTENT_STYLE,
};

enum {
    PAGE_TAG_INLINE = 1 << 0, /* within a line of text: it parts no words */
    PAGE_TAG_IN_HEAD = 1 << 1 /* may stand in the head; any other ends it (WHATWG HTML, 13.2.6.4.4) */
};

struct page_tag_info {
    const char *name;
    enum page_tag tag; /* TAG_OTHER: only counted */
    unsigned flags;
    enum page_content content;
    unsigned deprecated; /* its place in page_deprecated_names, from 1; 0 for none */
};

/* page_tag_find(name): the row of ${name}, in any case; NULL for a name of which nothing is known. */
const struct page_tag_info *page_tag_find(struct str name);

#endif
