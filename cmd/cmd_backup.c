/* backup, restore, check: the store as a whole. */
#include "cmd/cmd_copy.h"
#include "cmd/cmd_dir.h"
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include "core/shm/scoreboard.h"
#include "core/auth/signing_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static bool show_progress(void *arg, uint64_t done, uint64_t total)
{
    cmd_progress(arg, done, total);
    return interrupted == 0;
}

/* Ctrl-C ends long work between two slices, so that nothing is left half-made. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/*
 * Who serves goes first: a tenth of its turns on a full processor would be felt, a thirtieth is not; what wakes after waiting for the disk
 * interrupts nobody (SCHED_BATCH); and the disk's last place. The copy's thread is begun after this, and has it from here.
 */
static void stand_back(void)
{
    enum { NICE = 15 };
    setpriority(PRIO_PROCESS, 0, NICE);
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

struct copying {
    char what[16];
    bool beside_server;
    uint64_t since_us; /* when it last had rested */
};

/*
 * A process that wakes while a piece of the copy is made may wait for its end. So the copy rests
 * eight times as long as a piece took, and at most 20 ms, so that a slow disk does not hold the
 * snapshot for ever.
 */
static bool copy_goes_on(void *arg, uint64_t done, uint64_t total)
{
    enum { RESTS = 8, REST_MOST_US = 20000 };
    struct copying *c = arg;
    uint64_t rest_us = (clock_mono_us() - c->since_us) * RESTS;
    if (c->beside_server)
        usleep((useconds_t)(rest_us < REST_MOST_US ? rest_us : REST_MOST_US));
    c->since_us = clock_mono_us();
    return show_progress(c->what, done, total);
}

/* The signing secrets, where there are some yet. */
static int copy_secrets(const struct conf *conf, const char *dir)
{
    char from[SECRETS_PATH], to[PATH_MAX];
    signing_keys_path(conf, from);
    snprintf(to, sizeof(to), "%.4000s/secrets", dir);
    if (cmd_copy_file(from, to) || errno == ENOENT)
        return CMD_DONE;
    return cmd_refuse("the signing secrets in %s cannot be copied: %s", from, strerror(errno));
}

static int write_configuration(const struct conf *conf, const char *dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/assay.yaml", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out != NULL)
        conf_dump(conf, out);
    bool written = out != NULL && fflush(out) == 0 && fsync(fd) == 0;
    int error = errno;
    if (out != NULL)
        fclose(out);
    return written ? CMD_DONE : cmd_refuse("%s cannot be written: %s", path, strerror(error));
}

static int make_backup(struct cmd *cmd)
{
    const char *dir = cmd->words[0];
    struct client *client = cmd_store_there(cmd) ? cmd_store_open(cmd) : NULL;
    if (client == NULL)
        return CMD_REFUSED;
    /* Reaching the store made root its owner, who need not be able to write where root wants the backup. */
    bool root_again = getuid() != 0 || (seteuid(0) == 0 && setegid(getgid()) == 0);
    struct cmd_dir made = {.kept = 0};
    int status = CMD_DONE;
    if (!root_again || !cmd_dir_make(dir, &made))
        status = cmd_refuse("%s cannot be made: %s", dir, strerror(errno));
    if (status == CMD_DONE) {
        catch_interrupts();
        stand_back();
        store_on_stage(client_store(client), guard_at, NULL);
        struct copying copying = {"Copying", client_is_live(client), clock_mono_us()};
        enum store_status stored = store_backup(client_store(client), dir, copy_goes_on, &copying);
        cmd_progress_end();
        if (stored == STORE_INVALID)
            status = cmd_refuse("%s is not empty; name a new or an empty directory", dir);
        else if (stored != STORE_OK)
            status = interrupted != 0 ? cmd_refuse("stopped; what %s holds is no backup", dir) : cmd_store_refuse(client, stored);
    }
    if (status == CMD_DONE)
        status = copy_secrets(cmd->conf, dir);
    if (status == CMD_DONE)
        status = write_configuration(cmd->conf, dir);
    if (status == CMD_DONE)
        cmd_say("The backup is in %s; assay restore %s puts it back.", dir, dir);
    else
        cmd_dir_unmake(&made);
    client_close(client);
    return status;
}

static bool backup_was_there; /* its directory, before it began */

static void remove_backup(struct cmd *cmd)
{
    char part[4096 + 64];
    snprintf(part, sizeof(part), "%.4096s/data.mdb.part", cmd->words[0]);
    unlink(part);
    if (!backup_was_there)
        rmdir(cmd->words[0]);
}

int cmd_backup(struct cmd *cmd)
{
    const struct guard guard = {"no backup was made", cmd->conf->data_dir,
                                "assay check says what is damaged; assay restore DIR of your newest backup puts that back", remove_backup};
    backup_was_there = access(cmd->words[0], F_OK) == 0;
    return guard_run(cmd, &guard, make_backup);
}

static bool give_files(int dir, const char *name, const struct stat *owner)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL)
        return errno == ENOENT;
    bool given = true;
    struct dirent *e;
    while (given && (e = readdir(d)) != NULL)
        given = strcmp(e->d_name, "..") == 0 || fchownat(fd, e->d_name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOENT;
    int error = errno;
    closedir(d);
    errno = error;
    return given;
}

/* What root restored belongs to whom data_dir belongs. */
static int give_to_owner(const char *data_dir)
{
    static const char *const names[] = {"data.mdb", "index", "secrets", "lock.mdb", "lock"};
    struct stat owner;
    if (getuid() != 0)
        return CMD_DONE;
    int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool given = dir >= 0 && fstat(dir, &owner) == 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && given; i++)
        given = fchownat(dir, names[i], owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOENT;
    given = given && give_files(dir, "index", &owner);
    int error = errno;
    if (dir >= 0)
        close(dir);
    return given ? CMD_DONE : cmd_refuse("the files in %s cannot be given to its owner: %s; use chown", data_dir, strerror(error));
}

