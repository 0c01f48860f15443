/*
 * Discount of a coupon on a cart, in whole minor units, calculated as WooCommerce does (class
 * WC_Discounts). Pure functions, any process.
 *
 * Each line is rounded half up to minor units. A percentage is taken off each line, rounded down.
 * The difference to the same percentage of all lines together (rounded half up) is added one unit
 * at a time, dearest lines first. A fixed cart amount is divided evenly among the pieces; the
 * remainder is divided again, and finally given one unit at a time. A fixed product amount is taken
 * off each piece. A line never falls below zero.
 *
 * Percentages and product amounts apply to the products that the coupon names (all if it names
 * none), without those that it excludes; if no such product is in the cart, the coupon is refused.
 * A cart amount applies to the whole cart. It is refused if the cart has an excluded product, or
 * none of the products that the coupon names.
 */
#ifndef ASSAY_API_DISCOUNT_H
#define ASSAY_API_DISCOUNT_H

#include "store/store.h"

#define CART_ITEMS_MAX 200
#define CART_MOST INT64_C(1000000000000000) /* maximum total of a cart, in minor units */

struct cart_item {
    uint64_t wp_id, quantity;
    int64_t price; /* of one piece, in MONEY_SCALE */
    bool on_sale;
};

struct cart {
    struct cart_item items[CART_ITEMS_MAX];
    size_t count;
    unsigned exponent; /* decimals of the currency's minor unit */
};

enum discount_refusal {
    DISCOUNT_APPLIES,
    DISCOUNT_EXPIRED,
    DISCOUNT_USED_UP,
    DISCOUNT_BELOW_MINIMUM,
    DISCOUNT_ABOVE_MAXIMUM,
    DISCOUNT_OTHER_PRODUCTS, /* the cart has no product that the coupon is for */
    DISCOUNT_EXCLUDED,       /* the cart has an excluded product */
    DISCOUNT_ON_SALE,        /* the cart has a product on sale */
    DISCOUNT_REFUSALS
};

struct discount_totals {
    int64_t subtotal, discount, price; /* price = subtotal - discount */
    int64_t each[CART_ITEMS_MAX];      /* discount of each line */
};

/* cart_subtotal(cart): total in minor units; -1 if it is above CART_MOST: the cart is refused. */
int64_t cart_subtotal(const struct cart *cart);

/* coupon_usable(coupon, now_ms): the checks that need no cart. */
enum discount_refusal coupon_usable(const struct store_coupon *coupon, int64_t now_ms);

/* discount_apply(coupon, cart, now_ms, out): fills ${out} if the coupon applies. */
enum discount_refusal discount_apply(const struct store_coupon *coupon, const struct cart *cart,
                                     int64_t now_ms, struct discount_totals *out);

#endif
