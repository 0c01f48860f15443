/* The lock of data_dir: only its holder may change the store. It ends with the process. */
#ifndef ASSAY_BASE_DATA_LOCK_H
#define ASSAY_BASE_DATA_LOCK_H

#include "core/base/holder.h"

/*
 * data_lock(dir): lock ${dir} for this process. The descriptor, or -1 with errno; EWOULDBLOCK:
 * another process holds the lock.
 */
int data_lock(const char *dir);

/* data_holder(dir, out): the process that holds the lock, as text. */
void data_holder(const char *dir, char out[HOLDER_TEXT]);

#endif
