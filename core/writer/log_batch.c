#include "core/writer/log_batch.h"

#include <stdlib.h>

static bool grow(struct log_batch *b)
{
    size_t capacity = b->capacity == 0 ? 64 : 2 * b->capacity;
    struct log_batch_entry *more =
        b->count < b->capacity ? b->entries : realloc(b->entries, capacity * sizeof(*more));
    if (more == NULL)
        return false;
    b->capacity = b->count < b->capacity ? b->capacity : capacity;
    b->entries = more;
    return true;
}

bool log_batch_add(struct log_batch *b, const struct cluster_log_entry *entry,
                   const struct store_position *before)
{
    struct log_batch_entry e = {.position = *before, .at = b->rows.n, .n = entry->rows.n};
    e.position.sequence = entry->sequence;
    memcpy(e.position.chain, entry->chain, sizeof(entry->chain));
    buf_str(&b->rows, entry->rows);
    if (!buf_ok(&b->rows) || !grow(b))
        return false;
    b->entries[b->count++] = e;
    return true;
}

struct str log_batch_rows(const struct log_batch *b, size_t i)
{
    return (struct str){b->rows.p + b->entries[i].at, b->entries[i].n};
}

const struct store_position *log_batch_end(const struct log_batch *b)
{
    return &b->entries[b->count - 1].position;
}

void log_batch_reset(struct log_batch *b)
{
    b->count = 0;
    buf_reset(&b->rows);
}

void log_batch_free(struct log_batch *b)
{
    free(b->entries);
    buf_free(&b->rows);
}
