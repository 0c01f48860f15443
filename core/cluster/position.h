/*
 * Does a store fit the log? Compared after each connection, since a log may have lost entries: a
 * standby without the last ones was promoted. And does this version read the log's format?
 */
#ifndef ASSAY_CLUSTER_POSITION_H
#define ASSAY_CLUSTER_POSITION_H

#include "core/cluster/cluster_log.h"

#define POSITION_WHY 512

/* What a store says of itself. ${empty}: it has no records. */
struct log_place {
    struct store_position position;
    bool known, empty; /* it has a position; it has no records */
};

/*
 * position_reads(head, why): does this version read the last entry, and so those that follow? If
 * not: ${why} is a sentence.
 * position_compare(l, place, head, why): ${why} is "" if the store may apply what follows its
 * position, else a sentence: what is wrong and what to do, the same while the log grows. A store
 * without records and position gets the position before the first entry. Other statuses than
 * CLUSTER_LOG_OK: of the log. ${l} NULL: without the entry of the position, which is right if
 * position_continues accepts the one after it.
 * position_continues(position, entry, why): is the entry the next one? If not: a sentence. NULL:
 * the log ends later, but has no next entry.
 */
bool position_reads(const struct cluster_log_head *head, char why[POSITION_WHY]);
enum cluster_log_status position_compare(struct cluster_log *l, struct log_place *place,
                                         const struct cluster_log_head *head,
                                         char why[POSITION_WHY]);
bool position_continues(const struct store_position *position, const struct cluster_log_entry *e,
                        char why[POSITION_WHY]);

/* position_is(head, position): does the log end there? */
bool position_is(const struct cluster_log_head *head, const struct store_position *position);

#endif
