/*
 * What a shop's bulk sync brought: posts, products and coupons of an agent (api.md §7). A part of store.h, which includes it; what is said
 * there about snapshots, borrowed values, callbacks and changes holds here too.
 *
 * A collection is what one site sends of one kind to one agent. An item of it is known by the shop's own number (wp_id). An item that is
 * there has a document: its texts, reduced to plain ones by who sent the change, and its prices. Documents have ids of their own, one
 * growing counter over the whole store, never given twice; an item that comes back after it was deleted has a new one.
 *
 * Full sync: the first batch under a sync_id that the collection has not seen begins a generation. Each item notes the newest generation it
 * was seen in; what comes without a sync_id counts as seen in the newest begun. Completing a generation makes all that was last seen before
 * it invisible at once; their rows are purged in slices. So an item is there if it has a document and was seen in the last complete
 * generation or later.
 */
#ifndef ASSAY_STORE_SYNCED_H
#define ASSAY_STORE_SYNCED_H

#include "store/ulid.h"

#define STORE_BATCH_MAX 100 /* items of a batch */
#define STORE_SYNCED_TEXT_MAX                                                                      \
    65536 /* bytes of a document's plain text; what is beyond is left out by who makes it */
#define STORE_SYNCED_SHORT_MAX 2048    /* bytes of each of its other texts but the taxonomy */
#define STORE_SYNCED_TAXONOMY_MAX 8192 /* bytes of that */
#define STORE_COUPON_CODE_MAX 256      /* bytes of a coupon's code */
#define STORE_COUPON_LIST_MAX 1000     /* products in one of a coupon's lists */
#define STORE_SITE_MAX 255             /* bytes of a site's host */
#define STORE_SITES_MAX 100            /* sites that send things of one kind to one agent */
#define STORE_SYNCS_OPEN                                                                           \
    10000 /* full syncs of one collection that can be completed: the last that were begun */
#define STORE_SYNCS_KEPT 1000 /* and older ones whose sync_id is known still */

enum synced_kind { SYNCED_POST, SYNCED_PRODUCT, SYNCED_COUPON, SYNCED_KINDS };

/*
 * Money, exactly: whole numbers of ten-thousandths of the currency's unit ("12.5" is 125000), for a coupon's percentage likewise. What was
 * sent with more than four decimals was rounded half up. money_minor_units: rounded half up to the currency's minor units, of which
 * 10^${exponent} make one.
 */
#define MONEY_SCALE 10000
#define MONEY_NONE (-1)
int64_t money_minor_units(int64_t money, unsigned exponent);

enum stock_status { STOCK_UNKNOWN, STOCK_IN, STOCK_OUT, STOCK_BACKORDER };

/* A document as it is stored and read. Texts are UTF-8; an empty one was not sent. */
struct store_synced {
    uint64_t id;         /* of the document */
    uint64_t collection; /* id */
    uint64_t wp_id;
    uint64_t change; /* number of the change that gave it its texts: answers_log.h */
    struct ulid agent;
    enum synced_kind kind; /* SYNCED_POST or SYNCED_PRODUCT */
    int64_t modified_at;   /* by the shop's clock, ms; 0: not told */
    int64_t synced_at;     /* when it was stored as it is, by ours */
    struct str title;      /* plain; a product's name */
    struct str taxonomy;   /* plain: terms, categories and attributes, one a line */
    struct str text;       /* plain: the excerpt or short description, a line, then the content */
    struct str url;        /* permalink, http or https */
    struct str language;   /* of a post, as sent */
    struct str type;       /* post_type of a post */
    struct str image_url;  /* of a product, http or https */
    struct str sku;
    char currency[4];                         /* of a product: ISO 4217, zero-terminated */
    unsigned exponent;                        /* of the currency: decimals of its minor unit */
    int64_t price, regular_price, sale_price; /* in MONEY_SCALE; MONEY_NONE: not told */
    bool on_sale;
    enum stock_status stock;
};

enum coupon_type { COUPON_PERCENT, COUPON_FIXED_CART, COUPON_FIXED_PRODUCT };

struct store_coupon {
    struct ulid agent;
    struct str code;  /* as the shop writes it */
    struct str label; /* plain; may be empty */
    enum coupon_type type;
    int64_t amount;           /* in MONEY_SCALE: a percentage, or money of the cart's currency */
    int64_t minimum, maximum; /* of the cart's sum, in MONEY_SCALE; MONEY_NONE: no bound */
    bool exclude_sale_items;
    uint64_t usage_limit; /* UINT64_MAX: no limit */
    uint64_t usage_count;
    int64_t
        expires_at; /* ms since the epoch, UTC, the shop's zone worked out already: good until just before; 0: never */
    struct str products,
        excluded; /* wp_ids, each a little-endian uint64 (coupon_product); empty: none are named */
};

/* coupon_product(list, i): the i-th of a coupon's lists; coupon_products(list): how many. */
static inline size_t coupon_products(struct str list)
{
    return list.n / sizeof(uint64_t);
}
uint64_t coupon_product(struct str list, size_t i);

