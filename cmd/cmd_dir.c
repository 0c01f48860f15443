#include "cmd/cmd_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sync the directory that contains the first ${n} bytes of ${path}. */
static bool sync_parent(char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    char end = path[n];
    path[n] = '\0';
    int fd = open(n == 0 ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    path[n] = end;
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

/* Create the directory of the first ${n} bytes of the path. */
static bool make_one(struct cmd_dir *dir, size_t n)
{
    char end = dir->path[n];
    dir->path[n] = '\0';
    bool made = mkdir(dir->path, 0700) == 0;
    bool good = (made && sync_parent(dir->path, n)) || (!made && errno == EEXIST);
    dir->path[n] = end;
    if (!made && good)
        dir->kept = n;
    return good;
}

bool cmd_dir_make(const char *path, struct cmd_dir *dir)
{
    size_t n = strlen(path);
    if (n >= sizeof(dir->path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(dir->path, path, n + 1);
    while (n > 1 && dir->path[n - 1] == '/')
        dir->path[--n] = '\0';
    dir->kept = 0;
    bool good = true;
    for (size_t i = 1; i <= n && good; i++)
        if ((dir->path[i] == '/' || dir->path[i] == '\0') && dir->path[i - 1] != '/')
            good = make_one(dir, i);
    int error = errno;
    if (!good)
        cmd_dir_unmake(dir);
    errno = error;
    return good;
}

void cmd_dir_unmake(struct cmd_dir *dir)
{
    for (size_t n = strlen(dir->path); n > dir->kept; n--) {
        if (dir->path[n] != '/' && dir->path[n] != '\0')
            continue;
        dir->path[n] = '\0';
        if (n > 0 && dir->path[n - 1] != '/')
            rmdir(dir->path); /* fails if it is not empty */
    }
}
