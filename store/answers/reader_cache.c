#include "store/answers/reader_cache_internal.h"

#include "store/answers/answers.h"
#include "store/answers/path.h"
#include "store/answers/reader_internal.h"
#include "store/store.h"

#include <stdlib.h>
#include <stdio.h>

struct open_reader {
    struct answers_name name;
    struct answers_reader *reader; /* NULL: the place is free */
    uint64_t used;
};

struct reader_cache {
    struct open_reader files[READER_CACHE_FILES];
    uint64_t clock;
};

static void close_reader(struct open_reader *o)
{
    answers_reader_close(o->reader);
    *o = (struct open_reader){.reader = NULL};
}

static struct open_reader *place_for(struct reader_cache *cache, const struct answers_name *name)
{
    struct open_reader *oldest = &cache->files[0];
    for (size_t i = 0; i < READER_CACHE_FILES; i++) {
        struct open_reader *o = &cache->files[i];
        if (o->reader != NULL && ulid_eq(&o->name.agent, &name->agent))
            return o;
        if (o->used < oldest->used)
            oldest = o;
    }
    return oldest;
}

enum store_status reader_cache_get(struct reader_cache **cache, const char *dir,
                                   const struct answers_name *name, struct answers_reader **out,
                                   char *why, size_t why_size)
{
    static const struct answers_options options = {.cache_bytes = READER_CACHE_BYTES};
    char path[ANSWERS_PATH_BYTES];
    if (*cache == NULL && (*cache = calloc(1, sizeof(**cache))) == NULL) {
        snprintf(why, why_size, "Out of memory.");
        return STORE_BUSY;
    }
    struct open_reader *o = place_for(*cache, name);
    enum store_status status = STORE_OK;
    if (o->reader == NULL || memcmp(&o->name, name, sizeof(*name)) != 0) {
        close_reader(o);
        answers_path(path, dir, name);
        status = answers_reader_open(path, name->store_id, &options, &o->reader, why, why_size);
    }
    if (status != STORE_OK)
        return status;
    o->name = *name;
    o->used = ++(*cache)->clock;
    *out = o->reader;
    return STORE_OK;
}

void reader_cache_drop(struct reader_cache *cache, const struct answers_name *name)
{
    for (size_t i = 0; i < READER_CACHE_FILES; i++)
        if (cache->files[i].reader != NULL &&
            memcmp(&cache->files[i].name, name, sizeof(*name)) == 0)
            close_reader(&cache->files[i]);
}

void reader_cache_free(struct reader_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < READER_CACHE_FILES; i++)
        close_reader(&cache->files[i]);
    free(cache);
}

bool reader_cache_next(const struct reader_cache *cache, size_t *at, struct answers_name *out)
{
    while (cache != NULL && *at < READER_CACHE_FILES) {
        const struct open_reader *o = &cache->files[(*at)++];
        if (o->reader == NULL)
            continue;
        *out = o->name;
        return true;
    }
    return false;
}
