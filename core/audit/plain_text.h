/*
 * HTML that somebody sent, as the plain text that people read: no markup, scripts, styles or comments, entities decoded. It is read by the
 * parser of pages (page.h), so that hostile nesting and the like meet what pages meet. Workers, in any thread; its time is bounded.
 */
#ifndef ASSAY_PLAIN_TEXT_H
#define ASSAY_PLAIN_TEXT_H

#include "store/bytes.h"

#define PLAIN_HTML_MAX ((size_t)512 * 1024) /* bytes of HTML that are read; what follows is left out */

#define PLAIN_BUDGET_US 100000 /* of the processor's time for what belongs together: an item's texts */

/* plain_text_start(): once, before the process starts threads that read HTML. */
void plain_text_start(void);

enum plain_status { PLAIN_OK, PLAIN_TOO_COMPLEX, PLAIN_NO_MEMORY };

/*
 * plain_text(html, max, left_us, out): append the text of ${html} (UTF-8, a fragment or a whole page), at most ${max} bytes of it, cut between code
 * points. White space is collapsed, to a line break where it holds one or where blocks meet; other control characters count as white space.
 * What reading takes is taken off ${left_us}, which the texts of one item share; what would take more is PLAIN_TOO_COMPLEX.
 */
enum plain_status plain_text(struct str html, size_t max, uint64_t *left_us, struct buf *out);

#endif
