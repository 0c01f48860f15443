/*
 * Maintenance: background work of a thread of the writer process. It reads the store and writes
 * segment files; the loop, which alone changes the store, applies its changes.
 *
 *   EVENT_MAINTENANCE -> maintenance_step, round robin:
 *     deleted projects, workspaces   find reports -> CHANGE_PURGE_DELETED, in batches
 *     indexes that are due           merge or rebuild -> CHANGE_INDEX_INSTALL, CHANGE_INDEX_SWEEP
 *     unnamed segment files          delete
 *
 * All work to do is known from the store, so a killed process leaves nothing to repair: files that
 * were not installed have no name in it.
 */
#ifndef ASSAY_STORE_MAINTENANCE_H
#define ASSAY_STORE_MAINTENANCE_H

#include "store/store.h"

struct maintenance;

/* maintenance_carry_fn(arg, change): have the loop apply the change in a transaction of its own. */
typedef struct store_answer maintenance_carry_fn(void *arg, const struct store_change *change);

/*
 * maintenance_new(s, carry, ends, arg): ${s}, a reader, stays the caller's and is used by nobody
 * else. ${ends}: must the thread end? Then a step returns soon. NULL: out of memory.
 */
struct maintenance *maintenance_new(struct store *s, maintenance_carry_fn *carry,
                                    store_stop_fn *ends, void *arg);
void maintenance_free(struct maintenance *m);

enum maintenance_result {
    MAINTENANCE_MORE,   /* it did something; there may be more */
    MAINTENANCE_IDLE,   /* nothing to do until EVENT_MAINTENANCE */
    MAINTENANCE_LATER,  /* readers still use files: try again in a second */
    MAINTENANCE_FAILED, /* some work failed (maintenance_why); all else is done */
};
/* maintenance_step(m, again): ${again}: retry what failed; the first step always does. */
enum maintenance_result maintenance_step(struct maintenance *m, bool again);
const char *maintenance_why(const struct maintenance *m);

/*
 * maintenance_progress(m, out): the current work: "purging", "merging" or "rebuilding" with its
 * number of reports; "": none. Any thread.
 */
void maintenance_progress(struct maintenance *m, struct store_maintenance_status *out);

#endif
