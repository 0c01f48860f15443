/* A directory with its parents, for what a command writes. */
#ifndef ASSAY_CMD_DIR_H
#define ASSAY_CMD_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct cmd_dir {
    char path[PATH_MAX];
    size_t kept; /* bytes of path that were there before; its length where all of it was */
};

/*
 * cmd_dir_make(path, dir): make ${path} and the parents that it lacks, each with mode 0700 and on
 * the disk when this returns. False: errno says why, and nothing is left of it.
 * cmd_dir_unmake(dir): remove what was made, as far as it is empty.
 */
bool cmd_dir_make(const char *path, struct cmd_dir *dir);
void cmd_dir_unmake(struct cmd_dir *dir);

#endif
