/*
 * Dates in the time zone they were written in. Worker processes. The C library has one time zone a
 * process, so zone_date with a name is for one thread alone: the reader thread.
 */
#ifndef ASSAY_ZONE_H
#define ASSAY_ZONE_H

#include "store/bytes.h"

#define ZONE_NAME_MAX 64

/* zone_known(name): an IANA name ("Europe/Berlin", "UTC") that this host knows. */
bool zone_known(struct str name);

/*
 * zone_date(text, name, out): ${text} as milliseconds since the epoch: RFC 3339, or the same
 * without its zone or with a space for its T, or the date alone, which is its midnight: these in
 * the zone ${name} (empty: UTC). An hour that the zone skipped is moved by as much; one that it had
 * twice is the first. False where it is no date, or no zone that is known.
 */
bool zone_date(struct str text, struct str name, int64_t *out);

#endif
