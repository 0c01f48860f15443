/*
 * Coupons: bulk sync brings them (api.md §7), the widget applies them, the shop asks which a
 * visitor staged. What is not there cannot be applied.
 */
#ifndef ASSAY_API_COUPON_H
#define ASSAY_API_COUPON_H

#include "core/http/request.h"

#define COUPON_STAGED_MS (INT64_C(15) * 60 * 1000) /* how long a code is staged */

/*
 * coupon_apply(r, code, cart): answer POST /widget/coupon/apply for ${code}: staged where ${cart}
 * is NULL, else what it takes off the cart, which is well-formed (coupon_cart_mistake).
 */
void coupon_apply(struct request *r, struct str code, struct json_object *cart);

/* coupon_cart_mistake(cart): what is wrong with a cart, a sentence; NULL: nothing. */
const char *coupon_cart_mistake(struct json_object *cart);

#endif
