/*
 * Checks whether the server can use a file that an option names, as the user that it switches to
 * (conf->user): in a child process if that is another user. A conf_file_fn.
 */
#ifndef ASSAY_PROCESS_TRY_FILE_H
#define ASSAY_PROCESS_TRY_FILE_H

#include "core/conf/conf.h"

/*
 * try_file(conf, path, use, why, size): with FILE_APPENDED, whether the file can be appended to or
 * created; with the other uses, whether it can be read and has signing secrets, a key or a
 * password. False, and the reason in ${why}. Nothing is created or changed.
 */
bool try_file(const struct conf *conf, const char *path, enum conf_file_use use, char *why,
              size_t size);

#endif
