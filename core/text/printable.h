/*
 * Text of strangers for a log line or a terminal. No character of it ends the line, moves the cursor
 * or changes the order in which other characters are shown: control characters (Unicode's Cc: C0,
 * DEL, C1), bidirectional controls (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and line
 * separators (U+2028, U+2029) become \uXXXX, and bytes that are not UTF-8 become U+FFFD.
 *
 * Everything that prints such text goes through here: the error log, the access log, the command
 * line. The API's answers do not: they are no log. Pure.
 */
#ifndef ASSAY_TEXT_PRINTABLE_H
#define ASSAY_TEXT_PRINTABLE_H

#include "store/bytes.h"

/* One character of a text, and the bytes that are printed for it. */
struct printable {
    size_t taken;   /* bytes of the text */
    uint32_t code;  /* the code point; U+FFFD where the bytes are not UTF-8 */
    bool as_itself; /* printed unchanged */
    size_t n;       /* bytes of ${shown} */
    char shown[6];
};

/* printable_next(text, out): the first character of ${text}, which is not empty. */
void printable_next(struct str text, struct printable *out);

/*
 * printable_escape(b, from): replace what ${b} has from byte ${from} on by its printable form. For
 * a line of JSON that is complete: the escapes are JSON's own. Keeps newlines, which end lines there.
 */
void printable_escape(struct buf *b, size_t from);

#endif
