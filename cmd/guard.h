/*
 * Runs work on a store that may be damaged in a child process: in LMDB, a damaged page can crash
 * the process. The command survives, reports where it crashed and what to do, and cleans up.
 */
#ifndef ASSAY_GUARD_H
#define ASSAY_GUARD_H

#include "cmd/cmd.h"

struct guard {
    const char *refused;           /* the result of a crash, such as "no backup was made" */
    const char *path;              /* of the store or the backup */
    const char *advice;            /* what to do next; a sentence */
    void (*tidy)(struct cmd *cmd); /* cleans up after a crash; may be NULL */
};

/*
 * guard_run(cmd, guard, work): run ${work} in a child process. Returns its exit status, or
 * CMD_REFUSED after a crash. INT and TERM are passed on to the child.
 */
int guard_run(struct cmd *cmd, const struct guard *guard, int (*work)(struct cmd *cmd));

/* guard_at(arg, what): note the current step, for the message about a crash (store_stage_fn). */
void guard_at(void *arg, const char *what);

#endif
