#include "store/rows.h"

/* Alone in this file, so that a test program has others: t/kit/rows_formats.c. */
const struct rows_formats store_rows_formats = {.oldest = 1, .newest = 1};
