#include "coupon.h"

#include <json-c/json.h>

#define ITEMS_MAX 200

/* "12", "12.5", "12.50": what money is written as; never a float. */
static bool is_money(struct json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return false;
    const char *p = json_object_get_string(value);
    size_t whole = strspn(p, "0123456789"), cents = p[whole] == '.' ? strspn(p + whole + 1, "0123456789") : 0;
    return whole > 0 && whole <= 12 && cents <= 6 && p[whole + (p[whole] == '.' ? 1 : 0) + cents] == '\0' && (p[whole] != '.' || cents > 0);
}

static bool is_count(struct json_object *value, int64_t most)
{
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) > 0 && json_object_get_int64(value) <= most;
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

const char *coupon_cart_mistake(struct json_object *cart)
{
    struct json_object *currency = NULL, *items = NULL;
    if (!json_object_is_type(cart, json_type_object))
        return "must be an object";
    json_object_object_get_ex(cart, "currency", &currency);
    json_object_object_get_ex(cart, "items", &items);
    if (!is_currency(currency))
        return "needs a currency of three capital letters, such as USD";
    if (!json_object_is_type(items, json_type_array) || json_object_array_length(items) > ITEMS_MAX)
        return "needs items: an array of at most 200";
    for (size_t i = 0; i < json_object_array_length(items); i++)
        if (!item_valid(json_object_array_get_idx(items, i)))
            return "has an item without wp_id, quantity (whole numbers from 1) and price (a decimal string)";
    return NULL;
}

void coupon_apply(struct request *r, struct str code, struct json_object *cart)
{
    (void)code;
    (void)cart;
    /* this version knows no coupon */
    reply_error(r, ERR_INVALID_COUPON, "This code is not known: check its spelling.");
}
