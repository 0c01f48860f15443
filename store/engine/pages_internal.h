/*
 * Checks the pages of data.mdb by LMDB 0.9's layout, without LMDB, which follows a damaged page and
 * crashes.
 */
#ifndef ASSAY_STORE_ENGINE_PAGES_INTERNAL_H
#define ASSAY_STORE_ENGINE_PAGES_INTERNAL_H

#include "store/store.h"

#define PAGES_ALL UINT64_MAX

struct pages_tree {
    uint64_t root; /* UINT64_MAX: empty */
    unsigned depth;
};

struct pages_facts {
    uint64_t bytes, map_bytes, transaction;
    uint64_t pages; /* counted by the newest transaction, including the two meta pages */
    uint32_t page_bytes;
    struct pages_tree trees[2]; /* free pages, records */
};

/*
 * pages_facts_read(fd, transaction, facts, why, why_size): the facts of the newest meta page, or of
 * the one of ${transaction}, unless 0. STORE_NOT_FOUND: the file is empty, or has no page of that
 * transaction. STORE_CORRUPT: ${why} says what is wrong.
 */
enum store_status pages_facts_read(int fd, uint64_t transaction, struct pages_facts *facts,
                                   char *why, size_t why_size);

/*
 * pages_look(fd, facts, limit, progress, arg, why, why_size): check every page from the roots, or
 * the first ${limit}: it lies in the file, has the type its parent expects, contains all its nodes,
 * and is used once. STORE_IO: stopped by ${progress}, or the file cannot be read.
 */
enum store_status pages_look(int fd, const struct pages_facts *facts, uint64_t limit,
                             store_progress_fn *progress, void *arg, char *why, size_t why_size);

/*
 * pages_open_look(dir, facts, why, why_size): check what LMDB relies on before it maps
 * dir/data.mdb. STORE_NOT_FOUND: it does not exist or is empty.
 */
enum store_status pages_open_look(const char *dir, struct pages_facts *facts, char *why,
                                  size_t why_size);

#endif
