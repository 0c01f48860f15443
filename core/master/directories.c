#include "core/master/directories.h"

#include "core/auth/signing_keys.h"
#include "core/base/data_lock.h"
#include "core/base/log.h"
#include "core/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int directory_refuse(const char *what, const char *path, const char *reason)
{
    log_error("%s %s: %s", what, path, reason);
    return -1;
}

static int make(const struct conf *conf, const char *what, const char *path, mode_t mode)
{
    uid_t uid;
    gid_t gid;
    struct stat st;
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST)
        return directory_refuse(what, path, strerror(errno));
    if (made && process_user(conf, &uid, &gid) && chown(path, uid, gid) != 0)
        return directory_refuse(what, path, strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return directory_refuse(what, path, "is not a directory");
    return 0;
}

int directories_make(const struct conf *conf)
{
    if (make(conf, "data_dir", conf->data_dir, 0700) != 0)
        return -1;
    return make(conf, "run_dir", conf->run_dir, 0755);
}

static void refuse_locked(const char *what, const char *path)
{
    char who[HOLDER_TEXT];
    data_holder(path, who);
    log_error(
        "%s %s: it is in use by %s: stop that assayd or assay, or set %s to another directory",
        what, path, who, what);
}

/* the file stays after we end, and commands lock it as data_dir's owner: it must be the user's */
static int lock(const struct conf *conf, const char *what, const char *path)
{
    uid_t uid;
    gid_t gid;
    int fd = data_lock(path);
    /* a command holds it only for a moment */
    for (int tries = 0; fd < 0 && errno == EWOULDBLOCK && tries < 50; tries++) {
        poll(NULL, 0, 20);
        fd = data_lock(path);
    }
    if (fd < 0 && errno == EWOULDBLOCK)
        refuse_locked(what, path);
    else if (fd < 0)
        directory_refuse(what, path, strerror(errno));
    else if (process_user(conf, &uid, &gid) && fchown(fd, uid, gid) != 0)
        log_warn("%s %s: cannot give its lock to user \"%s\": %s", what, path, conf->user,
                 strerror(errno));
    return fd;
}

int directories_lock(struct directories *d, const struct conf *conf)
{
    if (d->data_lock < 0)
        d->data_lock = lock(conf, "data_dir", conf->data_dir);
    if (d->run_lock < 0 && d->data_lock >= 0)
        d->run_lock = lock(conf, "run_dir", conf->run_dir);
    return d->data_lock >= 0 && d->run_lock >= 0 ? 0 : -1;
}

int directories_make_secrets(const struct conf *conf)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256];
    uid_t uid;
    gid_t gid;
    signing_keys_path(conf, path);
    bool own = conf->jwt_secrets_file[0] == '\0', there = access(path, F_OK) == 0;
    if (own && !there && signing_keys_make(path, clock_wall_ms(), why, sizeof(why)) != 0) {
        log_error("%s", why);
        return -1;
    }
    if (own && !there && process_user(conf, &uid, &gid) && chown(path, uid, gid) != 0)
        return directory_refuse("data_dir", path, strerror(errno));
    struct signing_keys *secrets = signing_keys_open(path, why, sizeof(why));
    if (secrets == NULL)
        log_error("%s", why);
    signing_keys_free(secrets);
    return secrets == NULL ? -1 : 0;
}

int directory_give(const struct conf *conf, const char *path)
{
    uid_t uid;
    gid_t gid;
    return process_user(conf, &uid, &gid) ? lchown(path, uid, gid) : 0;
}

static void pid_path(const struct conf *conf, char *out, size_t size)
{
    snprintf(out, size, "%s/assayd.pid", conf->run_dir);
}

/* O_EXCL and O_NOFOLLOW: the user owns run_dir and may have put a link there */
void directories_write_pid(const struct conf *conf)
{
    char path[4200], next[4300];
    pid_path(conf, path, sizeof(path));
    snprintf(next, sizeof(next), "%s.new", path);
    unlink(next);
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = out != NULL && fprintf(out, "%d\n", (int)getpid()) > 0;
    if (out != NULL && fclose(out) != 0)
        ok = false;
    if (out == NULL && fd >= 0)
        close(fd);
    if (!ok || rename(next, path) != 0)
        log_warn("%s: %s", path, strerror(errno));
}

void directories_remove_pid(const struct conf *conf)
{
    char path[4200];
    pid_path(conf, path, sizeof(path));
    unlink(path);
}

void directories_close(struct directories *d)
{
    if (d->data_lock >= 0)
        close(d->data_lock);
    if (d->run_lock >= 0)
        close(d->run_lock);
    d->data_lock = d->run_lock = -1;
}
