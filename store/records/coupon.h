/* Coupons, and the pending coupons of a conversation (pending_coupons.c). */
#ifndef ASSAY_STORE_RECORDS_COUPON_H
#define ASSAY_STORE_RECORDS_COUPON_H

#include "store/engine/txn.h"

void coupon_key(struct key *k, const struct ulid *agent, struct str code);
bool schema_read_coupon(MDB_val value, struct store_coupon *out);

bool pending_coupons_well_formed(MDB_val value);

#endif
