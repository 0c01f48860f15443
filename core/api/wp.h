/*
 * Bulk sync (api.md §7): a shop's plugin sends posts, products and coupons in batches. Worker
 * processes.
 *
 *   wp.c         handshake, status, and what the handlers share
 *   wp_sync.c    a batch on its way: envelope → items → one change → what became of each
 *   wp_items.c   an item as the shop sends it into a document
 *   wp_coupons.c a coupon likewise
 */
#ifndef ASSAY_API_WP_H
#define ASSAY_API_WP_H

#include "core/api/api.h"

/* The fields of each route, in the order of their tables in routes.c. */
enum { WP_HAND_SITE, WP_HAND_PLUGIN, WP_HAND_COMMERCE, WP_HAND_WORDPRESS };
enum { WP_AGENT, WP_SITE, WP_PLUGIN, WP_ZONE, WP_SYNC_ID, WP_COMPLETE, WP_ACTION, WP_ITEMS };
enum { WP_STATUS_AGENT };
enum { WP_PENDING_CONVERSATION };

request_fn wp_handshake, wp_status, wp_posts_sync, wp_products_sync, wp_posts_changed,
    wp_products_changed, wp_coupons_sync, wp_coupons_pending;

/* wp_reply(r, status, body): {"data":…}, never kept by caches. */
void wp_reply(struct request *r, int status, struct str body);

/* wp_version(body): what reply_etag takes of an answer that has no version but what it says. */
uint64_t wp_version(struct str body);

/*
 * wp_site(r, text, out): the host of a site: lower case, punycode, without www. and port. False: it
 * is no http or https URL.
 */
bool wp_site(struct request *r, struct str text, struct str *out);

/*
 * Why an item cannot be taken, as its result tells: the first mistake in ${message}, each of
 * ${count} by its field in ${errors} (fields.h). Zeroed at first; wp_mistake_reset frees and zeroes
 * it.
 */
struct wp_mistake {
    const char *code; /* of an error; NULL: nothing is wrong */
    char message[200];
    unsigned count;
    const char *field; /* of the newest */
    struct buf errors;
    bool collects; /* an item is read to its end whatever is wrong */
};
#define WP_TOO_COMPLEX "its HTML takes too long to read: nest less"
void wp_mistake_reset(struct wp_mistake *mistake);
/*
 * wp_wrong(mistake, field, format, …): what is wrong with ${field}, static, which is told once;
 * NULL: with the item as a whole.
 * wp_goes_on(mistake): whether to look at the next field.
 */
void wp_wrong(struct wp_mistake *mistake, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool wp_goes_on(const struct wp_mistake *mistake);

/* ---- wp_items.c ---- */

/*
 * An item as it stands in the body, and what decides whether more of it has to be looked at: so
 * much is read without parsing all of it.
 */
struct wp_item {
    struct str raw;
    uint64_t wp_id;                   /* 0: it has none */
    struct str content_hash;          /* empty: none */
    struct str modified_at, action;   /* empty: none */
    bool modified_wrong, action_wrong; /* sent, but not as a string */
    struct json_object *json;         /* parsed; NULL: not yet */
    bool decoded;                     /* the texts above lie in it */
};
/*
 * wp_item_read(raw, out): ${raw} is well-formed JSON, whatever it is. wp_item_json(item): all of
 * it, parsed; NULL where that is no object, or memory is short: to be passed on to wp_document all
 * the same. wp_item_free(item): its tree; ${raw} stays.
 */
void wp_item_read(struct str raw, struct wp_item *out);
struct json_object *wp_item_json(struct wp_item *item);
void wp_item_free(struct wp_item *item);
/*
 * wp_item_hash(item, out): bytes that are equal where content_hash is, or without one all of its
 * text.
 */
bool wp_item_hash(const struct wp_item *item, uint8_t out[16]);
/* wp_item_modified(item, out, mistake): modified_at, 0 where it was not sent. */
bool wp_item_modified(const struct wp_item *item, int64_t *out, struct wp_mistake *mistake);

/*
 * wp_document(kind, item, texts, out, mistake): what the shop says of a post or product, in ${out},
 * but for its date; its texts lie in ${texts}, which the caller frees. False: ${mistake} says why
 * not, with all that is wrong with its fields, beside what it said before.
 */
bool wp_document(enum synced_kind kind, struct json_object *item, struct buf *texts,
                 struct store_synced *out, struct wp_mistake *mistake);

/*
 * wp_text(item, name, out): a member that is a string. wp_member(item, name): a member that is not
 * null, or NULL.
 */
bool wp_text(struct json_object *item, const char *name, struct str *out);
struct json_object *wp_member(struct json_object *item, const char *name);

/* ---- wp_coupons.c ---- */

/*
 * wp_coupon(item, zone, texts, out, mistake): as wp_document; ${zone}: the shop's.
 * wp_coupon_code(item, out): its code, trimmed.
 */
bool wp_coupon(struct json_object *item, struct str zone, struct buf *texts,
               struct store_coupon *out, struct wp_mistake *mistake);
bool wp_coupon_code(struct json_object *item, struct str *out);

#endif
