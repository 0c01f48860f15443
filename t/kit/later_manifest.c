/* What a later version's master passes on: a line more than this one's knows. */
#define manifest_write manifest_of_now
#include "core/manifest.c"
#undef manifest_write

int manifest_write(const struct master *m, struct passed *out);

int manifest_write(const struct master *m, struct passed *out)
{
    static const char more[] = "colour blue\n";
    if (manifest_of_now(m, out) != 0)
        return -1;
    int fd = out->fds[0];
    if (lseek(fd, 0, SEEK_END) < 0 || write(fd, more, sizeof(more) - 1) != (ssize_t)sizeof(more) - 1 || lseek(fd, 0, SEEK_SET) != 0) {
        manifest_drop(out);
        return -1;
    }
    return 0;
}
