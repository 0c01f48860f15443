/*
 * Synced records: posts, products and coupons of an agent. Part of store.h, whose rules
 * about snapshots, borrowed values, callbacks and changes apply.
 *
 * A collection is what one site sends of one kind to one agent. The shop's own number (wp_id)
 * identifies an item in it. An existing item has a document: its texts, reduced to plain text by
 * the sender of the change, and its prices. Document ids come from one counter and are never
 * reused; an item that returns after its deletion gets a new one.
 *
 * Full sync: the first batch with a new sync_id begins a generation. Each item stores the newest
 * generation in which it was seen; items sent without a sync_id count for the newest one begun.
 * Completing a generation hides all items last seen before it at once; their rows are deleted in
 * batches. An item exists if it has a document and was seen in the last complete generation or
 * later.
 */
#ifndef ASSAY_STORE_SYNCED_H
#define ASSAY_STORE_SYNCED_H

#include "store/ulid.h"

#define STORE_BATCH_MAX 100         /* items of a batch */
#define STORE_SYNCED_TEXT_MAX 65536 /* bytes of a document's plain text; the sender cuts the rest */
#define STORE_SYNCED_SHORT_MAX 2048 /* bytes of each of its other texts except the taxonomy */
#define STORE_SYNCED_TAXONOMY_MAX 8192 /* bytes of the taxonomy */
#define STORE_COUPON_CODE_MAX 256      /* bytes of a coupon's code */
#define STORE_COUPON_LIST_MAX 1000     /* products in one of a coupon's lists */
#define STORE_SITE_MAX 255             /* bytes of a site's host */
#define STORE_SITES_MAX 100            /* sites that send items of one kind to one agent */
#define STORE_SYNCS_OPEN 10000 /* full syncs of a collection that can be completed: the last ones */
#define STORE_SYNCS_KEPT 1000  /* older ones whose sync_id is still known */

enum synced_kind { SYNCED_POST, SYNCED_PRODUCT, SYNCED_COUPON, SYNCED_KINDS };

/*
 * Money: whole ten-thousandths of the currency's unit ("12.5" is 125000), also for a coupon's
 * percentage. More than four decimals are rounded half up. money_minor_units: rounded half up to
 * the minor unit of the currency, of which 10^${exponent} make one unit.
 */
#define MONEY_SCALE 10000
#define MONEY_NONE (-1)
int64_t money_minor_units(int64_t money, unsigned exponent);

enum stock_status { STOCK_UNKNOWN, STOCK_IN, STOCK_OUT, STOCK_BACKORDER };

/* A document. Texts are UTF-8; an empty one was not sent. */
struct store_synced {
    uint64_t id;         /* of the document */
    uint64_t collection; /* id */
    uint64_t wp_id;
    uint64_t change; /* number of the change that set its texts: answers_log.h */
    struct ulid agent;
    enum synced_kind kind; /* SYNCED_POST or SYNCED_PRODUCT */
    int64_t modified_at;   /* by the shop's clock, ms; 0: not sent */
    int64_t synced_at;     /* when this content was stored, by the server's clock */
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
    int64_t price, regular_price, sale_price; /* in MONEY_SCALE; MONEY_NONE: not sent */
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
    int64_t expires_at; /* ms since the epoch, UTC: valid until just before; 0: never expires */
    struct str products,
        excluded; /* wp_ids, each a little-endian uint64 (coupon_product); empty: no list */
};

/* coupon_product(list, i): the i-th product of a list. coupon_products(list): their number. */
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
    struct str site;      /* host; empty for coupons, which belong to the agent as a whole */
    uint64_t count;       /* existing items, exact */
    uint64_t generations; /* the newest one begun; 0: none */
    uint64_t complete;    /* the newest complete one; 0: none */
    int64_t completed_at; /* when it was completed; 0: never */
    int64_t synced_at;    /* time of the last batch */
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
 * store_synced_get(s, id, done, arg): a document; STORE_NOT_FOUND if its item, agent or workspace
 * does not exist. The caller checks ${agent}.
 */
void store_synced_get(struct store *s, uint64_t id, store_synced_fn *done, void *arg);

/* An item as known before it is sent again. */
struct store_item {
    bool there;
    int64_t modified_at;
    uint8_t hash[16];
};
/*
 * store_items_look(s, agent, site, kind, wp_ids, count, out): each item in that order; all as
 * missing if the store cannot be read.
 */
void store_items_look(struct store *s, const struct ulid *agent, struct str site,
                      enum synced_kind kind, const uint64_t *wp_ids, size_t count,
                      struct store_item *out);

/*
 * store_synced_each(s, agent, kind, each, arg): ${each} for every existing document of the agent,
 * by site and wp_id, then once with STORE_NOT_FOUND and NULL. For checks and tests: it reads all of
 * them.
 */
void store_synced_each(struct store *s, const struct ulid *agent, enum synced_kind kind,
                       store_synced_fn *each, void *arg);

/*
 * store_coupon_get(s, agent, code, done, arg): by code, ignoring ASCII case and surrounding spaces.
 * store_coupon_each: by code, then STORE_NOT_FOUND and NULL. store_collection_each: all of an
 * agent, then STORE_NOT_FOUND and NULL.
 */
void store_coupon_get(struct store *s, const struct ulid *agent, struct str code,
                      store_coupon_fn *done, void *arg);
void store_coupon_each(struct store *s, const struct ulid *agent, store_coupon_fn *each, void *arg);
void store_collection_each(struct store *s, const struct ulid *agent, store_collection_fn *each,
                           void *arg);

/*
 * store_pending_coupon_each(s, conversation, now_ms, each, arg): the pending coupons of a
 * conversation (CHANGE_COUPON_PENDING) that have not expired, as typed, oldest first, then once
 * with STORE_NOT_FOUND and NULL. The caller checks whose conversation it is.
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
    /* an upsert of unchanged content, without a document; STORE_AGAIN if it changed meanwhile */
    SYNC_SAME,
    SYNC_DELETE,
    SYNC_SEEN, /* the item failed and does not change, but it exists in the shop */
};

/*
 * sync_pack(out, action, wp_id, hash, modified_at, document): append a row. ${hash}: 16 bytes,
 * equal for equal content. ${document}: of a SYNC_UPSERT; only its texts and prices count. The rows
 * of a batch have different wp_ids, at most STORE_BATCH_MAX of them.
 */
void sync_pack(struct buf *out, enum sync_action action, uint64_t wp_id, const uint8_t hash[16],
               int64_t modified_at, const struct store_synced *document);

/*
 * coupon_pack(out, coupon): append a row. coupon_pack_seen(out, code): a coupon that failed and
 * does not change.
 */
void coupon_pack(struct buf *out, const struct store_coupon *coupon);
void coupon_pack_seen(struct buf *out, struct str code);

/*
 * Result of each row, in the order of the rows; all fit an answer's two ids. SYNC_SEEN rows answer
 * SYNCED_FAILED, so that a repeated batch gets the first answer. It shares its number with
 * SYNCED_DELETED: no batch has both.
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
