/*
 * A disk that replays what power_recorder.h recorded, and what a power loss leaves of it: all that
 * is synced, and a random part of the rest.
 */
#ifndef ASSAY_T_POWER_DISK_H
#define ASSAY_T_POWER_DISK_H

#include "t/kit/power_recorder.h"

/* disk_apply(r, a, b, bytes): the next record, its names and its bytes, which stay in memory. */
void disk_apply(const struct power_record *r, const char *a, const char *b, const uint8_t *bytes);

/*
 * disk_lay_out(dir, seed): writes the files as a power loss leaves them into ${dir}. Of the writes
 * that are not synced, a random part is lost: by sector of a write, and by directory entry.
 */
void disk_lay_out(const char *dir, uint64_t *seed);

#endif
