#include "core/shm/shm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(int fd, size_t size, int protection)
{
    void *p = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *shm_file_create(const char *path, size_t size, mode_t mode)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return NULL;
    void *p = NULL;
    int error = posix_fallocate(fd, 0, (off_t)size);
    if (error == 0 && (p = map(fd, size, PROT_READ | PROT_WRITE)) == NULL)
        error = errno;
    close(fd);
    if (p == NULL) {
        unlink(path);
        errno = error;
    }
    return p;
}

void *shm_file_open(const char *path, size_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *p = NULL;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)size)
        p = map(fd, size, PROT_READ);
    else
        errno = EPROTO;
    int error = errno;
    close(fd);
    errno = error;
    return p;
}

void shm_file_close(const void *p, size_t size)
{
    if (p != NULL)
        munmap((void *)(uintptr_t)p, size);
}
