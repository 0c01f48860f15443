/* The signing keys of a cluster: one row, sealed by core/cluster; the store does not read it. */
#ifndef ASSAY_STORE_RECORDS_SIGNING_KEYS_H
#define ASSAY_STORE_RECORDS_SIGNING_KEYS_H

#include "store/engine/schema.h"

/* signing_keys_are(k): is it the key of that row? */
bool signing_keys_are(const struct key *k);

#endif
