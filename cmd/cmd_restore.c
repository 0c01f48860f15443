/* assay restore: replaces the store and its signing secrets with those of a backup. */
#include "cmd/cmd_copy.h"
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include "core/auth/signing_keys.h"
#include "store/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool show_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Checking and restoring", done, total);
    return !cmd_interrupted();
}

static bool chown_files(int dir, const char *name, const struct stat *owner)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL)
        return errno == ENOENT;
    bool given = true;
    struct dirent *e;
    while (given && (e = readdir(d)) != NULL)
        given = strcmp(e->d_name, "..") == 0 ||
                fchownat(fd, e->d_name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) == 0 ||
                errno == ENOENT;
    int error = errno;
    closedir(d);
    errno = error;
    return given;
}

/* Files restored by root get the owner of data_dir. */
static int chown_restored(const char *data_dir)
{
    static const char *const names[] = {"data.mdb", "index", "secrets", "lock.mdb", "lock"};
    struct stat owner;
    if (getuid() != 0)
        return CMD_DONE;
    int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool given = dir >= 0 && fstat(dir, &owner) == 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && given; i++)
        given = fchownat(dir, names[i], owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) == 0 ||
                errno == ENOENT;
    given = given && chown_files(dir, "index", &owner);
    int error = errno;
    if (dir >= 0)
        close(dir);
    if (given)
        return CMD_DONE;
    return cmd_refuse("cannot change the owner of the files in %s: %s; use chown", data_dir,
                      strerror(error));
}

static void say_restored(const char *from, const char *to)
{
    char before[4096 + 32];
    snprintf(before, sizeof(before), "%s/data.mdb.before-restore", to);
    bool kept = access(before, F_OK) == 0;
    cmd_say("Restored %s from %s.%s", to, from,
            kept ? " The previous store is kept there as data.mdb.before-restore." : "");
}

/* Replace the signing secrets, if those of the backup differ. The previous ones are kept. */
static int restore_secrets(const struct conf *conf, const char *from)
{
    char backup[PATH_MAX], there[SECRETS_PATH];
    snprintf(backup, sizeof(backup), "%.4000s/secrets", from);
    signing_keys_path(conf, there);
    if ((access(backup, F_OK) != 0 && errno == ENOENT) || cmd_same_file(backup, there))
        return CMD_DONE;
    int rc = store_keep_replaced(there);
    if (rc == 0 && cmd_copy_file(backup, there))
        return CMD_DONE;
    return cmd_refuse("the store is restored, but its signing secrets are not: %s: %s; copy %s to "
                      "this file",
                      there, strerror(rc == 0 ? errno : rc), backup);
}

static int replace_store(const char *from, const char *to)
{
    char why[512] = "";
    cmd_catch_interrupts();
    guard_at(NULL, "the check of the backup");
    enum store_status stored = store_restore(from, to, show_progress, NULL, why, sizeof(why));
    cmd_progress_end();
    if (stored == STORE_OK)
        return CMD_DONE;
    if (cmd_interrupted())
        return cmd_refuse("interrupted; %s is unchanged", to);
    return cmd_refuse("%s was not restored: %s", to,
                      why[0] == '\0' ? store_status_text(stored) : why);
}

static int restore(struct cmd *cmd)
{
    const char *from = cmd->words[0], *to = cmd->conf->data_dir;
    int lock = -1;
    int status = cmd_data_lock(to, &lock);
    if (status != CMD_DONE)
        return status;
    status = replace_store(from, to);
    if (status == CMD_DONE)
        status = chown_restored(to);
    if (status == CMD_DONE)
        status = restore_secrets(cmd->conf, from);
    if (status == CMD_DONE)
        say_restored(from, to);
    close(lock);
    return status;
}

static void clear_restore(struct cmd *cmd)
{
    store_restore_clear(cmd->conf->data_dir);
}

int cmd_restore(struct cmd *cmd)
{
    const struct guard guard = {"nothing was restored", cmd->words[0],
                                "Restore an older backup; data_dir is unchanged", clear_restore};
    return guard_run(cmd, &guard, restore);
}
