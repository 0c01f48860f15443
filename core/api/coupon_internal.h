/*
 * Coupons: bulk sync stores them, visitors apply them in the widget, and the shop lists a visitor's
 * pending coupons. Only stored coupons can be applied.
 */
#ifndef ASSAY_API_COUPON_H
#define ASSAY_API_COUPON_H

#include "core/http/handler.h"

#define COUPON_PENDING_MS (INT64_C(15) * 60 * 1000) /* how long a coupon stays pending */

/*
 * coupon_apply(r, code, cart): answer POST /api/v1/widget/coupon/apply. If ${cart} is NULL, ${code}
 * becomes pending; otherwise send the discount. ${cart} has passed coupon_cart_mistake.
 */
void coupon_apply(struct request *r, struct str code, struct json_object *cart);

/* coupon_cart_mistake(cart): what is wrong with a cart; NULL if it is valid. */
const char *coupon_cart_mistake(struct json_object *cart);

#endif
