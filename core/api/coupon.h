/*
 * Coupons: bulk sync stores them, the widget applies them, the shop lists the codes that a visitor
 * staged. Only stored coupons can be applied.
 */
#ifndef ASSAY_API_COUPON_H
#define ASSAY_API_COUPON_H

#include "core/http/handler.h"

#define COUPON_STAGED_MS (INT64_C(15) * 60 * 1000) /* how long a code stays staged */

/*
 * coupon_apply(r, code, cart): answer POST /widget/coupon/apply. If ${cart} is NULL, stage ${code};
 * otherwise send the discount. ${cart} has passed coupon_cart_mistake.
 */
void coupon_apply(struct request *r, struct str code, struct json_object *cart);

/* coupon_cart_mistake(cart): what is wrong with a cart; NULL if it is valid. */
const char *coupon_cart_mistake(struct json_object *cart);

#endif
