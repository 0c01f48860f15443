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
#ifndef ASSAY_SHM_CONNECTION_TABLE_H
#define ASSAY_SHM_CONNECTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* processes that have a place at once; those of the scoreboard */
#define CROWD_PLACES 1984

struct connection_table;

/*
 * connection_table_new(connections, workers): map it, with room for the addresses of so many connections; the master's call; NULL with errno.
 * connection_table_free: unmap; NULL does nothing.
 */
struct connection_table *connection_table_new(size_t connections, unsigned workers);
/*
 * connection_table_fit(crowd, connections, workers): the master's call, at a reload: make it do for so many. False,
 * and nothing is changed: connection_table_new made it too small for them.
 */
bool connection_table_fit(struct connection_table *connection_table, size_t connections, unsigned workers)
    __attribute__((warn_unused_result));
void connection_table_free(struct connection_table *connection_table);

/* connection_table_enter(crowd, place), connection_table_leave(crowd, place): the master's, before it forks a process and when it has reaped it. */
void connection_table_enter(struct connection_table *connection_table, unsigned place);
void connection_table_leave(struct connection_table *connection_table, unsigned place);

/* ---- a process', of its own place ---- */

/* connection_table_claim(crowd, place, most): one more connection, if then there are ${most} or fewer. connection_table_unclaim: it is over. connection_table_count: all there are. */
bool connection_table_claim(struct connection_table *connection_table, unsigned place, size_t most) __attribute__((warn_unused_result));
void connection_table_unclaim(struct connection_table *connection_table, unsigned place);
size_t connection_table_count(const struct connection_table *connection_table);

/*
 * connection_table_arrive(crowd, place, address, size, most, share): one more of this address; false, and nothing is counted, where it would have more
 * than ${most} (0: no limit). *share is for connection_table_depart, when it is over, and for connection_table_share: how many of them are this process'. Where
 * there is no room to count, which takes four times as many addresses as connection_table_new was told of, *share is 0 and the connection is let in.
 */
bool connection_table_arrive(struct connection_table *connection_table, unsigned place, const void *address, size_t size, size_t most, uint32_t *share)
    __attribute__((warn_unused_result));
void connection_table_depart(struct connection_table *connection_table, uint32_t share);
size_t connection_table_share(const struct connection_table *connection_table, uint32_t share);

/* ---- who waits, and what was done: of all ---- */

/*
 * connection_table_ask(crowd, place): somebody waits before this process, which has no connection that may give way; connection_table_unask: nobody does any
 * more. connection_table_asks(crowd, place): whether somebody waits before another. connection_table_answer(crowd): true for one of those who then have a
 * connection to close. connection_table_part(crowd, place, most): of ${most} connections this process has less than its part (-1), its part (0), or
 * more (1).
 */
void connection_table_ask(struct connection_table *connection_table, unsigned place);
void connection_table_unask(struct connection_table *connection_table, unsigned place);
bool connection_table_asks(const struct connection_table *connection_table, unsigned place);
bool connection_table_answer(struct connection_table *connection_table);
int connection_table_part(const struct connection_table *connection_table, unsigned place, size_t most);

/*
 * What happened to connections, for the metrics: closed so that another gets in; not let in, since their address has its number, or most
 * of those that wait; ended for what a worker held of them, past its bound of answers, or of uploads.
 */
enum connection_table_event { CROWD_GAVE_WAY, CROWD_TURNED_AWAY, CROWD_ANSWER_CUT, CROWD_UPLOAD_CUT, CROWD_EVENTS };
void connection_table_tell(struct connection_table *connection_table, enum connection_table_event event);
uint64_t connection_table_told(const struct connection_table *connection_table, enum connection_table_event event);

#endif
