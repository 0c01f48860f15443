#include "config.h"

#include "core/cluster/position.h"

#include <stdarg.h>
#include <stdio.h>

#define JOIN "copy the store of another node by `assay cluster join`"
#define UPGRADE "upgrade this node to the version of the others; `assay cluster status` shows it"
#define ASSAY_VERSION "Assay " PACKAGE_VERSION
#define OTHER "correct cluster.log, or replace the store by `assay cluster join --replace`"
#define LOST "the log lost entries: choose a node by `assay cluster new-log`, and " JOIN

static void refuse(char why[POSITION_WHY], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(char why[POSITION_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, POSITION_WHY, format, args);
    va_end(args);
}

bool position_is(const struct cluster_log_head *head, const struct store_position *position)
{
    return head->sequence == position->sequence &&
           memcmp(head->chain, position->chain, STORE_CHAIN_BYTES) == 0;
}

/* ---- formats ---- */

static const char *own_formats(char out[64])
{
    const struct rows_formats *own = &store_rows_formats;
    if (own->oldest == own->newest)
        snprintf(out, 64, "format %u", own->newest);
    else
        snprintf(out, 64, "formats %u to %u", own->oldest, own->newest);
    return out;
}

bool position_reads(const struct cluster_log_head *head, char why[POSITION_WHY])
{
    char own[64], first[96];
    const uint32_t format = head->format;
    why[0] = '\0';
    if (format == 0 || store_rows_reads(format))
        return true;
    snprintf(first, sizeof(first), "first upgrade all nodes to a version that reads format %u",
             format + 1);
    refuse(why, "the log is written in format %u, and " ASSAY_VERSION " reads %s: %s", format,
           own_formats(own), format > store_rows_formats.newest ? UPGRADE : first);
    return false;
}

static void refuse_entry(const struct cluster_log_entry *e, char why[POSITION_WHY])
{
    char own[64];
    refuse(why, "entry %llu of the log has format %u, and " ASSAY_VERSION " reads %s: %s",
           (unsigned long long)e->sequence, e->format, own_formats(own),
           e->format > store_rows_formats.newest ? UPGRADE : JOIN);
}

/* ---- positions ---- */

/* Compares the store's position with the entry that the log has there. */
static enum cluster_log_status compare_entry(struct cluster_log *l, const struct store_position *p,
                                             char why[POSITION_WHY])
{
    uint8_t chain[STORE_CHAIN_BYTES];
    const unsigned long long at = p->sequence;
    enum cluster_log_status status = l->engine->chain(l, p->sequence, chain);
    if (status == CLUSTER_LOG_NONE)
        refuse(why, "the log has no entry %llu, the last one of this store: it was trimmed; " JOIN,
               at);
    else if (status == CLUSTER_LOG_OK && memcmp(chain, p->chain, sizeof(chain)) != 0)
        refuse(why, "entry %llu of the log is not the one of this store; " LOST, at);
    return status == CLUSTER_LOG_NONE ? CLUSTER_LOG_OK : status;
}

static void compare_end(const struct store_position *p, const struct cluster_log_head *head,
                        char why[POSITION_WHY])
{
    const unsigned long long at = p->sequence;
    if (position_is(head, p))
        return;
    if (at == 0)
        refuse(why, "the log begins with the store of another node; " JOIN);
    else
        refuse(why, "entry %llu, the end of the log, is not the one of this store; " LOST, at);
}

enum cluster_log_status position_compare(struct cluster_log *l, struct log_place *place,
                                         const struct cluster_log_head *head,
                                         char why[POSITION_WHY])
{
    struct store_position *p = &place->position;
    why[0] = '\0';
    if (!place->known && !place->empty)
        refuse(why, "data_dir has records that are not of this log; " JOIN
                    ", or begin a log with this store by `assay cluster new-log`");
    else if (!place->known)
        memcpy(p->log, head->log, sizeof(p->log));
    else if (memcmp(p->log, head->log, sizeof(p->log)) != 0)
        refuse(why,
               "cluster.log names a database with another log than this store follows: " OTHER);
    else if (p->sequence > head->sequence)
        refuse(why, "this store has entry %llu, and the log ends before it; " LOST,
               (unsigned long long)p->sequence);
    if (why[0] != '\0' || !position_reads(head, why))
        return CLUSTER_LOG_OK;
    if (p->sequence == head->sequence)
        compare_end(p, head, why);
    else if (p->sequence != 0 && l != NULL) /* the first entry has the hash of what precedes it */
        return compare_entry(l, p, why);
    return CLUSTER_LOG_OK;
}

bool position_continues(const struct store_position *position, const struct cluster_log_entry *e,
                        char why[POSITION_WHY])
{
    uint8_t chain[STORE_CHAIN_BYTES];
    const unsigned long long at = e != NULL ? e->sequence : position->sequence;
    why[0] = '\0';
    if (e == NULL)
        refuse(why, "the log has no entry after %llu: it was trimmed; " JOIN, at);
    else if (e->sequence != position->sequence + 1)
        refuse(why, "the next entry of the log is %llu: those before it were trimmed; " JOIN, at);
    else if (!store_rows_reads(e->format))
        refuse_entry(e, why);
    else if (!chain_next(position->chain, e->sequence, e->epoch, e->format, e->rows, chain))
        refuse(why, "out of memory");
    else if (memcmp(chain, e->chain, sizeof(chain)) != 0)
        refuse(why, "entry %llu of the log does not continue what this store has; " JOIN, at);
    return why[0] == '\0';
}
