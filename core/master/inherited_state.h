/*
 * What the old master passes to the new one (upgrade.h): descriptors, and a text in memory, a line
 * for each thing, that names descriptors by their index. The text is the first descriptor.
 */
#ifndef ASSAY_MASTER_INHERITED_STATE_H
#define ASSAY_MASTER_INHERITED_STATE_H

#include "core/master/parts_internal.h"

/*
 * inherited_state_write(m, out): the descriptors but the text's stay the master's. 0, or -1 with
 * errno. inherited_state_drop(passed): close the text; a second call does nothing.
 */
int inherited_state_write(const struct master *m, struct passed_fds *out);
void inherited_state_drop(struct passed_fds *passed);

/*
 * inherited_state_read(m, passed): set m->upgrade.old_master, the locks and m->writer_fd; takes
 * over ${passed}. 0, or -1 after it has logged why: something is missing, or the versions or
 * configurations do not fit together.
 */
int inherited_state_read(struct master *m, struct passed_fds *passed);

/* inherited_state_refuse(why): log "upgrade refused: ..."; -1. */
int inherited_state_refuse(const char *why);

#endif
