/*
 * Whether the processes of the server may use a file that an option names: tried as the user they
 * become (conf->user), in a child where that is another than we are. A conf_file_fn.
 */
#ifndef ASSAY_CONF_TRY_FILE_H
#define ASSAY_CONF_TRY_FILE_H

#include "core/conf/conf.h"

/*
 * try_file(conf, path, use, why, size): ${use} FILE_APPENDED: it can be appended to, or made;
 * FILE_OF_SECRETS: it can be read, and is a file of signing secrets. False, and what hinders that.
 * Nothing is made or changed.
 */
bool try_file(const struct conf *conf, const char *path, enum conf_file_use use, char *why, size_t size);

#endif
