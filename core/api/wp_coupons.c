/* Converts a coupon in the simple form or in WooCommerce's form. */
#include "core/api/wp_internal.h"

#include "core/api/money_internal.h"
#include "core/api/zone_internal.h"
#include "core/audit/plain_text.h"
#include "core/audit/text.h"

#include <endian.h>
#include <json-c/json.h>

const char *const wp_coupon_types[WP_COUPON_TYPES] = {[COUPON_PERCENT] = "percent",
                                                      [COUPON_FIXED_CART] = "fixed_cart",
                                                      [COUPON_FIXED_PRODUCT] = "fixed_product"};

#define PERCENT_MAX ((int64_t)100 * MONEY_SCALE)

bool wp_coupon_code(struct json_object *item, struct str *out)
{
    if (!json_object_is_type(item, json_type_object) || !wp_text(item, "code", out))
        return false;
    *out = text_trim(*out);
    return out->n > 0 && out->n <= STORE_COUPON_CODE_MAX;
}

static void read_optional_text(struct json_object *item, const char *name, struct str *out,
                               struct wp_mistake *mistake)
{
    if (wp_member(item, name) != NULL && !wp_text(item, name, out))
        wp_mistake_add(mistake, name, "must be a string");
    else if (wp_member(item, name) == NULL)
        *out = (struct str){"", 0};
}

/* "10%" or "5" */
static bool parse_simple_discount(struct str text, struct store_coupon *out)
{
    bool percent = text.n > 1 && text.p[text.n - 1] == '%';
    out->type = percent ? COUPON_PERCENT : COUPON_FIXED_CART;
    return money_read((struct str){text.p, text.n - percent}, &out->amount);
}

static void read_discount(struct json_object *item, struct store_coupon *out,
                          struct wp_mistake *mistake)
{
    struct str simple, type, amount;
    const unsigned before = mistake->count;
    size_t found = WP_COUPON_TYPES;
    read_optional_text(item, "discount", &simple, mistake);
    read_optional_text(item, "discount_type", &type, mistake);
    read_optional_text(item, "amount", &amount, mistake);
    if (mistake->count != before)
        return;
    for (size_t i = 0; i < WP_COUPON_TYPES; i++)
        if (str_eq(type, str_of(wp_coupon_types[i])))
            found = i;
    out->type = (enum coupon_type)found;
    if (type.n > 0 && found == WP_COUPON_TYPES)
        wp_mistake_add(mistake, "discount_type", "must be percent, fixed_cart or fixed_product");
    else if (type.n > 0 && !money_read(amount, &out->amount))
        wp_mistake_add(mistake, "amount", "must be a decimal string, such as \"10\"");
    else if (type.n == 0 && !parse_simple_discount(simple, out))
        wp_mistake_add(mistake, "discount",
                       "must be a percentage or an amount, such as \"10%%\" or \"5\"");
    else if (out->type == COUPON_PERCENT && out->amount > PERCENT_MAX)
        wp_mistake_add(mistake, type.n > 0 ? "amount" : "discount",
                       "must be at most 100 for a percentage");
}

/* A limit of the cart's total; absent and zero mean none. */
static void read_bound(struct json_object *item, const char *name, int64_t *out,
                       struct wp_mistake *mistake)
{
    struct str text;
    *out = MONEY_NONE;
    read_optional_text(item, name, &text, mistake);
    if (text.n > 0 && !money_read(text, out))
        wp_mistake_add(mistake, name, "must be a decimal string, such as \"50.00\"");
    else if (*out == 0)
        *out = MONEY_NONE;
}

static void read_number(struct json_object *item, const char *name, uint64_t *out,
                        struct wp_mistake *mistake)
{
    struct json_object *value = wp_member(item, name);
    *out = 0;
    if (value == NULL)
        return;
    if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
        wp_mistake_add(mistake, name, "must be a whole number");
    else
        *out = (uint64_t)json_object_get_int64(value);
}

