/* Can the processes of the server use a file that an option names? A conf_file_fn. */
#ifndef ASSAY_PROCESS_TRY_FILE_H
#define ASSAY_PROCESS_TRY_FILE_H

#include "core/conf/conf.h"

/*
 * try_file(conf, path, use, why, size): as the user that the processes become (conf->user).
 * FILE_APPENDED: it can be appended to, or created; FILE_OF_SECRETS: it can be read, and holds
 * signing secrets. False, with a sentence in ${why}. Nothing is created or changed.
 */
bool try_file(const struct conf *conf, const char *path, enum conf_file_use use, char *why,
              size_t size);

#endif
