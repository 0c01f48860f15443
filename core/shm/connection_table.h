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
#define CONNECTION_TABLE_SLOTS 1984

struct connection_table;

/*
 * connection_table_new(connections, workers): map it, with room for the addresses of so many connections; the master's call; NULL with errno.
 * connection_table_free: unmap; NULL does nothing.
 */
struct connection_table *connection_table_new(size_t connections, unsigned workers);
/*
 * connection_table_resize(crowd, connections, workers): the master's call, at a reload: make it do for so many. False,
 * and nothing is changed: connection_table_new made it too small for them.
 */
bool connection_table_resize(struct connection_table *connection_table, size_t connections,
                          unsigned workers) __attribute__((warn_unused_result));
void connection_table_free(struct connection_table *connection_table);

/* connection_table_open_slot(crowd, place), connection_table_close_slot(crowd, place): the master's, before it forks a process and when it has reaped it. */
void connection_table_open_slot(struct connection_table *connection_table, unsigned place);
void connection_table_close_slot(struct connection_table *connection_table, unsigned place);

/* ---- a process', of its own place ---- */

/* connection_table_add(crowd, place, most): one more connection, if then there are ${most} or fewer. connection_table_remove: it is over. connection_table_count: all there are. */
bool connection_table_add(struct connection_table *connection_table, unsigned place, size_t most)
    __attribute__((warn_unused_result));
void connection_table_remove(struct connection_table *connection_table, unsigned place);
size_t connection_table_count(const struct connection_table *connection_table);

/*
 * connection_table_add_address(crowd, place, address, size, most, share): one more of this address; false, and nothing is counted, where it would have more
 * than ${most} (0: no limit). *share is for connection_table_remove_address, when it is over, and for connection_table_address_count: how many of them are this process'. Where
 * there is no room to count, which takes four times as many addresses as connection_table_new was told of, *share is 0 and the connection is let in.
 */
bool connection_table_add_address(struct connection_table *connection_table, unsigned place,
                             const void *address, size_t size, size_t most, uint32_t *share)
    __attribute__((warn_unused_result));
void connection_table_remove_address(struct connection_table *connection_table, uint32_t share);
size_t connection_table_address_count(const struct connection_table *connection_table, uint32_t share);

/* ---- who waits, and what was done: of all ---- */

/*
 * connection_table_request_eviction(crowd, place): somebody waits before this process, which has no connection that may give way; connection_table_cancel_eviction: nobody does any
 * more. connection_table_eviction_requested(crowd, place): whether somebody waits before another. connection_table_take_eviction(crowd): true for one of those who then have a
 * connection to close. connection_table_compare_share(crowd, place, most): of ${most} connections this process has less than its part (-1), its part (0), or
 * more (1).
 */
void connection_table_request_eviction(struct connection_table *connection_table, unsigned place);
void connection_table_cancel_eviction(struct connection_table *connection_table, unsigned place);
bool connection_table_eviction_requested(const struct connection_table *connection_table, unsigned place);
bool connection_table_take_eviction(struct connection_table *connection_table);
int connection_table_compare_share(const struct connection_table *connection_table, unsigned place,
                          size_t most);

/*
 * What happened to connections, for the metrics: closed so that another gets in; not let in, since their address has its number, or most
 * of those that wait; ended for what a worker held of them, past its bound of answers, or of uploads.
 */
enum connection_table_event {
    CONNECTIONS_EVICTED,
    CONNECTIONS_REFUSED,
    CONNECTIONS_RESPONSE_CUT,
    CONNECTIONS_UPLOAD_CUT,
    CONNECTION_TABLE_EVENTS
};
void connection_table_count_event(struct connection_table *connection_table,
                           enum connection_table_event event);
uint64_t connection_table_event_count(const struct connection_table *connection_table,
                               enum connection_table_event event);

#endif