static void say_restored(const char *from, const char *to)
{
    char before[4096 + 32];
    snprintf(before, sizeof(before), "%s/data.mdb.before-restore", to);
    if (access(before, F_OK) != 0)
        cmd_say("%s is restored from %s.", to, from);
    else
        cmd_say("%s is restored from %s. What it held is kept there as "
                "data.mdb.before-restore.",
                to, from);
}

/* Those of the backup take the place of those that are there, which are kept. */
static int put_secrets_back(const struct conf *conf, const char *from)
{
    char backup[PATH_MAX], there[SECRETS_PATH];
    snprintf(backup, sizeof(backup), "%.4000s/secrets", from);
    signing_keys_path(conf, there);
    if ((access(backup, F_OK) != 0 && errno == ENOENT) || cmd_same_file(backup, there))
        return CMD_DONE;
    int rc = store_keep_replaced(there);
    if (rc == 0 && cmd_copy_file(backup, there))
        return CMD_DONE;
    return cmd_refuse("the store is restored, but its signing secrets are not: %s: %s; copy %s there",
                      there, strerror(rc == 0 ? errno : rc), backup);
}

static int put_back(struct cmd *cmd)
{
    const char *from = cmd->words[0], *to = cmd->conf->data_dir;
    char why[512] = "";
    if (mkdir(to, 0700) != 0 && errno != EEXIST)
        return cmd_refuse("data_dir %s cannot be made: %s", to, strerror(errno));
    int lock = data_lock(to);
    if (lock < 0 && errno == EWOULDBLOCK) {
        char who[HOLDER_TEXT];
        data_holder(to, who);
        return cmd_refuse("%s is in use by %s: stop that server or command first", to, who);
    }
    if (lock < 0)
        return cmd_refuse("data_dir %s cannot be locked: %s", to, strerror(errno));
    catch_interrupts();
    char what[] = "Checking and restoring";
    guard_at(NULL, "the check of the backup");
    enum store_status stored = store_restore(from, to, show_progress, what, why, sizeof(why));
    cmd_progress_end();
    int status = CMD_DONE;
    if (stored != STORE_OK && interrupted != 0)
        status = cmd_refuse("stopped; %s is as it was", to);
    else if (stored != STORE_OK)
        status = cmd_refuse("%s was not restored: %s", to, why[0] == '\0' ? store_status_text(stored) : why);
    if (status == CMD_DONE)
        status = give_to_owner(to);
    if (status == CMD_DONE)
        status = put_secrets_back(cmd->conf, from);
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
    const struct guard guard = {"nothing was restored", cmd->words[0], "Restore an older backup; what is in data_dir is as it was",
                                clear_restore};
    return guard_run(cmd, &guard, put_back);
}

struct checking {
    uint64_t problems;
    bool json;
};

static void show_problem(void *arg, const char *sentence)
{
    struct checking *checking = arg;
    checking->problems++;
    cmd_progress_end();
    if (checking->json) {
        struct records records;
        records_start(&records, true);
        records_text(&records, "problem", str_of(sentence));
        records_end_row(&records);
    } else {
        cmd_print_plain(stdout, str_of(sentence), SIZE_MAX);
        putchar('\n');
    }
}

/* The two callbacks of store_check share one argument. */
static bool show_check(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Checking", done, total);
    return interrupted == 0;
}

static bool show_repair(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Rebuilding, step", done, total);
    return interrupted == 0;
}

/* What is derived from records is built anew from them. */
static int repair(struct client *client)
{
    if (client_is_live(client))
        return cmd_refuse("assay check --repair works on a store that no server uses: stop the server first");
    enum store_status stored = store_rebuild(client_store(client), true, show_repair, NULL);
    cmd_progress_end();
    if (interrupted != 0)
        return cmd_refuse("stopped: the server rebuilds the rest of the indexes when it starts");
    return stored == STORE_OK ? CMD_DONE : cmd_store_refuse(client, stored);
}

static int check(struct cmd *cmd)
{
    struct client *client = cmd_store_there(cmd) ? cmd_store_open(cmd) : NULL;
    if (client == NULL)
        return CMD_REFUSED;
    struct checking checking = {.json = cmd->json};
    uint64_t records = 0;
    catch_interrupts();
    store_on_stage(client_store(client), guard_at, NULL);
    if (cmd_has(cmd, "--repair") && repair(client) != CMD_DONE) {
        client_close(client);
        return CMD_REFUSED;
    }
    enum store_status stored = store_check(client_store(client), show_check, show_problem, &checking, &records);
    cmd_progress_end();
    int status = CMD_DONE;
    if (interrupted != 0)
        status = cmd_refuse("stopped after %" PRIu64 " records", records);
    else if (checking.problems > 0)
        status = cmd_refuse("%" PRIu64 " records checked, %" PRIu64 " contradictions; stop the server and run assay check --repair; if some remain, restore a backup", records,
                            checking.problems);
    else if (stored != STORE_OK)
        status = cmd_store_refuse(client, stored);
    else
        cmd_say("%" PRIu64 " records checked, all is well.", records);
    client_close(client);
    return status;
}

int cmd_check(struct cmd *cmd)
{
    const struct guard guard = {"the check did not reach its end", cmd->conf->data_dir,
                                "Stop the server and restore your newest backup: assay restore DIR checks it first, and replaces nothing "
                                "where that is damaged, too",
                                NULL};
    return guard_run(cmd, &guard, check);
}
