/* The work of the merge thread on indexes: merge, rebuild, delete files. */
#ifndef ASSAY_STORE_INDEX_MERGE_H
#define ASSAY_STORE_INDEX_MERGE_H

#include "store/index/builder.h"

/*
 * merge_make(b, out): merge the log of b->workspace, and segments of similar size, into new
 * segments; ${out} is for CHANGE_INDEX_INSTALL. The transaction lasts while the log is read.
 * STORE_NOT_FOUND: nothing is due. STORE_REBUILDING: it must be rebuilt.
 */
enum store_status merge_make(struct builder *b, struct buf *out);

/*
 * Rebuild all indexes that are INDEX_REBUILDING from the heads of the reports, in a pass over the
 * heads for each 4,096 workspaces.
 *
 * rebuild_new(s, every): NULL: out of memory. ${every}: rebuild the indexes of all workspaces;
 * ${install} must apply CHANGE_INDEX_LOST first, in the same transaction, so that an index is whole
 * at every moment. Nobody else may change the store meanwhile.
 *
 * rebuild_step(r, install, arg): read some thousand heads, or install one index, with its builder
 * and the data of CHANGE_INDEX_INSTALL. STORE_NOT_FOUND: all are built. After any other failure
 * call rebuild_free(r), which deletes files that were not installed.
 */
typedef enum store_status rebuild_fn(void *arg, struct builder *b, struct str install);
struct rebuild *rebuild_new(struct store *s, bool every);
enum store_status rebuild_step(struct rebuild *r, rebuild_fn *install, void *arg);
void rebuild_free(struct rebuild *r);

/*
 * sweep_files(s, pending, more): delete segment files that no manifest names and no reader can
 * need. ${pending}: state between calls; first an empty buffer. *more: some cannot be deleted yet.
 * No file may be written meanwhile.
 */
enum store_status sweep_files(struct store *s, struct buf *pending, bool *more);

/*
 * missing_files(s, each, arg): ${each} of every segment that a manifest names without a file of its
 * size.
 */
typedef void missing_file_fn(void *arg, uint64_t workspace, uint64_t number);
enum store_status missing_files(struct store *s, missing_file_fn *each, void *arg);

#endif
