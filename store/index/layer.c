#include "store/engine/files.h"
#include "store/engine/layers.h"
#include "store/engine/txn.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/match_cache_internal.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/project_names_internal.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the engine calls in this layer: store/engine/layers.h. */

static bool layer_open(struct store *s, const struct store_options *o)
{
    struct index_context *c = s->index = calloc(1, sizeof(*c));
    if (c == NULL)
        return false;
    c->segment_rows = o->segment_rows != 0 ? o->segment_rows : SEGMENT_ROWS;
    c->ngram_block_shift =
        o->ngram_block_shift != 0 ? o->ngram_block_shift : NGRAM_BLOCK_ROWS_SHIFT;
    c->log_entries = o->log_entries != 0 ? o->log_entries : LOG_ENTRIES;
    c->small_rows = o->small_rows != 0 ? o->small_rows : SMALL_ROWS;
    c->mapped_bytes = o->mapped_bytes != 0 ? o->mapped_bytes : UINT64_MAX;
    return true;
}

static void layer_close(struct store *s)
{
    index_snapshot_forget(s);
    match_cache_free(s);
    project_names_forget(s);
    free(s->index);
}

static bool layer_share(struct shared_env *shared)
{
    shared->segments = segment_maps_new();
    return shared->segments != NULL;
}

static void layer_unshare(struct shared_env *shared)
{
    segment_maps_free(shared->segments);
}

static void layer_txn_end(struct store_txn *t, bool failed)
{
    (void)failed;
    t->s->index->batch_count = 0;
}

static void layer_txn_free(struct store_txn *t)
{
    for (size_t i = 0; i < t->s->index->batch_cap; i++)
        buf_free(&t->s->index->batches[i].bytes);
    free(t->s->index->batches);
}

struct moving {
    const char *from, *to;
    int failed;
};

static bool move_file(void *arg, uint64_t workspace, uint64_t number)
{
    struct moving *m = arg;
    char from[SEGMENT_PATH_BYTES], to[SEGMENT_PATH_BYTES];
    segment_file_path(m->from, workspace, number, from);
    segment_file_path(m->to, workspace, number, to);
    if (rename(from, to) != 0)
        m->failed = errno;
    return m->failed == 0;
}

static int layer_files_move(const char *from, const char *to)
{
    char dir[SEGMENT_PATH_BYTES];
    struct moving m = {.from = from, .to = to};
    snprintf(dir, sizeof(dir), "%s/index", to);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return errno;
    int rc = segment_file_each(from, move_file, &m);
    if (rc == 0)
        rc = m.failed;
    return rc == 0 && store_sync_dir(dir) != 0 ? errno : rc;
}

static bool delete_file(void *arg, uint64_t workspace, uint64_t number)
{
    segment_file_delete(arg, workspace, number);
    return true;
}

static void layer_files_delete(const char *dir)
{
    char path[SEGMENT_PATH_BYTES];
    segment_file_each(dir, delete_file, (void *)(uintptr_t)dir);
    snprintf(path, sizeof(path), "%s/index", dir);
    rmdir(path);
}

const struct layer index_layer = {
    .open = layer_open,
    .close = layer_close,
    .share = layer_share,
    .unshare = layer_unshare,
    .tidy = index_snapshot_tidy,
    .txn_write_back = index_write,
    .txn_end = layer_txn_end,
    .txn_free = layer_txn_free,
    .files_move = layer_files_move,
    .files_delete = layer_files_delete,
};
