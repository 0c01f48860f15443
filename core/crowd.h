/*
 * How many connections there are, over all workers: of the whole server, and of each address. A table in memory that the master maps before
 * it forks.
 *
 * ■ Exact, and without locks: whoever lets a connection in counts it first and looks at the sum then, so of two that take the last place at
 * once at most one keeps it. ■ A process' counts are its own words alone, and those of the dead mean nothing: what a worker held when it was
 * killed, at whatever instruction, is given back when the master has reaped it.
 *
 * An address is counted by bits that limiter_key_make makes of it (of IPv6, the prefix), hashed with a key that nobody else knows.
 */
#ifndef ASSAY_CROWD_H
#define ASSAY_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* processes that have a place at once; those of the scoreboard */
#define CROWD_PLACES 1984

struct crowd;

/*
 * crowd_new(connections, workers): map it, with room for the addresses of so many connections; the master's call; NULL with errno.
 * crowd_free: unmap; NULL does nothing.
 */
struct crowd *crowd_new(size_t connections, unsigned workers);
/*
 * crowd_fit(crowd, connections, workers): the master's call, at a reload: make it do for so many. False,
 * and nothing is changed: crowd_new made it too small for them.
 */
bool crowd_fit(struct crowd *crowd, size_t connections, unsigned workers)
    __attribute__((warn_unused_result));
void crowd_free(struct crowd *crowd);

/* crowd_enter(crowd, place), crowd_leave(crowd, place): the master's, before it forks a process and when it has reaped it. */
void crowd_enter(struct crowd *crowd, unsigned place);
void crowd_leave(struct crowd *crowd, unsigned place);

/* ---- a process', of its own place ---- */

/* crowd_claim(crowd, place, most): one more connection, if then there are ${most} or fewer. crowd_unclaim: it is over. crowd_count: all there are. */
bool crowd_claim(struct crowd *crowd, unsigned place, size_t most) __attribute__((warn_unused_result));
void crowd_unclaim(struct crowd *crowd, unsigned place);
size_t crowd_count(const struct crowd *crowd);

/*
 * crowd_arrive(crowd, place, address, size, most, share): one more of this address; false, and nothing is counted, where it would have more
 * than ${most} (0: no limit). *share is for crowd_depart, when it is over, and for crowd_share: how many of them are this process'. Where
 * there is no room to count, which takes four times as many addresses as crowd_new was told of, *share is 0 and the connection is let in.
 */
bool crowd_arrive(struct crowd *crowd, unsigned place, const void *address, size_t size, size_t most, uint32_t *share)
    __attribute__((warn_unused_result));
void crowd_depart(struct crowd *crowd, uint32_t share);
size_t crowd_share(const struct crowd *crowd, uint32_t share);

/* ---- who waits, and what was done: of all ---- */

/*
 * crowd_ask(crowd, place): somebody waits before this process, which has no connection that may give way; crowd_unask: nobody does any
 * more. crowd_asks(crowd, place): whether somebody waits before another. crowd_answer(crowd): true for one of those who then have a
 * connection to close. crowd_part(crowd, place, most): of ${most} connections this process has less than its part (-1), its part (0), or
 * more (1).
 */
void crowd_ask(struct crowd *crowd, unsigned place);
void crowd_unask(struct crowd *crowd, unsigned place);
bool crowd_asks(const struct crowd *crowd, unsigned place);
bool crowd_answer(struct crowd *crowd);
int crowd_part(const struct crowd *crowd, unsigned place, size_t most);

/*
 * What happened to connections, for the metrics: closed so that another gets in; not let in, since their address has its number, or most
 * of those that wait; ended for what a worker held of them, past its bound of answers, or of uploads.
 */
enum crowd_event { CROWD_GAVE_WAY, CROWD_TURNED_AWAY, CROWD_ANSWER_CUT, CROWD_UPLOAD_CUT, CROWD_EVENTS };
void crowd_tell(struct crowd *crowd, enum crowd_event event);
uint64_t crowd_told(const struct crowd *crowd, enum crowd_event event);

#endif
