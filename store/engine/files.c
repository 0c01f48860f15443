#include "store/engine/files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int store_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = fsync(fd);
    close(fd);
    return rc;
}

bool store_write_all(int fd, const void *bytes, size_t n)
{
    enum { STEP = 4 << 20 };
    const char *p = bytes;
    while (n > 0) {
        ssize_t wrote = write(fd, p, n < STEP ? n : STEP);
        if (wrote < 0 && errno != EINTR)
            return false;
        if (wrote > 0) {
            p += wrote;
            n -= (size_t)wrote;
        }
    }
    return true;
}
