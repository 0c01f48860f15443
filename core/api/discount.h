/*
 * What a coupon takes off a cart, as WooCommerce works it out (class WC_Discounts), in whole minor
 * units. Pure functions, any process.
 *
 * Each line is rounded half up to minor units. A percentage is taken off each line and rounded
 * down, and what that lacks of the percentage of all lines together (rounded half up) is given a
 * unit at a time, the dearest lines first. A sum off the cart is shared evenly over its pieces, as
 * often as something is left of it and of them, and the rest a unit at a time. A sum off products
 * is taken off each piece. No line gets below nothing.
 *
 * Percentages and sums off products are for the products the coupon names, if it names any, less
 * those it excludes; of others nothing is taken off, and without any the coupon is refused. A sum
 * off the cart is for all of it, and refused where an excluded product is in it, or where it names
 * products and none of them is.
 */
#ifndef ASSAY_API_DISCOUNT_H
#define ASSAY_API_DISCOUNT_H

#include "store/store.h"

#define CART_ITEMS_MAX 200
#define CART_MOST INT64_C(1000000000000000) /* minor units that a cart may be worth */

struct cart_item {
    uint64_t wp_id, quantity;
    int64_t price; /* of one, in MONEY_SCALE */
    bool on_sale;
};

struct cart {
    struct cart_item items[CART_ITEMS_MAX];
    size_t count;
    unsigned exponent; /* of its currency */
};

enum discount_refusal {
    DISCOUNT_APPLIES,
    DISCOUNT_EXPIRED,
    DISCOUNT_USED_UP,
    DISCOUNT_BELOW_MINIMUM,
    DISCOUNT_ABOVE_MAXIMUM,
    DISCOUNT_OTHER_GOODS, /* nothing in the cart is what it is for */
    DISCOUNT_EXCLUDED,    /* something in it is what it is not for */
    DISCOUNT_ON_SALE,     /* something in it is on sale already */
    DISCOUNT_REFUSALS
};

struct discount_totals {
    int64_t subtotal, discount, price; /* price = subtotal - discount */
    int64_t each[CART_ITEMS_MAX];      /* of the discount, by line */
};

/*
 * cart_subtotal(cart): in minor units; above CART_MOST: -1, and the cart is for nobody to discount.
 */
int64_t cart_subtotal(const struct cart *cart);

/* coupon_usable(coupon, now_ms): what can be said without a cart. */
enum discount_refusal coupon_usable(const struct store_coupon *coupon, int64_t now_ms);

/* discount_apply(coupon, cart, now_ms, out): ${out} is filled where it applies. */
enum discount_refusal discount_apply(const struct store_coupon *coupon, const struct cart *cart,
                                     int64_t now_ms, struct discount_totals *out);

#endif
