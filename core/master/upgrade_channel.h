/*
 * The channel between the old and the new master during a binary upgrade (upgrade.h): messages over
 * a socket pair, with numbers or descriptors.
 *
 * Only the new master's end of the pair goes through exec. The other descriptors are messages in
 * the pair, sent before the new binary starts: it has them even if the old master dies, and the old
 * master takes them out again when the new binary fails. So a failed binary, or a script in its
 * place, leaves no process with locks or listeners behind.
 *
 * The kernel names the sender of a message, so the old master accepts only those of the process
 * that it started.
 */
#ifndef ASSAY_MASTER_UPGRADE_CHANNEL_H
#define ASSAY_MASTER_UPGRADE_CHANNEL_H

#include "core/shm/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum upgrade_message_type {
    MESSAGE_FDS_WANTED = 'A', /* to the old master: from which descriptor on */
    MESSAGE_FDS = 'D',        /* to the new master: how many there are, and some of them */
    MESSAGE_PREPARED = 'P',   /* to the old master: the workers are up */
    MESSAGE_TAKE = 'T',       /* to the new master: start a writer; the pids of the old workers */
    MESSAGE_SERVES = 'S',     /* to the old master: all children serve */
    MESSAGE_GO = 'G'          /* to the new master: it is the server */
};

struct upgrade_message {
    pid_t from; /* 0: unknown, as in the new master */
    pid_t numbers[SCOREBOARD_SLOTS];
    size_t count;
};

/* upgrade_channel_pair(pair): [0]: the old master's end, [1]: the new one's; 0 or -1 with errno. */
int upgrade_channel_pair(int pair[2]);

/*
 * upgrade_channel_send(fd, type, numbers, count): false with errno.
 * upgrade_channel_receive(fd, out): the type of the next message; 0: none yet; -1: the other master
 * is gone.
 */
bool upgrade_channel_send(int fd, enum upgrade_message_type type, const pid_t *numbers,
                          size_t count);
int upgrade_channel_receive(int fd, struct upgrade_message *out);

/* upgrade_send(fd, type, pids, count): the same, when a failure needs no handling: it is logged. */
void upgrade_send(int fd, enum upgrade_message_type type, const pid_t *pids, size_t count);

/* upgrade_close_fd(fd): close it unless it is -1, and set it to -1. */
void upgrade_close_fd(int *fd);

/* in the new binary: the channel's descriptor, and the pid that was started */
#define UPGRADE_ENVIRONMENT "ASSAY_UPGRADE"

/*
 * In the old master. upgrade_channel_preload_fds(fd, fds, count): before the new binary starts: as
 * many as fit into the pair. upgrade_channel_send_fds(fd, fds, count, wanted): answer FDS_WANTED
 * with as many as fit; false with errno. upgrade_channel_revoke_fds(fd): take them out of the new
 * master's end, and close it for everybody.
 */
void upgrade_channel_preload_fds(int fd, const int *fds, size_t count);
bool upgrade_channel_send_fds(int fd, const int *fds, size_t count,
                              const struct upgrade_message *wanted);
void upgrade_channel_revoke_fds(int fd);

/*
 * In the new master. upgrade_channel_receive_fds(fd, fds, count): all descriptors; those that are
 * not in the pair are asked for. The caller owns them and *fds. 0, or -1 with errno; EPIPE: the old
 * master is gone, or gives none.
 */
int upgrade_channel_receive_fds(int fd, int **fds, size_t *count);

#endif
