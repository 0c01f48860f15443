/*
 * What extent.c (the file and what rows name of it) and extent_write.c (the writer's: what of it is free) share. Private to these.
 */
#ifndef ASSAY_EXTENT_PARTS_H
#define ASSAY_EXTENT_PARTS_H

#include "extent.h"
#include "spare.h"

#define PAGE_BYTES 4096
#define FIRST_PAGE 1 /* of extents; the one before is the head */
#define MAPS 40

/* What a row is that names an extent: shorter than any part. */
struct PACKED extent_ref {
    uint8_t format;
    uint64_t at, bytes;
};
#define REF_FORMAT 1

struct PACKED extent_head {
    char text[16];
    uint64_t id;
};
#define HEAD_TEXT "assay parts 1\n"

/* Pages that a transaction gave up: free when no snapshot is older than it, and it is on the disk. */
struct extent_gone {
    struct page_run run;
    size_t txn; /* 0: of the transaction under way */
};

struct extents {
    int fd;
    uint64_t file_bytes; /* known to be there */
    /* as the file grows it is mapped anew, larger; what was borrowed of an older map is still there */
    struct {
        const uint8_t *p;
        uint64_t bytes;
    } maps[MAPS];
    size_t map_count;
    /* writer */
    struct spare spare;
    struct extent_gone *gone;
    size_t gone_count, gone_cap;
    struct page_run *taken; /* by the transaction under way */
    size_t taken_count, taken_cap;
    size_t reclaimed;    /* in which ${gone} was gone through last */
    size_t txn;          /* LMDB's number of the transaction that all this is of, as it began; 0: unknown */
    bool written; /* since the last sync */
};

static inline bool is_long_space(enum space space)
{
    return space == SPACE_PART;
}

static inline uint64_t pages_of(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
}

static inline bool is_ref(MDB_val v, struct extent_ref *out)
{
    if (v.mv_size != sizeof(*out))
        return false;
    memcpy(out, v.mv_data, sizeof(*out));
    return true;
}

static inline bool is_place(uint64_t at, uint64_t bytes)
{
    return at >= FIRST_PAGE * PAGE_BYTES && at % PAGE_BYTES == 0 && bytes != 0 && at <= INT64_MAX && bytes <= INT64_MAX - at;
}

/* extent_read_id(s, txn, out): the number that data.mdb has; STORE_NOT_FOUND without one. */
enum store_status extent_read_id(struct store *s, MDB_txn *txn, uint64_t *out);

/* extent_opened(s, txn): open the file, unless it is. */
enum store_status extent_opened(struct store *s, MDB_txn *txn);

/* extent_look(s, txn): is all there that is in use? STORE_CORRUPT where the file is too short. */
enum store_status extent_look(struct store *s, MDB_txn *txn);

/* extent_used(s, txn, out): the runs of pages that rows name, as struct page_run; to be freed. */
enum store_status extent_used(struct store *s, MDB_txn *txn, struct buf *out);

#endif
