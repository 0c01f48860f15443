#include "core/master/upgrade_new.h"

#include "core/base/log.h"
#include "core/master/inherited_state.h"
#include "core/master/systemd.h"
#include "core/master/upgrade_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int upgrade_inherit(struct master *m)
{
    const char *channel = getenv(UPGRADE_ENVIRONMENT);
    struct old_master *old = &m->upgrade.old_master;
    struct passed_fds passed;
    old->fd = -1;
    if (channel == NULL)
        return 0;
    systemd_mute(true);
    old->state = OLD_MASTER_SERVING;
    m->children.store_known = true;
    int pid = 0;
    bool ok = sscanf(channel, "%d %d", &old->fd, &pid) == 2 && old->fd > 2 &&
              fcntl(old->fd, F_SETFD, FD_CLOEXEC) == 0;
    unsetenv(UPGRADE_ENVIRONMENT);
    if (!ok || pid != getpid()) {
        old->fd = -1;
        return inherited_state_refuse(
            ok ? "this is not the process that was started: a wrapper must exec the new binary"
               : UPGRADE_ENVIRONMENT " is in the environment, and no master set it");
    }
    if (upgrade_channel_receive_fds(old->fd, &passed.fds, &passed.count) != 0)
        return inherited_state_refuse(errno == EPIPE ? "the old binary passes no descriptors"
                                                     : strerror(errno));
    if (inherited_state_read(m, &passed) != 0)
        return -1;
    m->generations.newest->number = old->generation + 1;
    return 0;
}

/* ---- taking over ---- */

static bool all_workers_wait(const struct master *m)
{
    unsigned count = 0;
    for (size_t i = 0; i < m->children.slots_count; i++) {
        const struct child_slot *s = &m->children.slots[i];
        count += s->role == ROLE_WORKER && s->child != NULL &&
                 score_get(s->child->score->phase) == PHASE_WAITING;
    }
    return count == master_conf(m)->workers;
}

static void on_take(struct old_master *old, const pid_t *workers, size_t count)
{
    old->workers = calloc(count + 1, sizeof(*workers));
    if (old->workers != NULL && count > 0)
        memcpy(old->workers, workers, count * sizeof(*workers));
    old->workers_count = old->workers == NULL ? 0 : count;
    old->state = OLD_MASTER_HANDED_OVER;
}

/* new slots get no connections until workers serve them */
static void start_accepting(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    reuseport_take_over(&m->reuseport, old->slots, old->steered);
    reuseport_change(&m->reuseport, master_conf(m)->workers);
    score_set(m->shared.scoreboard->accept_paused, 0);
    old->accepting = true;
}

static void free_listeners(struct old_master *old, bool unlink)
{
    inherited_listeners_free(old->listeners, old->listeners_count, unlink);
    old->listeners = NULL;
    old->listeners_count = 0;
}

static void take_over(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    shared_memory_install(master_conf(m));
    old->state = OLD_MASTER_DRAINING;
    old->confirmed = old->fd < 0 || !upgrade_channel_send(old->fd, MESSAGE_SERVES, NULL, 0);
    free_listeners(old, true); /* those that the new configuration does not have */
}

static void receive_from_old_master(struct old_master *old)
{
    struct upgrade_message message;
    int type = upgrade_channel_receive(old->fd, &message);
    if (type == MESSAGE_TAKE && old->state == OLD_MASTER_HANDING_OVER)
        on_take(old, message.numbers, message.count);
    else if (type == MESSAGE_GO)
        old->confirmed = true;
    if (type >= 0)
        return;
    if (old->state != OLD_MASTER_DRAINING)
        log_warn("upgrade: the old binary ended before it handed over: this one continues alone");
    upgrade_close_fd(&old->fd);
    old->confirmed = true;
}

static void watch(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    const struct children *c = &m->children;
    if (old->fd >= 0)
        receive_from_old_master(old);
    if (old->state == OLD_MASTER_SERVING && all_workers_wait(m)) {
        old->state = OLD_MASTER_HANDING_OVER;
        if (old->fd >= 0)
            upgrade_send(old->fd, MESSAGE_PREPARED, NULL, 0);
    }
    if (old->state == OLD_MASTER_HANDING_OVER && old->fd < 0)
        on_take(old, NULL, 0);
    if (old->state == OLD_MASTER_HANDED_OVER && !old->accepting && children_ready(c, ROLE_WRITER))
        start_accepting(m);
    if (old->state == OLD_MASTER_HANDED_OVER && old->accepting && children_ready(c, ROLE_WRITER) &&
        children_ready(c, ROLE_AUDITOR) && children_ready(c, ROLE_WORKER))
        take_over(m);
    if (old->state == OLD_MASTER_DRAINING && old->confirmed)
        systemd_mute(false);
    if (old->state == OLD_MASTER_DRAINING && old->fd < 0)
        old->state = OLD_MASTER_NONE;
}

/* a new master that stops reads the channel only to learn that the old one has ended */
bool upgrade_new_reads(const struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    return old->state == OLD_MASTER_DRAINING ||
           (old->state != OLD_MASTER_NONE && !m->shutdown.stopping);
}

void upgrade_new_tick(struct master *m)
{
    if (upgrade_new_reads(m))
        watch(m);
}

void upgrade_new_close(struct old_master *old)
{
    if (old->state != OLD_MASTER_NONE)
        upgrade_close_fd(&old->fd);
    free_listeners(old, false);
}
