#include "core/base/data_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

int data_lock(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

void data_holder(const char *dir, char out[HOLDER_TEXT])
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/lock", dir);
    holder_text(holder_of_lock(path), out);
}
