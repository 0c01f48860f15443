/*
 * Records: one file per record type. What a transaction gathers is written at its commit by
 * room.c; the kinds of changes are in apply.h, the checks in checks.h.
 */
#ifndef ASSAY_STORE_RECORDS_H
#define ASSAY_STORE_RECORDS_H

#include "store/engine/layers.h"

extern const struct layer records_layer;

#endif
