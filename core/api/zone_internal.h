/*
 * Dates with a time zone. Worker processes. The C library has one time zone per process, so only
 * one thread, that of the thread pool, may call zone_date with a name.
 */
#ifndef ASSAY_ZONE_H
#define ASSAY_ZONE_H

#include "store/bytes.h"

#define ZONE_NAME_MAX 64

/* zone_known(name): true if this host knows the IANA name, such as "Europe/Berlin" or "UTC". */
bool zone_known(struct str name);

/*
 * zone_date(text, name, out): parse ${text} into milliseconds since the epoch: RFC 3339; or, in the
 * zone ${name} (empty: UTC), the same without an offset, with a space for the T, or a date alone,
 * which is its midnight. A time that the zone skipped is moved forward; of a time that occurs
 * twice, the first counts. False if the date is invalid or the zone unknown.
 */
bool zone_date(struct str text, struct str name, int64_t *out);

#endif
