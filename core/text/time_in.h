/*
 * Times coming in. (Those going out are json_out.h's.) A pure function, any process.
 */
#ifndef ASSAY_TEXT_TIME_IN_H
#define ASSAY_TEXT_TIME_IN_H

#include "store/bytes.h"

/* time_read(text): RFC 3339 as milliseconds since the epoch; 0 for anything else. */
int64_t time_read(struct str text);

#endif
