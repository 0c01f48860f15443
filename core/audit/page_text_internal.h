/* Text of a page: decoding and white space. Pure functions. */
#ifndef ASSAY_PAGE_TEXT_INTERNAL_H
#define ASSAY_PAGE_TEXT_INTERNAL_H

#include "core/audit/arena_internal.h"

/*
 * page_decode(text, out): append ${text} with character references decoded (WHATWG HTML, 13.2.5.72
 * on; HTML 4's names).
 */
void page_decode(struct str text, struct buf *out);

/*
 * page_collapse(arena, text): ${text} trimmed, each run of white space as one space, cut at
 * PAGE_TEXT_BYTES.
 */
struct str page_collapse(struct arena *arena, struct str text);
/* page_points(text): code points of ${text} trimmed and collapsed, not cut. */
size_t page_points(struct str text);

/* page_same_language(a, b): both language tags have the same primary language. */
bool page_same_language(struct str a, struct str b);

#endif
