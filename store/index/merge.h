/*
 * What the maintenance thread does for indexes of reports. Private to store/.
 */
#ifndef ASSAY_STORE_MERGE_H
#define ASSAY_STORE_MERGE_H

#include "store/index/builder_internal.h"

/*
 * merge_make(b, out): the log of b->workspace and, of its segments, those of a like size become new
 * segments; ${out} is for CHANGE_INDEX_INSTALL. The snapshot lasts as long as the log is read.
 * STORE_NOT_FOUND: nothing is due. STORE_REBUILDING: it is to be rebuilt.
 */
enum store_status merge_make(struct builder *b, struct buf *out);

/*
 * The building of all indexes that are INDEX_REBUILDING, from the heads of the reports: a pass over
 * the heads for each 4,096 workspaces.
 *
 * rebuild_new(s): NULL: memory is short. rebuild_step(r, install, arg): some thousand heads, or the
 * installing of one index, with its builder and what CHANGE_INDEX_INSTALL takes. STORE_NOT_FOUND:
 * all are built. After any other failure, rebuild_free(r), which deletes the files that were not
 * installed.
 */
typedef enum store_status rebuild_fn(void *arg, struct builder *b, struct str install);
struct rebuild *rebuild_new(struct store *s);
enum store_status rebuild_step(struct rebuild *r, rebuild_fn *install, void *arg);
void rebuild_free(struct rebuild *r);

/*
 * sweep_files(s, pending): delete segment files that no manifest names and no reader can need.
 * ${pending}: what it saw before; an empty buffer at first. *more: some are not to be deleted yet.
 * No file may be written meanwhile.
 */
enum store_status sweep_files(struct store *s, struct buf *pending, bool *more);

/*
 * missing_files(s, each, arg): ${each} of every segment that a manifest names and that has no file
 * of its size.
 */
typedef void missing_file_fn(void *arg, uint64_t workspace, uint64_t number);
enum store_status missing_files(struct store *s, missing_file_fn *each, void *arg);

#endif