static void read_products(struct json_object *item, const char *name, struct buf *texts,
                          size_t *count, struct wp_mistake *mistake)
{
    struct json_object *list = wp_member(item, name);
    *count = 0;
    if (list == NULL)
        return;
    bool good = json_object_is_type(list, json_type_array) &&
                json_object_array_length(list) <= STORE_COUPON_LIST_MAX;
    for (size_t i = 0; good && i < json_object_array_length(list); i++) {
        struct json_object *id = json_object_array_get_idx(list, i);
        good = json_object_is_type(id, json_type_int) && json_object_get_int64(id) > 0;
        uint64_t stored = good ? htole64((uint64_t)json_object_get_int64(id)) : 0;
        buf_add(texts, &stored, sizeof(stored));
        ++*count;
    }
    if (!good)
        wp_mistake_add(mistake, name, "must be an array of at most %d product ids",
                       STORE_COUPON_LIST_MAX);
}

/*
 * date_expires_gmt is UTC. Other times without a zone are in the shop's zone. With a date alone,
 * the coupon expires when that day begins, as in WooCommerce.
 */
static void read_expiry(struct json_object *item, struct str zone, struct store_coupon *out,
                        struct wp_mistake *mistake)
{
    struct str local, utc;
    read_optional_text(item, "expires_at", &local, mistake);
    read_optional_text(item, "date_expires_gmt", &utc, mistake);
    if (local.n > 0 && !zone_date(local, zone, &out->expires_at))
        wp_mistake_add(mistake, "expires_at",
                       "must be an RFC 3339 time, or a date such as 2026-05-07");
    else if (local.n == 0 && utc.n > 0 && !zone_date(utc, (struct str){NULL, 0}, &out->expires_at))
        wp_mistake_add(mistake, "date_expires_gmt", "must be a time, such as 2026-05-07T13:00:00");
}

static void read_sale_items(struct json_object *item, struct store_coupon *out,
                            struct wp_mistake *mistake)
{
    struct json_object *value = wp_member(item, "exclude_sale_items");
    if (value != NULL && !json_object_is_type(value, json_type_boolean))
        wp_mistake_add(mistake, "exclude_sale_items", "must be true or false");
    out->exclude_sale_items = value != NULL && json_object_get_boolean(value);
}

/* A label is one line, and is parsed on the event loop. */
#define LABEL_HTML_MAX ((size_t)2048)
#define LABEL_BUDGET_US 20000

bool wp_coupon(struct json_object *item, struct str zone, struct buf *texts,
               struct store_coupon *out, struct wp_mistake *mistake)
{
    struct str label;
    uint64_t left_us = LABEL_BUDGET_US;
    size_t named, excluded, at = texts->n;
    buf_reserve(texts, 1);
    *out = (struct store_coupon){0};
    if (!wp_coupon_code(item, &out->code))
        wp_mistake_add(mistake, "code", "is required: 1 to %d bytes", STORE_COUPON_CODE_MAX);
    read_discount(item, out, mistake);
    read_bound(item, "minimum_amount", &out->minimum, mistake);
    read_bound(item, "maximum_amount", &out->maximum, mistake);
    read_number(item, "usage_limit", &out->usage_limit, mistake);
    read_number(item, "usage_count", &out->usage_count, mistake);
    read_sale_items(item, out, mistake);
    read_expiry(item, zone, out, mistake);
    read_optional_text(item, "label", &label, mistake);
    read_products(item, "product_ids", texts, &named, mistake);
    read_products(item, "excluded_product_ids", texts, &excluded, mistake);
    if (mistake->code != NULL)
        return false;
    if (out->usage_limit == 0)
        out->usage_limit = UINT64_MAX;
    if (plain_text(text_cut_bytes(label, LABEL_HTML_MAX), STORE_SYNCED_SHORT_MAX, &left_us,
                   texts) != PLAIN_OK ||
        !buf_ok(texts)) {
        wp_mistake_add(mistake, "label", "is too complex; send it without markup");
        return false;
    }
    const char *p = texts->p + at;
    out->products = (struct str){p, named * sizeof(uint64_t)};
    out->excluded = (struct str){p + out->products.n, excluded * sizeof(uint64_t)};
    out->label = (struct str){p + out->products.n + out->excluded.n,
                              texts->n - at - out->products.n - out->excluded.n};
    return true;
}
