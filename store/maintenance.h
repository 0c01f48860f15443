/*
 * Maintenance: what a thread of the writer's process does beside the loop. It reads the store and
 * writes segment files; the loop, which alone changes the store, carries out its changes.
 *
 *   EVENT_MAINTENANCE -> maintenance_step, in turns:
 *     dying projects and workspaces   find reports -> CHANGE_PURGE_DELETED, in batches
 *     indexes that are due            merge or rebuild -> CHANGE_INDEX_INSTALL,
 *                                     CHANGE_INDEX_SWEEP
 *     segment files without a name    delete
 *
 * All that is to be done is known from the store, so a process that was killed leaves nothing to
 * mend: files that were not installed have no name.
 */
#ifndef ASSAY_STORE_MAINTENANCE_H
#define ASSAY_STORE_MAINTENANCE_H

#include "store/store.h"

struct maintenance;

/* maintenance_carry_fn(arg, change): have the loop carry it out in a transaction of its own. */
typedef struct store_answer maintenance_carry_fn(void *arg, const struct store_change *change);

/*
 * maintenance_new(s, carry, ends, arg): ${s}, a reader, is used by this alone, and stays the
 * caller's. ${ends}: is the thread to end? Then a step returns soon. NULL: memory is short.
 */
struct maintenance *maintenance_new(struct store *s, maintenance_carry_fn *carry,
                                    store_pause_fn *ends, void *arg);
void maintenance_free(struct maintenance *m);

enum maintenance_result {
    MAINTENANCE_MORE,   /* something was done; there may be more */
    MAINTENANCE_IDLE,   /* nothing is to be done until EVENT_MAINTENANCE */
    MAINTENANCE_LATER,  /* files are still in use by readers: try again in a second */
    MAINTENANCE_FAILED, /* some of it failed, maintenance_why, and all else is done */
};
/* maintenance_step(m, again): ${again}: try again what failed before; the first one does. */
enum maintenance_result maintenance_step(struct maintenance *m, bool again);
const char *maintenance_why(const struct maintenance *m);

/*
 * maintenance_progress(m, out): what is under way: "purging", "merging" or "rebuilding" with its
 * reports; "": nothing. Any thread.
 */
void maintenance_progress(struct maintenance *m, struct store_maintenance_status *out);

#endif
