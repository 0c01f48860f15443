#include "core/api/coupon_internal.h"
#include "core/api/json_value_internal.h"
#include "core/api/discount_internal.h"
#include "core/api/money_internal.h"
#include "core/api/widget_internal.h"
#include "core/api/wp_internal.h"
#include "core/text/json_out.h"

#include <inttypes.h>

/* ---- the cart ---- */

/* Money is a string such as "12", "12.5" or "12.50", never a float. */
static bool is_money(struct json_object *value)
{
    int64_t money;
    return json_object_is_type(value, json_type_string) &&
           money_read(json_value_text(value), &money);
}

static bool is_count(struct json_object *value, int64_t most)
{
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) > 0 &&
           json_object_get_int64(value) <= most;
}

static bool item_valid(struct json_object *item)
{
    struct json_object *id = NULL, *quantity = NULL, *price = NULL, *on_sale = NULL;
    if (!json_object_is_type(item, json_type_object))
        return false;
    json_object_object_get_ex(item, "wp_id", &id);
    json_object_object_get_ex(item, "quantity", &quantity);
    json_object_object_get_ex(item, "price", &price);
    json_object_object_get_ex(item, "on_sale", &on_sale);
    return is_count(id, INT64_MAX) && is_count(quantity, 1000000) && is_money(price) &&
           (on_sale == NULL || json_object_is_type(on_sale, json_type_boolean));
}

