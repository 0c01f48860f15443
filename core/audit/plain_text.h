/*
 * Plain text of HTML that a client sent: no markup, scripts, styles or comments; character
 * references decoded. Uses the parser of pages, with its limits. Any thread of a worker; CPU time
 * is bounded.
 */
#ifndef ASSAY_PLAIN_TEXT_H
#define ASSAY_PLAIN_TEXT_H

#include "store/bytes.h"

#define PLAIN_HTML_MAX ((size_t)512 * 1024) /* bytes of HTML read; the rest is ignored */

#define PLAIN_BUDGET_US 100000 /* CPU time for all texts of one item */

/* plain_text_start(): call once, before the process starts threads that parse HTML. */
void plain_text_start(void);

enum plain_status { PLAIN_OK, PLAIN_TOO_COMPLEX, PLAIN_NO_MEMORY };

/*
 * plain_text(html, max, left_us, out): append the text of ${html} (UTF-8, a fragment or a whole
 * page), at most ${max} bytes, cut between code points. White space is collapsed to a space, or to
 * a newline where it contains one or where blocks meet; control characters count as white space.
 * The CPU time used is subtracted from ${left_us}, which all texts of an item share;
 * PLAIN_TOO_COMPLEX when it is used up.
 */
enum plain_status plain_text(struct str html, size_t max, uint64_t *left_us, struct buf *out);

#endif
