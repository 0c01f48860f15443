/*
 * Backups, restores, checks and rebuilds of a store: what commands do, beside a server or without
 * one.
 */
#ifndef ASSAY_STORE_BACKUP_H
#define ASSAY_STORE_BACKUP_H

#include "store/store.h"

/*
 * store_on_stage(s, stage, arg): store_check and store_backup report each part of their work. A
 * damaged page can end the process inside LMDB; the last stage then tells where.
 */
void store_on_stage(struct store *s, store_stage_fn *stage, void *arg);

/*
 * store_backup(s, dir, progress, arg): write a consistent, compacted copy into the empty directory
 * ${dir}, with fsync. Any process; runs beside the writer.
 */
enum store_status store_backup(struct store *s, const char *dir, store_progress_fn *progress,
                               void *arg);

/*
 * store_copy(s, put, arg): the contents of the data.mdb of a backup, piece by piece in order.
 * ${put}: 0, or an errno, which ends the copy with STORE_IO. Any thread with a struct store. A slow
 * copy keeps pages in use: STORE_FULL: the writer needs them.
 */
typedef int store_copy_fn(void *arg, const void *piece, size_t n);
enum store_status store_copy(struct store *s, store_copy_fn *put, void *arg);

/*
 * store_rebuild(s, all, progress, arg): rebuild the indexes of reports that have segment files;
 * with ${all} everything that follows from records. ${s} is open with STORE_WRITE, and no server
 * runs. ${progress} may be NULL; the total is unknown. STORE_AGAIN: it returned false. What is left
 * then, or after a kill, stays as it was with ${all}; without, the server rebuilds it.
 */
enum store_status store_rebuild(struct store *s, bool all, store_progress_fn *progress, void *arg);

/* store_maintain(s, progress, arg): do all the work of maintenance.h, while no server runs. */
enum store_status store_maintain(struct store *s, store_progress_fn *progress, void *arg);

/*
 * store_keep_replaced(path): give the file the second name PATH.before-restore; a file of that name
 * becomes PATH.before-restore-1, or the next free number. 0, also if there is none, or errno.
 */
int store_keep_replaced(const char *path);
void store_restore_clear(const char *to); /* delete restore.part of a killed restore */

/*
 * store_restore(from, to, progress, arg, why, why_size): make the backup in ${from} the store in
 * ${to}. Checks its records and builds its indexes first, then renames it into place. The replaced
 * data.mdb is kept: store_keep_replaced. No server and no other restore may run: the caller holds
 * the lock of ${to} (core/base/data_lock.h). Works in restore.part below ${to}, after deleting
 * an older one.
 */
enum store_status store_restore(const char *from, const char *to, store_progress_fn *progress,
                                void *arg, char *why, size_t why_size);

/*
 * A restore of a copy that arrives over a network, so that it needs space once.
 * store_receive(to, path, why, why_size): delete restore.part below ${to} and make it. The caller
 * writes the copy as ${path}, with fsync, and then:
 * store_received(from, to, progress, arg, why, why_size): go on as store_restore; ${from}: what
 * sentences call the backup. Without it store_restore_clear deletes the copy.
 */
#define STORE_PATH_BYTES (4096 + 128)
enum store_status store_receive(const char *to, char path[STORE_PATH_BYTES], char *why,
                                size_t why_size);
enum store_status store_received(const char *from, const char *to, store_progress_fn *progress,
                                 void *arg, char *why, size_t why_size);

/*
 * store_check(s, progress, problem, arg, records): check every record against its derived rows and
 * counters, and the reverse. Calls ${problem} with a sentence for each contradiction. Runs beside a
 * writer, with a new snapshot for each batch. STORE_CORRUPT: there were problems.
 */
typedef void store_problem_fn(void *arg, const char *sentence);
enum store_status store_check(struct store *s, store_progress_fn *progress,
                              store_problem_fn *problem, void *arg, uint64_t *records);
/*
 * store_on_lost(s, lost, arg): store_check calls ${lost} for each index of reports that must be
 * rebuilt, possibly several times, with the id for CHANGE_INDEX_LOST: a segment, or 0.
 */
typedef void store_lost_fn(void *arg, uint64_t workspace, uint64_t id);
void store_on_lost(struct store *s, store_lost_fn *lost, void *arg);
/* store_check_records(…): the same without the indexes of reports. */
enum store_status store_check_records(struct store *s, store_progress_fn *progress,
                                      store_problem_fn *problem, void *arg, uint64_t *records);

#endif
