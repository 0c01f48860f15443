/* Table of HTML elements by name. */
#ifndef ASSAY_PAGE_TAGS_INTERNAL_H
#define ASSAY_PAGE_TAGS_INTERNAL_H

#include "core/audit/page_internal.h"

/* How to read the content of an element. */
enum page_content {
    CONTENT_MARKUP,
    CONTENT_DROPPED,  /* ignored */
    CONTENT_DECODED,  /* text with character references, no markup */
    CONTENT_VERBATIM, /* raw text */
    CONTENT_REST,     /* the rest of the document, as raw text */
    CONTENT_SCRIPT,   /* kept if it is JSON-LD */
    CONTENT_STYLE,
};

enum {
    PAGE_TAG_INLINE = 1 << 0, /* does not separate words */
    /* Allowed in the head; any other element ends it (WHATWG HTML, 13.2.6.4.4). */
    PAGE_TAG_IN_HEAD = 1 << 1
};

struct page_tag_info {
    const char *name;
    enum page_tag tag; /* TAG_OTHER: only counted */
    unsigned flags;
    enum page_content content;
    unsigned deprecated; /* index in page_deprecated_names plus 1; 0: not deprecated */
};

/* page_tag_find(name): the row of ${name}, in any case; NULL if unknown. */
const struct page_tag_info *page_tag_find(struct str name);

#endif
