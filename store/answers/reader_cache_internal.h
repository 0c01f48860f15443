/* Open answer files of one reader of the store; the least recently used is closed first. */
#ifndef ASSAY_STORE_ANSWERS_READER_CACHE_INTERNAL_H
#define ASSAY_STORE_ANSWERS_READER_CACHE_INTERNAL_H

#include "store/answers/answers.h"
#include "store/answers/path.h"

#define READER_CACHE_FILES 8                   /* each has three descriptors */
#define READER_CACHE_BYTES ((size_t)512 << 10) /* SQLite's page cache, of each */

struct reader_cache;

/*
 * reader_cache_get(cache, dir, name, out, why, why_size): the file of that name, opened if
 * necessary; the first call creates ${*cache}. ${*out} belongs to the cache. Status codes:
 * answers_reader_open. Closes other generations of the agent. reader_cache_drop(cache, name): close
 * it. reader_cache_free(cache): close all. reader_cache_next(cache, at, out): the name of the next
 * open file from place *at on; false: none.
 */
enum store_status reader_cache_get(struct reader_cache **cache, const char *dir,
                                   const struct answers_name *name, struct answers_reader **out,
                                   char *why, size_t why_size);
void reader_cache_drop(struct reader_cache *cache, const struct answers_name *name);
void reader_cache_free(struct reader_cache *cache);
bool reader_cache_next(const struct reader_cache *cache, size_t *at, struct answers_name *out);

#endif
