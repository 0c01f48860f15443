/*
 * Records: one file per record type. layer.c writes at the commit what a transaction gathered; the
 * changes are declared in apply.h, the checks in checks.h.
 */
#ifndef ASSAY_STORE_RECORDS_RECORDS_H
#define ASSAY_STORE_RECORDS_RECORDS_H

#include "store/engine/layers.h"

extern const struct layer records_layer;

#endif
