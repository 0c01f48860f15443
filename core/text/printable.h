/*
 * Untrusted text for a log line or a terminal. Control characters (Unicode's Cc: C0, DEL, C1),
 * bidirectional controls (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and line separators
 * (U+2028, U+2029) become \uXXXX, and bytes that are not UTF-8 become U+FFFD, so that no text ends
 * the line, moves the cursor or reorders what is shown.
 *
 * The error log, the access log and the command line print such text only through here. API
 * responses do not use it. Pure functions.
 */
#ifndef ASSAY_TEXT_PRINTABLE_H
#define ASSAY_TEXT_PRINTABLE_H

#include "store/bytes.h"

/* A character and its printable form. */
struct printable {
    size_t taken;   /* bytes of the text */
    uint32_t code;  /* code point; U+FFFD: not UTF-8 */
    bool as_itself; /* printed unchanged */
    size_t n;       /* bytes of ${shown} */
    char shown[6];
};

/* printable_next(text, out): the first character of ${text}, which must not be empty. */
void printable_next(struct str text, struct printable *out);

/*
 * printable_escape(b, from): replace the bytes of ${b} from ${from} on by their printable form,
 * except newlines. The escapes are valid in JSON strings.
 */
void printable_escape(struct buf *b, size_t from);

#endif
