/*
 * The lock of data_dir: one process may change a store. The lock ends with its process. Any process.
 */
#ifndef ASSAY_BASE_DATA_LOCK_H
#define ASSAY_BASE_DATA_LOCK_H

#include "core/base/holder.h"

/*
 * data_lock(dir): lock ${dir} for this process. The descriptor, or -1 with errno: EWOULDBLOCK where
 * another process holds the lock.
 */
int data_lock(const char *dir);

/* data_holder(dir, out): the process that holds the lock, in words. */
void data_holder(const char *dir, char out[HOLDER_TEXT]);

#endif
