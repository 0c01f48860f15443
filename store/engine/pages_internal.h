/*
 * The file itself, page by page, by LMDB 0.9's layout, without LMDB: it follows what a damaged page says and ends the process. Private to
 * store/.
 */
#ifndef ASSAY_STORE_PAGES_H
#define ASSAY_STORE_PAGES_H

#include "store/store.h"

#define PAGES_ALL UINT64_MAX

struct pages_tree {
    uint64_t root; /* UINT64_MAX: empty */
    unsigned depth;
};

struct pages_facts {
    uint64_t bytes, map_bytes, transaction;
    uint64_t pages; /* as counted by the newest transaction, the two first ones included */
    uint32_t page_bytes;
    struct pages_tree trees[2]; /* free pages, records */
};

/*
 * pages_facts_read(fd, transaction, facts, why, why_size): the facts by the newest of the first two pages, or by the one of
 * ${transaction}, unless 0. STORE_NOT_FOUND: an empty file, or that transaction is no longer there. STORE_CORRUPT: ${why} says what is
 * wrong with the file.
 */
enum store_status pages_facts_read(int fd, uint64_t transaction, struct pages_facts *facts,
                                   char *why, size_t why_size);

/*
 * pages_look(fd, facts, limit, progress, arg, why, why_size): follow every page from the roots, or the first ${limit} of them: each is in
 * the file, is what its parent takes it for, has all its nodes within itself, and is used once. STORE_IO: stopped by ${progress}, or the
 * file cannot be read.
 */
enum store_status pages_look(int fd, const struct pages_facts *facts, uint64_t limit,
                             store_progress_fn *progress, void *arg, char *why, size_t why_size);

/*
 * pages_open_look(dir, facts, why, why_size): what must be true of dir/data.mdb before LMDB may map it. STORE_NOT_FOUND: none, or an
 * empty one.
 */
enum store_status pages_open_look(const char *dir, struct pages_facts *facts, char *why,
                                  size_t why_size);

#endif
