/* What a later version's master passes on: a line more than this one's knows. */
#define manifest_write manifest_of_now
#include "core/manifest.c"
#undef manifest_write

int manifest_write(const struct master *m);

int manifest_write(const struct master *m)
{
    static const char more[] = "colour blue\n";
    int fd = manifest_of_now(m);
    if (fd < 0 || lseek(fd, 0, SEEK_END) < 0 || write(fd, more, sizeof(more) - 1) != (ssize_t)sizeof(more) - 1 || lseek(fd, 0, SEEK_SET) != 0) {
        close_if(fd);
        return -1;
    }
    return fd;
}
