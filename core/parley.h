/*
 * What an elder and its heir (upgrade.h) say to each other, over a pair of sockets: a word, with numbers or descriptors where it has some.
 * The masters' alone.
 *
 * ■ No descriptor but the heir's end of the pair goes through exec: the heir asks for the others when it runs. So a binary that fails, or
 * a script in its place, has neither locks nor listeners, nor has anything that it leaves behind: no lock outlives the masters it is for.
 * ■ Who said a word is known, by the kernel, so that the elder hears the process that it started and nobody else.
 */
#ifndef ASSAY_PARLEY_H
#define ASSAY_PARLEY_H

#include "scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ASK is answered by GIVEN, see below; the elder's workers' pids follow TAKE */
enum word { WORD_ASK = 'A', WORD_GIVEN = 'D', WORD_PREPARED = 'P', WORD_TAKE = 'T', WORD_SERVES = 'S', WORD_GO = 'G' };

struct heard {
    pid_t from; /* 0: not known, as in the heir */
    pid_t numbers[SCOREBOARD_SLOTS];
    size_t count;
};

/* parley_pair(pair): pair[0] is the elder's end, pair[1] the heir's. 0, or -1 with errno. */
int parley_pair(int pair[2]);

/*
 * parley_say(fd, word, numbers, count): at once; false with errno. parley_hear(fd, out): the next word, 0: none yet, -1: the other is
 * gone.
 */
bool parley_say(int fd, enum word word, const pid_t *numbers, size_t count);
int parley_hear(int fd, struct heard *out);

/*
 * parley_get(fd, fds, count): the heir's, first of all: ask for the elder's descriptors, some at a time, and wait for them. They are the
 * caller's then, and so is *fds. 0, or -1 with errno; EPIPE: there is no elder, or it gives us none.
 * parley_give(fd, fds, count, heard): the elder's answer to an ASK: some of ${fds}, as many as fit. False with errno.
 */
int parley_get(int fd, int **fds, size_t *count);
bool parley_give(int fd, const int *fds, size_t count, const struct heard *heard);

#endif
