/*
 * The connection table: how many connections are open, over all workers, in all and of each
 * address. It is in memory that the master maps before it forks.
 *
 * Counts are exact, without locks: a worker adds a connection first and then looks at the sum, so
 * of two that add the last one at the same time at most one succeeds. Each process writes only its
 * own counts, and those of a dead process count nothing once the master has reaped it.
 *
 * An address is counted by the key that limiter_key_make makes of it (of IPv6, the prefix), hashed
 * with a secret seed.
 */
#ifndef ASSAY_SHM_CONNECTION_TABLE_H
#define ASSAY_SHM_CONNECTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* processes at once; slots are those of the scoreboard */
#define CONNECTION_TABLE_SLOTS 1984

struct connection_table;

/*
 * The master's calls. connection_table_new(connections, workers): map it, with room for the
 * addresses of so many connections; NULL with errno. connection_table_reserve: at a reload; false:
 * the table is too small for so many, and nothing is changed.
 */
struct connection_table *connection_table_new(size_t connections, unsigned workers);
bool connection_table_reserve(struct connection_table *c, size_t connections, unsigned workers)
    __attribute__((warn_unused_result));
void connection_table_free(struct connection_table *c);

/* The master's calls: before it forks a process into this slot, and when it has reaped it. */
void connection_table_open_slot(struct connection_table *c, unsigned slot);
void connection_table_close_slot(struct connection_table *c, unsigned slot);

/* ---- a process, for its own slot ---- */

/*
 * connection_table_add(c, slot, max): count one more connection; false, and nothing is counted,
 * when that makes more than ${max}. connection_table_remove: one ended.
 * connection_table_count(c): of all processes.
 */
bool connection_table_add(struct connection_table *c, unsigned slot, size_t max)
    __attribute__((warn_unused_result));
void connection_table_remove(struct connection_table *c, unsigned slot);
size_t connection_table_count(const struct connection_table *c);

/*
 * connection_table_add_address(c, slot, address, size, max, row): count one more connection of this
 * address; false, and nothing is counted, when that makes more than ${max} (0: no limit). *row is
 * for the next two calls. It is 0, and the connection is not counted, when the table is full, which
 * takes four times as many addresses as connection_table_new was told of.
 * connection_table_remove_address(c, row): it ended.
 * connection_table_address_count(c, row): this process' connections of that address.
 */
bool connection_table_add_address(struct connection_table *c, unsigned slot, const void *address,
                                  size_t size, size_t max, uint32_t *row)
    __attribute__((warn_unused_result));
void connection_table_remove_address(struct connection_table *c, uint32_t row);
size_t connection_table_address_count(const struct connection_table *c, uint32_t row);

/* ---- evictions across processes ---- */

/*
 * connection_table_request_eviction(c, slot): a new connection waits at this process, which has
 * none to evict. connection_table_cancel_eviction: none waits any more.
 * connection_table_eviction_requested(c, slot): does another process request one?
 * connection_table_take_eviction(c): true for one process that then closes a connection.
 * connection_table_compare_share(c, slot, max): does this process have less (-1), as many (0) or
 * more (1) than its equal share of ${max} connections?
 */
void connection_table_request_eviction(struct connection_table *c, unsigned slot);
void connection_table_cancel_eviction(struct connection_table *c, unsigned slot);
bool connection_table_eviction_requested(const struct connection_table *c, unsigned slot);
bool connection_table_take_eviction(struct connection_table *c);
int connection_table_compare_share(const struct connection_table *c, unsigned slot, size_t max);

/* ---- events, for the metrics ---- */

enum connection_table_event {
    CONNECTIONS_EVICTED,      /* closed to admit another */
    CONNECTIONS_REFUSED,      /* its address has too many, or the accept queue is full */
    CONNECTIONS_RESPONSE_CUT, /* closed: the worker holds too many bytes of responses */
    CONNECTIONS_UPLOAD_CUT,   /* closed: the worker holds too many bytes of uploads */
    CONNECTION_TABLE_EVENTS
};
void connection_table_count_event(struct connection_table *c, enum connection_table_event event);
uint64_t connection_table_event_count(const struct connection_table *c,
                                      enum connection_table_event event);

#endif
