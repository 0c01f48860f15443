/*
 * The maintainer: the thread that merges and rebuilds indexes of reports, finds what a purge
 * deletes, and deletes files that are not in use (store/maintenance.h), beside the loop of the
 * writer, which carries out its changes (writer_thread.h).
 *
 *   commit -> EVENT_MAINTENANCE -> writer_thread_wake -> the thread steps
 */
#ifndef ASSAY_MAINTAINER_H
#define ASSAY_MAINTAINER_H

#include "core/writer_thread.h"

struct maintainer;

/* maintainer_new(store): NULL: the thread cannot start, and the log says why. */
struct maintainer *maintainer_new(struct store *store);
/*
 * maintainer_end(m): as writer_thread_end. The files of a step that is left have no name, so the
 * next maintainer deletes them. maintainer_free(m): after the end.
 */
bool maintainer_end(struct maintainer *m);
void maintainer_free(struct maintainer *m);
struct writer_thread *maintainer_thread(struct maintainer *m);

/* maintainer_progress(m, out): as maintenance_progress. */
void maintainer_progress(struct maintainer *m, struct store_maintenance_status *out);

#endif
