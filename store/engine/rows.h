/* Row sets (store/rows.h): collecting, encoding and reading them. The writer. */
#ifndef ASSAY_STORE_ENGINE_ROWS_H
#define ASSAY_STORE_ENGINE_ROWS_H

#include "store/engine/txn.h"
#include "store/rows.h"

/* rows_note(t, space, key): the key is put or deleted. Called while ${t} collects. */
void rows_note(struct store_txn *t, enum space space, const struct key *key);

/* A row; ${value} is borrowed from the row set. */
struct row {
    enum space space;
    bool deleted;
    struct key key;
    struct str value;
};

struct rows_reader {
    const uint8_t *at, *end;
    uint64_t left;   /* rows */
    struct str last; /* key of the last row */
    uint8_t last_db; /* and its sub-database */
};

/*
 * rows_open(s, rows, out): check the head and the checksum. STORE_OTHER_FORMAT, STORE_CORRUPT.
 * rows_next(s, r, out): the next row. STORE_NOT_FOUND: there was none left. STORE_CORRUPT: it is
 * malformed, of a local space, or not above the row before it.
 */
enum store_status rows_open(struct store *s, struct str rows, struct rows_reader *out);
enum store_status rows_next(struct store *s, struct rows_reader *r, struct row *out);

#endif
