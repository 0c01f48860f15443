/* A batch of bulk sync, shared by wp_sync.c and wp_sync_response.c. */
#ifndef ASSAY_API_WP_SYNC_H
#define ASSAY_API_WP_SYNC_H

#include "core/api/wp_internal.h"
#include "core/async/thread_pool.h"
#include "core/http/admission_queue.h"

/* The result of an item. */
struct result {
    struct wp_item item;
    struct store_item stored;  /* the stored item */
    struct str code;           /* coupons only */
    struct wp_mistake mistake; /* code NULL: none */
    bool sent;                 /* part of the change, */
    size_t row;                /* as this row */
};

/* The thread uses only the batch's own memory, because the request may end first. */
struct batch {
    struct pool_job job;
    struct request *r; /* event loop only */
    struct admission admission;
    enum synced_kind kind;
    struct ulid agent;
    struct str site;
    bool deletes; /* the action is delete */
    size_t count, at, row_count;
    struct result *results; /* one more than allowed */
    char *list;             /* copies of the items and the time zone */
    struct str zone;        /* of the shop, for coupons */
    bool send_all; /* send all items: the store has changed since unchanged items were skipped */
    struct buf rows;
};

/* wp_sync_render(out, b, answer): append the result of each item and their counts. */
void wp_sync_render(struct buf *out, const struct batch *b, const struct store_answer *answer);

#endif