static bool is_currency(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) && json_object_get_string_len(value) == 3 &&
           strspn(json_object_get_string(value), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

/* ${cart} is valid, except perhaps for its total. */
static void read_cart(struct json_object *cart, struct cart *out)
{
    struct json_object *items = NULL, *currency = NULL, *v = NULL;
    json_object_object_get_ex(cart, "items", &items);
    json_object_object_get_ex(cart, "currency", &currency);
    out->exponent = currency_exponent(json_value_text(currency));
    out->count = json_object_array_length(items);
    for (size_t i = 0; i < out->count; i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        struct cart_item *to = &out->items[i];
        *to = (struct cart_item){0};
        if (json_object_object_get_ex(item, "wp_id", &v))
            to->wp_id = (uint64_t)json_object_get_int64(v);
        if (json_object_object_get_ex(item, "quantity", &v))
            to->quantity = (uint64_t)json_object_get_int64(v);
        if (json_object_object_get_ex(item, "price", &v))
            money_read(json_value_text(v), &to->price);
        to->on_sale = json_object_object_get_ex(item, "on_sale", &v) && json_object_get_boolean(v);
    }
}

const char *coupon_cart_mistake(struct json_object *cart)
{
    struct json_object *currency = NULL, *items = NULL;
    if (!json_object_is_type(cart, json_type_object))
        return "must be an object";
    json_object_object_get_ex(cart, "currency", &currency);
    json_object_object_get_ex(cart, "items", &items);
    if (!is_currency(currency))
        return "must have a currency of three capital letters, such as USD";
    if (!json_object_is_type(items, json_type_array) ||
        json_object_array_length(items) > CART_ITEMS_MAX)
        return "must have items: an array of at most 200";
    for (size_t i = 0; i < json_object_array_length(items); i++)
        if (!item_valid(json_object_array_get_idx(items, i)))
            return "must have a wp_id, a quantity (whole numbers from 1) and a price (a decimal "
                   "string) in each item";
    struct cart read;
    read_cart(cart, &read);
    return cart_subtotal(&read) < 0 ? "has too large a total; check its prices and quantities"
                                    : NULL;
}

/* Items without on_sale get the value of the synced product. */
static void fill_on_sale(struct request *r, struct json_object *sent, struct cart *cart)
{
    struct json_object *items = NULL;
    json_object_object_get_ex(sent, "items", &items);
    for (size_t i = 0; i < cart->count; i++) {
        struct cart_item *item = &cart->items[i];
        if (!json_object_object_get_ex(json_object_array_get_idx(items, i), "on_sale", NULL))
            item->on_sale = store_on_sale(r->store, &r->session.agent, item->wp_id);
    }
}

/* ---- responses ---- */

static const char *const refusals[DISCOUNT_REFUSALS] = {
    [DISCOUNT_EXPIRED] = "This coupon has expired.",
    [DISCOUNT_USED_UP] = "This coupon has reached its usage limit.",
    [DISCOUNT_BELOW_MINIMUM] =
        "The cart is below the minimum of this coupon. Add items and try again.",
    [DISCOUNT_ABOVE_MAXIMUM] = "The cart is above the maximum of this coupon.",
    [DISCOUNT_OTHER_PRODUCTS] = "This coupon is not valid for these products.",
    [DISCOUNT_EXCLUDED] =
        "This coupon is not valid for some of these products. Remove them and try again.",
    [DISCOUNT_ON_SALE] =
        "This coupon is not valid for products on sale. Remove them and try again.",
};

/* without trailing zeros: "12.5" */
static void put_money(struct buf *out, int64_t money)
{
    char decimals[8];
    int n = snprintf(decimals, sizeof(decimals), "%04d", (int)(money % MONEY_SCALE));
    while (n > 0 && decimals[n - 1] == '0')
        n--;
    buf_printf(out, "\"%" PRId64 "%s%.*s\"", money / MONEY_SCALE, n > 0 ? "." : "", n, decimals);
}

static void put_coupon(struct buf *out, const struct store_coupon *c)
{
    buf_adds(out, "\"code\":");
    json_string(out, c->code);
    buf_printf(out, ",\"discount_type\":\"%s\",\"amount\":", wp_coupon_types[c->type]);
    put_money(out, c->amount);
    buf_adds(out, ",\"expires_at\":");
    json_time(out, c->expires_at);
}

static void reply_and_free(struct request *r, struct buf *body)
{
    api_reply_data_buf(r, 200, body);
    buf_free(body);
}

/* The response describes the coupon as it was when it was checked. */
static void pending_set(struct request *r, const struct store_answer *answer)
{
    const struct store_change *change = r->state;
    struct buf body = {0};
    if (answer->status != STORE_OK) {
        widget_refuse(r, answer->status);
        return;
    }
    buf_adds(&body, "{\"applied\":false,\"pending\":true,");
    buf_str(&body, change->data);
    buf_adds(&body, ",\"pending_until\":");
    json_time(&body, change->expires_at);
    buf_adds(&body, ",\"message\":\"The coupon will be applied in the cart.\"}");
    reply_and_free(r, &body);
}

static void set_pending(struct request *r, const struct store_coupon *c)
{
    struct buf json = {0};
    struct store_change *change = widget_change(r, CHANGE_COUPON_PENDING);
    put_coupon(&json, c);
    if (!buf_ok(&json)) {
        buf_free(&json);
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    change->text = api_copy(r, c->code);
    change->data = api_copy(r, buf_view(&json)); /* used for the response only */
    change->expires_at = r->now_ms + COUPON_PENDING_MS;
    buf_free(&json);
    request_change(r, change, pending_set);
}

static void reply_totals(struct request *r, const struct store_coupon *c, struct str currency,
                         unsigned exponent, const struct discount_totals *totals)
{
    struct buf body = {0};
    buf_adds(&body, "{\"applied\":true,\"pending\":false,");
    put_coupon(&body, c);
    buf_adds(&body, ",\"message\":\"The coupon is applied.\",\"totals\":{\"currency_code\":");
    json_string(&body, currency);
    buf_printf(&body,
               ",\"currency_minor_unit\":%u,\"total_discount\":\"%" PRId64
               "\",\"total_price\":\"%" PRId64 "\"}}",
               exponent, totals->discount, totals->price);
    reply_and_free(r, &body);
}

struct application {
    struct request *r;
    struct json_object *cart; /* NULL: not sent */
};

static void apply_to_cart(struct request *r, const struct store_coupon *coupon,
                          struct json_object *sent)
{
    struct cart *cart = request_alloc(r, sizeof(*cart));
    struct discount_totals *totals = request_alloc(r, sizeof(*totals));
    struct json_object *currency = NULL;
    json_object_object_get_ex(sent, "currency", &currency);
    read_cart(sent, cart);
    if (coupon->exclude_sale_items)
        fill_on_sale(r, sent, cart);
    enum discount_refusal why = discount_apply(coupon, cart, r->now_ms, totals);
    if (why == DISCOUNT_APPLIES)
        reply_totals(r, coupon, json_value_text(currency), cart->exponent, totals);
    else
        reply_error(r, ERR_INVALID_COUPON, "%s", refusals[why]);
}

static void coupon_found(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    const struct application *a = arg;
    if (status == STORE_NOT_FOUND) {
        reply_error(a->r, ERR_INVALID_COUPON, "This code is unknown. Check its spelling.");
        return;
    }
    if (status != STORE_OK) {
        reply_store_error(a->r, status);
        return;
    }
    enum discount_refusal why = coupon_usable(coupon, a->r->now_ms);
    if (why != DISCOUNT_APPLIES)
        reply_error(a->r, ERR_INVALID_COUPON, "%s", refusals[why]);
    else if (a->cart != NULL)
        apply_to_cart(a->r, coupon, a->cart);
    else
        set_pending(a->r, coupon);
}

void coupon_apply(struct request *r, struct str code, struct json_object *cart)
{
    struct application a = {r, cart};
    store_coupon_get(r->store, &r->session.agent, code, coupon_found, &a);
}

/* ---- pending coupons, for the shop ---- */

struct pending_rows {
    struct request *r;
    struct ulid agent;
    enum store_status status;
    bool any;
    const struct store_pending_coupon *row;
    struct buf body;
};

/* Leaves out coupons that have become unusable since they were applied. */
static void add_pending(void *arg, enum store_status status, const struct store_coupon *coupon)
{
    struct pending_rows *p = arg;
    if (status != STORE_OK || coupon_usable(coupon, p->r->now_ms) != DISCOUNT_APPLIES) {
        p->status = status == STORE_OK || status == STORE_NOT_FOUND ? p->status : status;
        return;
    }
    buf_adds(&p->body, p->any ? ",{" : "{");
    put_coupon(&p->body, coupon);
    buf_adds(&p->body, ",\"pending_until\":");
    json_time(&p->body, p->row->until);
    buf_adds(&p->body, "}");
    p->any = true;
}

static void pending_row_found(void *arg, enum store_status status,
                              const struct store_pending_coupon *row)
{
    struct pending_rows *p = arg;
    if (row == NULL) {
        p->status = status == STORE_NOT_FOUND ? p->status : status;
        return;
    }
    p->row = row;
    store_coupon_get(p->r->store, &p->agent, row->code, add_pending, p);
}

static void conversation_found(void *arg, enum store_status status,
                               const struct store_conversation *c)
{
    struct pending_rows *p = arg;
    p->status = status;
    if (status != STORE_OK)
        return;
    const struct ulid id = c->id;
    p->agent = c->agent;
    widget_put_id(&p->body, "{\"conversation_id\":", &id);
    buf_adds(&p->body, ",\"coupons\":[");
    store_pending_coupon_each(p->r->store, &id, p->r->now_ms, pending_row_found, p);
    buf_adds(&p->body, "]}");
}

void wp_coupons_pending(struct request *r)
{
    struct pending_rows p = {.r = r};
    struct ulid id;
    const struct value *sent = &r->values[WP_PENDING_CONVERSATION];
    if (!sent->sent) {
        reply_invalid(r, "conversation_id", "is required: the conversation's id");
        return;
    }
    p.status = ulid_parse(sent->text, &id) ? STORE_OK : STORE_NOT_FOUND;
    if (p.status == STORE_OK)
        store_conversation_get(r->store, r->workspace, &id, conversation_found, &p);
    if (p.status != STORE_OK)
        reply_store_error(r, p.status);
    else if (!buf_ok(&p.body))
        reply_error(r, ERR_UNAVAILABLE, NULL);
    else if (!reply_etag(r, wp_version(buf_view(&p.body))))
        api_reply_data(r, 200, buf_view(&p.body));
    buf_free(&p.body);
}
