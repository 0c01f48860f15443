/* Rows of a CHANGE_SYNC or a CHANGE_COUPONS. */
#ifndef ASSAY_STORE_RECORDS_SYNC_ROWS_H
#define ASSAY_STORE_RECORDS_SYNC_ROWS_H

#include "store/store.h"

struct sync_row {
    enum sync_action action;
    uint64_t wp_id;
    int64_t modified_at;
    uint8_t hash[16];
    struct str document; /* a document_record and its texts, without an owner; empty: none */
};

/* sync_row_next(rest, out): the next row; false at the end, or (${rest} not empty) if malformed. */
bool sync_row_next(struct str *rest, struct sync_row *out);

/* synced_mark_set(answer, row, mark): see synced_mark in synced.h. */
void synced_mark_set(struct store_answer *answer, size_t row, enum synced_mark mark);

#endif
