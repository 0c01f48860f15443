/* Reads times; json_out.h writes them. Pure, any process. */
#ifndef ASSAY_TEXT_TIME_IN_H
#define ASSAY_TEXT_TIME_IN_H

#include "store/bytes.h"

/* time_read(text): an RFC 3339 time in milliseconds since the epoch; 0: anything else. */
int64_t time_read(struct str text);

#endif
