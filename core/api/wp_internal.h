/*
 * Bulk sync: a shop's plugin sends posts, products and coupons in batches. Worker processes.
 *
 *   wp.c               handshake, status, shared functions
 *   wp_sync.c          a batch: envelope → items → one change
 *   wp_sync_response.c the result of each item
 *   wp_item.c          an item before it is parsed
 *   wp_document.c      converts a post or product into a document
 *   wp_coupons.c       converts a coupon
 */
#ifndef ASSAY_API_WP_H
#define ASSAY_API_WP_H

#include "core/api/api_internal.h"

/* Indexes into r->values: the fields of each route, in the order of their tables in routes.c. */
enum { WP_HANDSHAKE_SITE, WP_HANDSHAKE_PLUGIN, WP_HANDSHAKE_COMMERCE, WP_HANDSHAKE_WORDPRESS };
enum { WP_AGENT, WP_SITE, WP_PLUGIN, WP_ZONE, WP_SYNC_ID, WP_COMPLETE, WP_ACTION, WP_ITEMS };
enum { WP_STATUS_AGENT };
enum { WP_PENDING_CONVERSATION };

request_fn wp_handshake, wp_status, wp_posts_sync, wp_products_sync, wp_posts_changed,
    wp_products_changed, wp_coupons_sync, wp_coupons_pending;

extern const char *const wp_kind_names[SYNCED_KINDS]; /* "posts", "products", "coupons" */

/* wp_version(body): a version for reply_etag, computed from the body. */
uint64_t wp_version(struct str body);

/*
 * wp_check_sender(r, site, plugin, host, errors): add the mistakes of site_url and plugin_version
 * to ${errors}. ${host}: the host of the site, lower case, punycode, without www. and port.
 */
void wp_check_sender(struct request *r, const struct value *site, const struct value *plugin,
                     struct str *host, struct buf *errors);

/*
 * Why an item is refused: ${message} has the first mistake, ${errors} all ${count} mistakes by
 * field (fields.h). Initialise with zeros; wp_mistake_reset frees and zeroes it.
 */
struct wp_mistake {
    const char *code; /* error code; NULL: no mistake */
    char message[200];
    unsigned count;
    const char *field; /* field of the last mistake */
    struct buf errors;
    bool collects; /* continue after a mistake to find all of them */
};
#define WP_TOO_COMPLEX "its HTML takes too long to parse; use less nesting"
void wp_mistake_reset(struct wp_mistake *mistake);
/*
 * wp_mistake_add(mistake, field, format, …): add a mistake of ${field} (static; NULL: of the item
 * as a whole). Only the first mistake of a field is added.
 * wp_continues(mistake): true if the next field is to be checked.
 */
void wp_mistake_add(struct wp_mistake *mistake, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool wp_continues(const struct wp_mistake *mistake);

/* ---- wp_item.c ---- */

/*
 * The parts of an item that decide whether the rest is needed. They are read without parsing the
 * whole item.
 */
struct wp_item {
    struct str raw;
    uint64_t wp_id;                    /* 0: none */
    struct str content_hash;           /* empty: none */
    struct str modified_at, action;    /* empty: none */
    bool modified_wrong, action_wrong; /* sent, but not a string */
    struct json_object *json;          /* NULL: not parsed yet */
    bool decoded;                      /* the texts above point into json */
};
/*
 * wp_item_read(raw, out): ${raw} is well-formed JSON of any type.
 * wp_item_json(item): the item, parsed; NULL if it is not an object or memory is short. Pass it to
 * wp_document in either case.
 * wp_item_free(item): free the parsed item; ${raw} stays.
 */
void wp_item_read(struct str raw, struct wp_item *out);
struct json_object *wp_item_json(struct wp_item *item);
void wp_item_free(struct wp_item *item);
/* wp_item_hash(item, out): hash of content_hash or, without it, of the item's text. */
bool wp_item_hash(const struct wp_item *item, uint8_t out[16]);
/* wp_item_modified(item, out, mistake): modified_at; 0 if it was not sent. */
bool wp_item_modified(const struct wp_item *item, int64_t *out, struct wp_mistake *mistake);

/*
 * wp_text(item, name, out): a string member.
 * wp_member(item, name): a member; NULL if it is missing or null.
 */
bool wp_text(struct json_object *item, const char *name, struct str *out);
struct json_object *wp_member(struct json_object *item, const char *name);

/* ---- wp_document.c ---- */

/*
 * wp_document(kind, item, texts, out, mistake): convert a post or product into ${out}, except its
 * date. Its texts are in ${texts}, which the caller frees. False: ${mistake} has all mistakes, in
 * addition to earlier ones.
 */
bool wp_document(enum synced_kind kind, struct json_object *item, struct buf *texts,
                 struct store_synced *out, struct wp_mistake *mistake);

/* ---- wp_coupons.c ---- */

/*
 * wp_coupon(item, zone, texts, out, mistake): as wp_document; ${zone}: the shop's time zone.
 * wp_coupon_code(item, out): the coupon's code, trimmed.
 */
bool wp_coupon(struct json_object *item, struct str zone, struct buf *texts,
               struct store_coupon *out, struct wp_mistake *mistake);
bool wp_coupon_code(struct json_object *item, struct str *out);

#define WP_COUPON_TYPES 3
extern const char *const wp_coupon_types[WP_COUPON_TYPES]; /* names by enum coupon_type */

#endif
