/* Table of HTML elements by name. */
#ifndef ASSAY_PAGE_TAGS_INTERNAL_H
#define ASSAY_PAGE_TAGS_INTERNAL_H

#include "store/bytes.h"

/* Elements that are kept. Others are only counted. */
/* clang-format off */
#define PAGE_TAGS(X) \
    X(HTML, "html") X(HEAD, "head") X(BODY, "body") X(TITLE, "title") X(META, "meta") \
    X(BASE, "base") X(LINK, "link") X(SCRIPT, "script") X(STYLE, "style") X(A, "a") \
    X(AREA, "area") X(IMG, "img") X(PICTURE, "picture") X(SOURCE, "source") \
    X(VIDEO, "video") X(AUDIO, "audio") X(TRACK, "track") X(IFRAME, "iframe") \
    X(FRAME, "frame") X(EMBED, "embed") X(OBJECT, "object") X(INPUT, "input") \
    X(FORM, "form") X(BUTTON, "button") X(SVG, "svg") X(SVG_IMAGE, "image") \
    X(SVG_USE, "use") X(H1, "h1") X(H2, "h2") X(H3, "h3") X(H4, "h4") X(H5, "h5") \
    X(H6, "h6") X(TEMPLATE, "template")
/* clang-format on */

#define PAGE_TAG(id, name) TAG_##id,
enum page_tag { TAG_OTHER, PAGE_TAGS(PAGE_TAG) TAG_COUNT };
#undef PAGE_TAG

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
