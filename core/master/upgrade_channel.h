/*
 * What an elder and its heir (upgrade.h) say to each other, over a pair of sockets: a word, with numbers or descriptors where it has some.
 * The masters' alone.
 *
 * ■ No descriptor but the heir's end of the pair goes through exec. The others lie in the pair, from before the heir runs, so that it has
 * them even if its elder dies; and an elder whose heir has failed takes them out again. So what a failed binary, or a script in its place,
 * leaves behind has neither locks nor listeners.
 * ■ Who said a word is known, by the kernel, so that the elder hears the process that it started and nobody else.
 */
#ifndef ASSAY_MASTER_UPGRADE_CHANNEL_H
#define ASSAY_MASTER_UPGRADE_CHANNEL_H

#include "core/shm/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ASK is answered by GIVEN, see below; the elder's workers' pids follow TAKE */
enum upgrade_message_type {
    MESSAGE_ASK = 'A',
    MESSAGE_GIVEN = 'D',
    MESSAGE_PREPARED = 'P',
    MESSAGE_TAKE = 'T',
    MESSAGE_SERVES = 'S',
    MESSAGE_GO = 'G'
};

struct upgrade_message {
    pid_t from; /* 0: not known, as in the heir */
    pid_t numbers[SCOREBOARD_SLOTS];
    size_t count;
};

/* upgrade_channel_pair(pair): pair[0] is the elder's end, pair[1] the heir's. 0, or -1 with errno. */
int upgrade_channel_pair(int pair[2]);

/*
 * upgrade_channel_send(fd, word, numbers, count): at once; false with errno. upgrade_channel_receive(fd, out): the next word, 0: none yet, -1: the other is
 * gone.
 */
bool upgrade_channel_send(int fd, enum upgrade_message_type word, const pid_t *numbers,
                          size_t count);
int upgrade_channel_receive(int fd, struct upgrade_message *out);

/*
 * upgrade_channel_push(fd, fds, count): the elder's, before the heir runs: as many of ${fds} as fit into the pair. upgrade_channel_drain(fd): take them out of
 * the heir's end, and let nobody hear or say anything there any more.
 * upgrade_channel_get(fd, fds, count): the heir's: those that are there, and ask for those that are not, and wait for them. They are the caller's
 * then, and so is *fds. 0, or -1 with errno; EPIPE: there is no elder any more, or it gives us none.
 * upgrade_channel_give(fd, fds, count, heard): the elder's answer to an ASK: some of ${fds}, as many as fit. False with errno.
 */
void upgrade_channel_push(int fd, const int *fds, size_t count);
void upgrade_channel_drain(int fd);
int upgrade_channel_get(int fd, int **fds, size_t *count);
bool upgrade_channel_give(int fd, const int *fds, size_t count,
                          const struct upgrade_message *heard);

#endif
