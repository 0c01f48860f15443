#include "store/engine/cursor.h"
#include "store/engine/derived.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/rows.h"

#include <errno.h>
#include <stdio.h>
#include <xxhash.h>

#define ROWS_BETWEEN 1024 /* two looks at whether to stop */

struct hashing {
    struct store *s;
    XXH3_state_t *state;
    store_stop_fn *stop;
    void *arg;
    uint64_t rows, pages_min;
};

static bool add(struct hashing *h, const void *p, size_t n)
{
    return XXH3_128bits_update(h->state, p, n) == XXH_OK;
}

static enum store_status add_row(struct hashing *h, const struct cursor *w)
{
    const uint64_t sizes[] = {w->k.mv_size, w->v.mv_size};
    return add(h, sizes, sizeof(sizes)) && add(h, w->k.mv_data, w->k.mv_size) &&
                   add(h, w->v.mv_data, w->v.mv_size)
               ? STORE_OK
               : store_fail(h->s, ENOMEM, "hash the rows");
}

static enum store_status go_on(struct hashing *h)
{
    uint64_t reserve;
    if (++h->rows % ROWS_BETWEEN != 0)
        return STORE_OK;
    if (store_must_stop(h->s, h->stop, h->arg))
        return STORE_AGAIN;
    if (store_pages_left(h->s, &reserve) >= h->pages_min)
        return STORE_OK;
    snprintf(
        h->s->why, sizeof(h->s->why),
        "the rows were not hashed: the snapshot kept pages in use that the writer needs; raise "
        "store.map_size");
    return STORE_FULL;
}

static enum store_status add_space(struct hashing *h, MDB_txn *txn, enum space space)
{
    struct cursor w = {0};
    enum store_status status = cursor_begin(h->s, txn, &w, space);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        status = add_row(h, &w);
        if (status == STORE_OK)
            status = go_on(h);
        if (status != STORE_OK)
            break;
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Each space ends with its number, so that a row cannot move from one to the next. */
static enum store_status add_spaces(struct hashing *h, MDB_txn *txn)
{
    enum store_status status = STORE_OK;
    for (uint32_t space = 0; space < SPACE_COUNT && status == STORE_OK; space++) {
        if (!space_is_replicated((enum space)space))
            continue;
        status = add_space(h, txn, (enum space)space);
        if (status == STORE_OK && !add(h, &space, sizeof(space)))
            status = store_fail(h->s, ENOMEM, "hash the rows");
    }
    return status;
}

enum store_status store_rows_hash(struct store *s, store_stop_fn *stop, void *arg,
                                  uint8_t out[STORE_HASH_BYTES])
{
    MDB_txn *txn;
    struct hashing h = {.s = s, .stop = stop, .arg = arg, .pages_min = store_pages_to_leave(s)};
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    h.state = XXH3_createState();
    if (h.state == NULL || XXH3_128bits_reset(h.state) != XXH_OK)
        status = store_fail(s, ENOMEM, "hash the rows");
    else
        status = add_spaces(&h, txn);
    if (status == STORE_OK) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(h.state));
        memcpy(out, &canonical, STORE_HASH_BYTES);
    }
    XXH3_freeState(h.state);
    return status;
}
