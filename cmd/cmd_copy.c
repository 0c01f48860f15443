#include "cmd/cmd_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool copy_bytes(int from, int to)
{
    char bytes[4096];
    ssize_t got;
    while ((got = read(from, bytes, sizeof(bytes))) > 0) {
        ssize_t put = write(to, bytes, (size_t)got);
        if (put >= 0 && put < got)
            errno = ENOSPC;
        if (put < got)
            return false;
    }
    return got == 0 && fsync(to) == 0;
}

/* As root: owner and mode of the replaced file or, if there is none, owner of the directory. */
static bool copy_owner(int fd, const char *to)
{
    char copy[PATH_MAX];
    struct stat st;
    if (geteuid() != 0)
        return true;
    if (stat(to, &st) == 0)
        return fchown(fd, st.st_uid, st.st_gid) == 0 && fchmod(fd, st.st_mode & 0777) == 0;
    snprintf(copy, sizeof(copy), "%s", to);
    return stat(dirname(copy), &st) == 0 && fchown(fd, st.st_uid, st.st_gid) == 0;
}

static bool sync_dir_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

bool cmd_same_file(const char *a, const char *b)
{
    FILE *one = fopen(a, "re"), *other = fopen(b, "re");
    bool same = one != NULL && other != NULL;
    for (int x = 0; same && x != EOF;) {
        x = getc(one);
        same = x == getc(other);
    }
    if (one != NULL)
        fclose(one);
    if (other != NULL)
        fclose(other);
    return same;
}

bool cmd_copy_file(const char *from, const char *to)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%.4000s.part", to);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = out >= 0 && copy_owner(out, to) && copy_bytes(in, out) && rename(part, to) == 0 &&
                sync_dir_of(to);
    int error = errno;
    if (out >= 0)
        close(out);
    if (in >= 0)
        close(in);
    if (out >= 0 && !done)
        unlink(part);
    errno = error;
    return done;
}
