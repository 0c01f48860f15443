/*
 * The first pass over a page's HTML: it hands the parser only the markup that the checks need.
 */
#ifndef ASSAY_PAGE_SCAN_INTERNAL_H
#define ASSAY_PAGE_SCAN_INTERNAL_H

#include "store/bytes.h"

/*
 * page_scan(html, doctype, sink):
 * What the parser shall see of ${html}: comments, declarations and the insides of scripts (but JSON-LD), noscript and frames are left out,
 * and so are attributes of elements that are not kept, but for those that hide it, style and lang. A tag is cut at PAGE_TAG_BYTES or PAGE_TAG_ATTRIBUTES, since
 * the parser's cost there is quadratic. Text does not go through the parser, whose cost is by the character: each run of it goes to
 * sink->text, and a comment with the mark it returns stands in its place. A comment with PAGE_MARK_BODY stands where the head is over.
 * ${doctype} and the runs borrow from ${html}. sink->feed gets the markup in pieces and returns false to stop; then so does page_scan.
 */
#define PAGE_TAG_BYTES ((size_t)64 * 1024)
#define PAGE_TAG_ATTRIBUTES 1024
#define PAGE_MARK_BODY '!'

enum {
    RUN_DECODED = 1 << 0, /* character references in it mean what they stand for */
    RUN_SPACED = 1 << 1,  /* white space came before it */
};

struct page_run {
    struct str text;
    unsigned flags;
};

struct page_sink {
    bool (*feed)(void *arg, const char *p, size_t n);
    char (*text)(void *arg, struct page_run run); /* returns the run's mark, a letter */
    void *arg;
};

bool page_scan(struct str html, struct str *doctype, const struct page_sink *sink);

#endif
