/*
 * Work on a store that may be damaged, in a child process: inside LMDB a damaged page can end the
 * process by a signal. The command survives it, says where it was and what to do, and tidies up.
 */
#ifndef ASSAY_GUARD_H
#define ASSAY_GUARD_H

#include "cmd.h"

/* What a guarded command says and does when its work died. */
struct guard {
    const char *refused;           /* "no backup was made" */
    const char *path;              /* of the store or the backup */
    const char *advice;            /* what to do next: a sentence */
    void (*tidy)(struct cmd *cmd); /* NULL: nothing to tidy up */
};

/*
 * guard_run(cmd, guard, work): ${work} in a child process; its exit status, or CMD_REFUSED where a
 * signal ended it. Signals that stop the command reach the child.
 */
int guard_run(struct cmd *cmd, const struct guard *guard, int (*work)(struct cmd *cmd));

/* guard_at(arg, what): the child is at this part of its work; a store_stage_fn. ${arg} is not used. */
void guard_at(void *arg, const char *what);

#endif