/* What one site sent of one kind to one agent. */
struct store_collection {
    uint64_t id;
    struct ulid agent;
    enum synced_kind kind;
    struct str site;      /* host; empty for coupons, which are the agent's as a whole */
    uint64_t count;       /* items that are there, exact */
    uint64_t generations; /* the newest begun; 0: none yet */
    uint64_t complete;    /* the newest that is complete; 0: none */
    int64_t completed_at; /* when that was; 0: never */
    int64_t synced_at;    /* when a batch came last */
    struct str sync_id;   /* of the newest complete generation; may be empty */
};

struct store;

/* ---- reading ---- */

typedef void store_synced_fn(void *arg, enum store_status status,
                             const struct store_synced *document);
typedef void store_coupon_fn(void *arg, enum store_status status,
                             const struct store_coupon *coupon);
typedef void store_collection_fn(void *arg, enum store_status status,
                                 const struct store_collection *collection);

/*
 * store_synced_get(s, id, done, arg): a document; STORE_NOT_FOUND where its item, its agent or its workspace is not there (any more),
 * purged or not. Whose it is is for the caller to judge, by ${agent}.
 */
void store_synced_get(struct store *s, uint64_t id, store_synced_fn *done, void *arg);

/* What is known of an item before it is sent again. */
struct store_item {
    bool there;
    int64_t modified_at;
    uint8_t hash[16];
};
/*
 * store_items_look(s, agent, site, kind, wp_ids, count, out): of each, in that order; all as not there where the store cannot be read.
 */
void store_items_look(struct store *s, const struct ulid *agent, struct str site,
                      enum synced_kind kind, const uint64_t *wp_ids, size_t count,
                      struct store_item *out);

/*
 * store_synced_each(s, agent, kind, each, arg): ${each} for every document of the agent that is there, by site and wp_id, then once with
 * STORE_NOT_FOUND and NULL. For checks and tests: the cost is that of all of them.
 */
void store_synced_each(struct store *s, const struct ulid *agent, enum synced_kind kind,
                       store_synced_fn *each, void *arg);

/*
 * store_coupon_get(s, agent, code, done, arg): by code, whatever its case (ASCII) and the spaces around it. store_coupon_each: by code,
 * then STORE_NOT_FOUND and NULL. store_collection_each: all of an agent's, then STORE_NOT_FOUND and NULL.
 */
void store_coupon_get(struct store *s, const struct ulid *agent, struct str code,
                      store_coupon_fn *done, void *arg);
void store_coupon_each(struct store *s, const struct ulid *agent, store_coupon_fn *each, void *arg);
void store_collection_each(struct store *s, const struct ulid *agent, store_collection_fn *each,
                           void *arg);

/*
 * store_pending_coupon_each(s, conversation, now_ms, each, arg): the codes that the visitor of a conversation staged (CHANGE_COUPON_STAGE) and that
 * are good still, as they were typed, the oldest first, then once with STORE_NOT_FOUND and NULL. Whose conversation it is is for the
 * caller to judge.
 */
struct store_pending_coupon {
    struct str code;
    int64_t until;
};
typedef void store_pending_coupon_fn(void *arg, enum store_status status,
                                     const struct store_pending_coupon *coupon);
void store_pending_coupon_each(struct store *s, const struct ulid *conversation, int64_t now_ms,
                               store_pending_coupon_fn *each, void *arg);

/* ---- changing: what the data of a CHANGE_SYNC and a CHANGE_COUPONS is made of ---- */

enum sync_action {
    SYNC_UPSERT, /* with a document */
    SYNC_SAME, /* an upsert without one, since the store was seen to hold just that: STORE_AGAIN when it does not any more */
    SYNC_DELETE,
    SYNC_SEEN, /* it failed, so that nothing of it is changed, but it is in the shop */
};

/*
 * sync_pack(out, action, wp_id, hash, modified_at, document): append a row. ${hash}: 16 bytes that are equal where the content is;
 * ${document}: of a SYNC_UPSERT; its texts and prices count, who and where it is comes from the change. The rows of one batch have
 * different wp_ids, at most STORE_BATCH_MAX of them.
 */
void sync_pack(struct buf *out, enum sync_action action, uint64_t wp_id, const uint8_t hash[16],
               int64_t modified_at, const struct store_synced *document);

/* coupon_pack(out, coupon): append one; NULL ${coupon}->products and so on are empty. coupon_pack_seen(out, code): one that failed and stays. */
void coupon_pack(struct buf *out, const struct store_coupon *coupon);
void coupon_pack_seen(struct buf *out, struct str code);

/*
 * What became of each row, in the order of the rows; it fits an answer's two ids. Of a SYNC_SEEN row SYNCED_FAILED, so that who sends a batch
 * again is told what was told before, whatever fails this time. It is SYNCED_DELETED's number: no batch has both.
 */
enum synced_mark {
    SYNCED_QUEUED,
    SYNCED_UNCHANGED,
    SYNCED_STALE,
    SYNCED_DELETED,
    SYNCED_FAILED = SYNCED_DELETED
};
struct store_answer;
enum synced_mark synced_mark(const struct store_answer *answer, size_t row);

#endif
