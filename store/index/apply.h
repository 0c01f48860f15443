/* Changes that the index carries out: rows of store/tables.c. */
#ifndef ASSAY_STORE_INDEX_APPLY_H
#define ASSAY_STORE_INDEX_APPLY_H

#include "store/engine/layers.h"

apply_fn index_install, index_lost, index_sweep;

#endif
