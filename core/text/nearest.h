/*
 * How far two names are apart, for "did you mean" in errors. Pure functions.
 */
#ifndef ASSAY_TEXT_NEAREST_H
#define ASSAY_TEXT_NEAREST_H

#include "store/bytes.h"

#define NEAREST_NAME_MAX 31 /* bytes; a longer name is far from every other */

/*
 * nearest_distance(a, b): the least number of edits (insert, delete or replace a byte, or swap two
 * neighbours) that make ${b} of ${a}. ASCII letters are compared without their case.
 */
unsigned nearest_distance(struct str a, struct str b);

/* nearest_is_close(distance, length): is a name of ${length} bytes likely to be a slip? */
static inline bool nearest_is_close(unsigned distance, size_t length)
{
    return distance <= 1 + length / 4;
}

#endif
