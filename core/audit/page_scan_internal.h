/*
 * First pass over the HTML: passes to the parser only the markup that checks need, and keeps text
 * away from it. libxml2 costs time per character of text, and quadratic time for long tags.
 */
#ifndef ASSAY_PAGE_SCAN_INTERNAL_H
#define ASSAY_PAGE_SCAN_INTERNAL_H

#include "store/bytes.h"

/*
 * page_scan(html, doctype, sink):
 * Drops comments, declarations, the content of scripts (except JSON-LD), noscript and frames, and
 * attributes of elements that are only counted (except hidden, aria-hidden, style and lang). Cuts a
 * tag at PAGE_TAG_BYTES or PAGE_TAG_ATTRIBUTES. Passes each run of text to sink->text, and a
 * comment with the mark it returns to the parser; a comment with PAGE_MARK_BODY tells where the
 * head ends. ${doctype} and the runs borrow from ${html}. sink->feed gets the markup in pieces;
 * when it returns false, page_scan stops and returns false.
 */
#define PAGE_TAG_BYTES ((size_t)64 * 1024)
#define PAGE_TAG_ATTRIBUTES 1024
#define PAGE_MARK_BODY '!'

enum {
    RUN_DECODED = 1 << 0,     /* contains character references */
    RUN_AFTER_SPACE = 1 << 1, /* white space precedes it */
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
