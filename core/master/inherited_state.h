/*
 * What a master passes on to the one that succeeds it (upgrade.h): descriptors, and a text of a line for each thing, in memory, that names
 * them by their places among them. The master's alone.
 */
#ifndef ASSAY_MASTER_INHERITED_STATE_H
#define ASSAY_MASTER_INHERITED_STATE_H

#include "core/master/master_internal.h"

/* inherited_state_write(m, out): the first of *out is the text's; the others are open as long as ${m} has them. 0, or -1 with errno. */
int inherited_state_write(const struct master *m, struct passed *out);
/* inherited_state_drop(passed): close the text. Once more does nothing. */
void inherited_state_drop(struct passed *passed);

/*
 * inherited_state_read(m, passed): into m->elder, m->data_lock, m->run_lock and m->writer_fd; takes over ${passed}, as it came. 0, or -1 with the
 * reason logged: what it names is not there, or these two versions or configurations cannot follow each other.
 */
int inherited_state_read(struct master *m, struct passed *passed);

/* inherited_state_refuse(why): log it; -1. */
int inherited_state_refuse(const char *why);

#endif
