/*
 * Records every change that a process and its children make to files and directories below
 * $POWER_DIR, in order, in the file $POWER_LOG. t/process/power_loss replays the record.
 */
#ifndef ASSAY_T_POWER_RECORDER_H
#define ASSAY_T_POWER_RECORDER_H

#include <stdint.h>

enum power_kind {
    POWER_CREATE = 1, /* a: a file */
    POWER_MKDIR,      /* a */
    POWER_WRITE,      /* a, at, bytes; durable: by itself (O_DSYNC) */
    POWER_TRUNCATE,   /* a, at: the new length */
    POWER_SYNC,       /* a: a file or a directory */
    POWER_RENAME,     /* a becomes b */
    POWER_LINK,       /* a is b, too */
    POWER_UNLINK,     /* a: a file or a directory */
};

/* Then the two names without a NUL, relative to $POWER_DIR, and the bytes. */
struct power_record {
    uint8_t kind, durable;
    uint16_t a_n, b_n;
    uint64_t at, bytes;
};

#endif
