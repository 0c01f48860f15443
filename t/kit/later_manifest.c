/* The inherited state of a later version: it has one line that this version does not know. */
#define inherited_state_write manifest_of_now
#include "core/master/inherited_state.c"
#undef inherited_state_write

int inherited_state_write(const struct master *m, struct passed_fds *out);

int inherited_state_write(const struct master *m, struct passed_fds *out)
{
    static const char more[] = "colour blue\n";
    if (manifest_of_now(m, out) != 0)
        return -1;
    int fd = out->fds[0];
    if (lseek(fd, 0, SEEK_END) < 0 ||
        write(fd, more, sizeof(more) - 1) != (ssize_t)sizeof(more) - 1 ||
        lseek(fd, 0, SEEK_SET) != 0) {
        inherited_state_drop(out);
        return -1;
    }
    return 0;
}
