#include "core/process/try_file.h"

#include "core/auth/secret_file.h"
#include "core/auth/signing_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0 or an errno. Not blocking: a FIFO without a reader is refused. */
static int try_append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno != ENOENT)
        return errno;
    char dir[4096];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static int try_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int try_here(const char *path, enum conf_file_use use)
{
    return use == FILE_APPENDED ? try_append(path) : try_read(path);
}

static int try_as(const struct passwd *user, const char *path, enum conf_file_use use)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
            setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
            _exit(errno);
        _exit(try_here(path, use));
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

bool try_file(const struct conf *conf, const char *path, enum conf_file_use use, char *why,
              size_t size)
{
    const char *user = geteuid() != 0 || conf->user == NULL ? "" : conf->user;
    const struct passwd *who = user[0] == '\0' ? NULL : getpwnam(user);
    if (user[0] != '\0' && who == NULL)
        return true; /* the start reports the unknown user */
    int error = who == NULL ? try_here(path, use) : try_as(who, path, use);
    if (error != 0) {
        snprintf(why, size,
                 "cannot be opened for %s%s%s: %s; give the user of the server access, or set "
                 "another file",
                 use == FILE_APPENDED ? "appending" : "reading", who == NULL ? "" : " by user ",
                 user, strerror(error));
        return false;
    }
    if (use == FILE_APPENDED)
        return true;
    uint8_t key[SECRET_FILE_KEY];
    char password[SECRET_FILE_PASSWORD];
    struct signing_keys *secrets;
    bool good;
    switch (use) {
    case FILE_OF_KEY:
        good = secret_file_key(path, key, why, size);
        explicit_bzero(key, sizeof(key));
        return good;
    case FILE_OF_PASSWORD:
        good = secret_file_password(path, password, why, size);
        explicit_bzero(password, sizeof(password));
        return good;
    default:
        secrets = signing_keys_open(path, why, size);
        signing_keys_free(secrets);
        return secrets != NULL;
    }
}
