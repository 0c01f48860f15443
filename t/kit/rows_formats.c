/* For programs of tests: a version of Assay that knows other formats of row sets. */
#include "store/rows.h"

const struct rows_formats store_rows_formats = {.oldest = ROWS_OLDEST, .newest = ROWS_NEWEST};
