/* The edit distance of two names, for "did you mean" in errors. Pure functions. */
#ifndef ASSAY_TEXT_NEAREST_H
#define ASSAY_TEXT_NEAREST_H

#include "store/bytes.h"

#define NEAREST_NAME_MAX 31 /* bytes; a longer name is far from every other */

/*
 * nearest_distance(a, b): the number of edits (insert, delete or replace a byte, or swap two
 * neighbours) from ${a} to ${b}. The case of ASCII letters is ignored.
 */
unsigned nearest_distance(struct str a, struct str b);

/* nearest_is_close(distance, length): a name of ${length} bytes is likely to be a typo. */
static inline bool nearest_is_close(unsigned distance, size_t length)
{
    return distance <= 1 + length / 4;
}

#endif
