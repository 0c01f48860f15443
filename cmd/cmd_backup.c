/* assay backup: a copy of the store, its signing secrets and the configuration. */
#include "cmd/cmd_copy.h"
#include "cmd/cmd_dir.h"
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include "core/shm/scoreboard.h"
#include "core/auth/signing_keys.h"
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Let the server go first: at nice 15 the copy gets about a thirtieth of a busy core, SCHED_BATCH
 * does not preempt others on wake-up, and disk access has the lowest priority. The thread that
 * copies is started later and inherits this.
 */
static void lower_priority(void)
{
    enum { NICE = 15 };
    setpriority(PRIO_PROCESS, 0, NICE);
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

struct copying {
    bool beside_server;
    uint64_t since_us; /* end of the last pause */
};

/*
 * While a piece is copied, a process that wakes up may have to wait. So the copy pauses eight times
 * as long as a piece took, but at most 20 ms: a slow disk must not keep the snapshot open too long.
 */
static bool show_copy(void *arg, uint64_t done, uint64_t total)
{
    enum { PAUSES = 8, PAUSE_MAX_US = 20000 };
    struct copying *c = arg;
    uint64_t pause_us = (clock_mono_us() - c->since_us) * PAUSES;
    if (c->beside_server)
        usleep((useconds_t)(pause_us < PAUSE_MAX_US ? pause_us : PAUSE_MAX_US));
    c->since_us = clock_mono_us();
    cmd_progress("Copying", done, total);
    return !cmd_interrupted();
}

/* Copy the signing secrets, if they exist. */
static int copy_secrets(const struct conf *conf, const char *dir)
{
    char from[SECRETS_PATH], to[PATH_MAX];
    signing_keys_path(conf, from);
    snprintf(to, sizeof(to), "%.4000s/secrets", dir);
    if (cmd_copy_file(from, to) || errno == ENOENT)
        return CMD_DONE;
    return cmd_refuse("cannot copy the signing secrets in %s: %s", from, strerror(errno));
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
    return written ? CMD_DONE : cmd_refuse("cannot write %s: %s", path, strerror(error));
}

static int copy_store(struct client *client, const char *dir)
{
    struct copying copying = {client_is_live(client), clock_mono_us()};
    cmd_catch_interrupts();
    lower_priority();
    store_on_stage(client_store(client), guard_at, NULL);
    enum store_status stored = store_backup(client_store(client), dir, show_copy, &copying);
    cmd_progress_end();
    if (stored == STORE_OK)
        return CMD_DONE;
    if (stored == STORE_INVALID)
        return cmd_refuse("%s is not empty; give a new or an empty directory", dir);
    if (cmd_interrupted())
        return cmd_refuse("interrupted; %s does not contain a backup", dir);
    return cmd_store_refuse(client, stored);
}

static int make_backup(struct cmd *cmd)
{
    const char *dir = cmd->words[0];
    struct client *client = cmd_store_there(cmd) ? cmd_store_open(cmd) : NULL;
    if (client == NULL)
        return CMD_REFUSED;
    /* Opening the store as root switched to its owner, who may not be able to write to ${dir}. */
    bool root_again = getuid() != 0 || (seteuid(0) == 0 && setegid(getgid()) == 0);
    struct cmd_dir made = {.kept = 0};
    int status = CMD_DONE;
    if (!root_again || !cmd_dir_make(dir, &made))
        status = cmd_refuse("cannot create %s: %s", dir, strerror(errno));
    if (status == CMD_DONE)
        status = copy_store(client, dir);
    if (status == CMD_DONE)
        status = copy_secrets(cmd->conf, dir);
    if (status == CMD_DONE)
        status = write_configuration(cmd->conf, dir);
    if (status == CMD_DONE)
        cmd_say("The backup is in %s. To restore it, run this with the same -c: assay restore %s",
                dir, dir);
    else
        cmd_dir_unmake(&made);
    client_close(client);
    return status;
}

static bool dir_existed; /* before the backup began */

static void remove_backup(struct cmd *cmd)
{
    char part[4096 + 64];
    snprintf(part, sizeof(part), "%.4096s/data.mdb.part", cmd->words[0]);
    unlink(part);
    if (!dir_existed)
        rmdir(cmd->words[0]);
}

int cmd_backup(struct cmd *cmd)
{
    const struct guard guard = {"no backup was made", cmd->conf->data_dir,
                                "Run assay check to see what is damaged, and restore your newest "
                                "backup with assay restore DIR",
                                remove_backup};
    dir_existed = access(cmd->words[0], F_OK) == 0;
    return guard_run(cmd, &guard, make_backup);
}
