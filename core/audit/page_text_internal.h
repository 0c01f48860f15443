/*
 * Texts of a page. Pure functions.
 */
#ifndef ASSAY_PAGE_TEXT_INTERNAL_H
#define ASSAY_PAGE_TEXT_INTERNAL_H

#include "core/audit/arena_internal.h"

/* page_decode(text, out): append ${text} with its character references as what they stand for (WHATWG HTML, 13.2.5.72 on; HTML 4's names). */
void page_decode(struct str text, struct buf *out);

/* page_collapse(arena, text): ${text} trimmed, white space runs one space, as on the screen; cut at PAGE_TEXT_BYTES. */
struct str page_collapse(struct arena *arena, struct str text);
/* page_points(text): how many code points ${text} has so trimmed and collapsed, uncut. */
size_t page_points(struct str text);

/* page_same_language(a, b): two language tags begin with the same language. */
bool page_same_language(struct str a, struct str b);

#endif
