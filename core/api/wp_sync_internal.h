/* A batch of bulk sync, shared by wp_sync.c and wp_sync_response.c. */
#ifndef ASSAY_API_WP_SYNC_H
#define ASSAY_API_WP_SYNC_H

#include "core/api/wp_internal.h"
#include "core/async/thread_pool.h"
#include "core/http/admission_queue.h"

/* The result of an item. */
struct result {
    struct wp_item item;
    struct store_item stored;
    struct str code; /* coupons only */
    struct wp_mistake mistake;
    bool sent;  /* the change has a row for it */
    size_t row; /* index of the row */
};

/* The thread uses only the batch's own memory, because the request may end first. */
struct batch {
    struct pool_job job;
    struct request *r; /* event loop only */
    struct admission admission;
    enum synced_kind kind;
    struct ulid agent;
    struct str site;
    bool deletes;                /* the action is delete */
    size_t count, at, row_count; /* at: the next item to process */
    struct result *results;      /* one more than allowed */
    char *text;                  /* copies of the items and the time zone */
    struct str zone;             /* of the shop, for coupons */
    bool send_all; /* send all items: the store has changed since unchanged items were skipped */
    struct buf rows;
};

/* wp_sync_render(out, b, answer): append the result of each item and their counts. */
void wp_sync_render(struct buf *out, const struct batch *b, const struct store_answer *answer);

#endif
