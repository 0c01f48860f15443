/* For tests of synced content: a store with one agent, batches of items, and what is stored. */
#ifndef ASSAY_T_STORE_SYNCED_KIT_H
#define ASSAY_T_STORE_SYNCED_KIT_H

#include "t/kit/store.h"

#define SITE STR("shop.example")

extern struct kit kit;
extern uint64_t workspace;
extern struct ulid agent;

/* begin(): a new store with an agent. end(): checks and closes the store. */
void begin(void);
void end(void);

/* The items of a batch. row(r, …): adds one, whose title has the number ${content}. */
struct rows {
    struct buf data;
};
void row(struct rows *r, enum sync_action action, uint64_t wp_id, int content, int64_t modified_at);

/*
 * send_kind(r, kind, sync_id, complete): sends the batch; "" is no sync_id. send_products: must
 * succeed. one(…): a batch of one product; its mark. complete(sync_id): an empty last batch; how
 * many items it deletes.
 */
struct store_answer send_kind(struct rows *r, enum synced_kind kind, const char *sync_id,
                              bool complete);
struct store_answer send_products(struct rows *r, const char *sync_id, bool complete);
enum synced_mark one(enum sync_action action, uint64_t wp_id, int content, int64_t modified_at,
                     const char *sync_id);
uint64_t complete(const char *sync_id);

/*
 * coupons(codes, count, amount): sends the whole set, each of ${amount} percent. A code that begins
 * with "!" is a coupon that the shop could not read: it counts as seen.
 */
struct store_answer coupons(const char *const *codes, size_t count, int64_t amount);

/*
 * there(kind): the stored items. shown(): "1:7 2:8", each product and its content. counted(): their
 * number, as the collection counts them.
 */
struct there {
    size_t count;
    uint64_t ids[1024], documents[1024];
    char titles[1024][32];
    enum store_status status;
};
struct there *there(enum synced_kind kind);
const char *shown(void);
uint64_t counted(void);

#endif
