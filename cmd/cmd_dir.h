/* Creates a directory with its parents. */
#ifndef ASSAY_CMD_DIR_H
#define ASSAY_CMD_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct cmd_dir {
    char path[PATH_MAX];
    size_t kept; /* length of the part of the path that existed before */
};

/*
 * cmd_dir_make(path, dir): create ${path} and its missing parents, with mode 0700, and sync them.
 * False with errno: nothing is created.
 * cmd_dir_unmake(dir): remove the created directories that are empty.
 */
bool cmd_dir_make(const char *path, struct cmd_dir *dir);
void cmd_dir_unmake(struct cmd_dir *dir);

#endif
