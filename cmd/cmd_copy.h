/* Copies and compares small files. */
#ifndef ASSAY_CMD_COPY_H
#define ASSAY_CMD_COPY_H

#include <stdbool.h>

/*
 * cmd_copy_file(from, to): copy a file with mode 0600, replace ${to} atomically and sync. As root,
 * the copy gets owner and mode of the file that it replaces or, if there is none, the owner of the
 * directory. False with errno: ${to} is unchanged.
 */
bool cmd_copy_file(const char *from, const char *to);

/* cmd_same_file(a, b): whether both files exist and have the same contents. */
bool cmd_same_file(const char *a, const char *b);

#endif
