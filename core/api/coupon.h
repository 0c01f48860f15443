/*
 * Coupons: bulk sync brings them (api.md §7), the widget applies them. What is not there cannot be applied.
 */
#ifndef ASSAY_API_COUPON_H
#define ASSAY_API_COUPON_H

#include "../http/request.h"

/*
 * coupon_apply(r, code, cart): answer POST /widget/coupon/apply for ${code}; ${cart} is NULL where none was sent and well-formed otherwise
 * (coupon_cart_mistake).
 */
void coupon_apply(struct request *r, struct str code, struct json_object *cart);

/* coupon_cart_mistake(cart): what is wrong with a cart, a sentence; NULL: nothing. */
const char *coupon_cart_mistake(struct json_object *cart);

#endif
