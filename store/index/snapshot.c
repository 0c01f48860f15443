#include "store/index/snapshot.h"

#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/bitmap_internal.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/tail_internal.h"

#include <errno.h>
#include <stdlib.h>

#define SNAPSHOTS_KEPT 64

/* ---- projects that are being deleted ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool index_snapshot_is_deleting(const struct index_snapshot *v, uint64_t project)
{
    size_t count = v->deleting.n / sizeof(project);
    return count != 0 &&
           bsearch(&project, v->deleting.p, count, sizeof(project), compare_u64) != NULL;
}

static enum store_status read_deleting(struct store *s, MDB_txn *txn, uint64_t workspace,
                                       struct buf *out)
{
    struct cursor w = {0};
    if (!store_any_deleting(s, txn))
        return STORE_OK;
    key_id(&w.prefix, SPACE_DELETING, workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_BASE, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        uint64_t project;
        if (!cursor_u64(&w, 1, &project))
            status = store_corrupt(s, "the list of pending deletions");
        else
            buf_add(out, &project, sizeof(project));
    }
    cursor_end(&w);
    if (!buf_ok(out))
        return store_fail(s, ENOMEM, "list reports");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static bool mark_project(struct snapshot_segment *g, uint64_t project)
{
    uint32_t count;
    const uint16_t *rows = segment_project(&g->segment, project, &count);
    if (count != 0 && g->deleting == NULL &&
        (g->deleting = calloc(g->segment.words, sizeof(*g->deleting))) == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        bit_set(g->deleting, rows[i]);
    return true;
}

static bool mark_projects(struct index_snapshot *v)
{
    const uint64_t *projects = (const uint64_t *)(const void *)v->deleting.p;
    for (size_t i = 0; i < v->segment_count; i++) {
        free(v->segments[i].deleting);
        v->segments[i].deleting = NULL;
        for (size_t j = 0; j < v->deleting.n / sizeof(*projects); j++)
            if (!mark_project(&v->segments[i], projects[j]))
                return false;
    }
    return true;
}

static enum store_status mark_deleting(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                       bool anew)
{
    struct buf deleting = {0};
    enum store_status status = read_deleting(s, txn, v->workspace, &deleting);
    bool same = !anew && str_eq(buf_view(&deleting), buf_view(&v->deleting));
    if (status != STORE_OK || same) {
        buf_free(&deleting);
        return status;
    }
    buf_free(&v->deleting);
    v->deleting = deleting;
    return mark_projects(v) ? STORE_OK : store_fail(s, ENOMEM, "list reports");
}

/* ---- create, update, free ---- */

static void segments_free(struct store *s, struct snapshot_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        segment_close(s, &segments[i].segment);
        free(segments[i].tombstones);
        free(segments[i].deleting);
    }
    free(segments);
}

static void snapshot_free(struct store *s, struct index_snapshot *v)
{
    segments_free(s, v->segments, v->segment_count);
    for (int i = 0; i < 4; i++) {
        free(v->orders[i].rows);
        free(v->orders[i].moved);
    }
    free(v->rows);
    free(v->slots);
    free(v->trigrams);
    buf_free(&v->text);
    buf_free(&v->offset);
    buf_free(&v->deleting);
    free(v);
}

void index_snapshot_forget(struct store *s)
{
    while (s->index->snapshots != NULL) {
        struct index_snapshot *v = s->index->snapshots;
        s->index->snapshots = v->next;
        snapshot_free(s, v);
    }
    s->index->snapshot_count = 0;
}

static void drop(struct store *s, struct index_snapshot *v)
{
    struct index_snapshot **at = &s->index->snapshots;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    snapshot_free(s, v);
    s->index->snapshot_count--;
}

/* Reuse a segment that is already open. */
static enum store_status open_segment(struct store *s, struct index_snapshot *v,
                                      struct snapshot_segment *to)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        struct snapshot_segment *from = &v->segments[i];
        if (from->number != to->number || from->segment.file == NULL)
            continue;
        to->segment = from->segment;
        from->segment = (struct segment){0};
        return STORE_OK;
    }
    return segment_open(s, v->workspace, to->number, to->record.bytes, &to->segment);
}

static enum store_status take_segment(struct store *s, struct index_snapshot *v,
                                      const struct cursor *w, struct buf *out)
{
    struct snapshot_segment g = {0};
    const uint8_t *dead;
    enum store_status status = index_segment_read(s, w->v, &g.record, &dead);
    if (status == STORE_OK && !cursor_u64(w, 1, &g.number))
        status = store_corrupt(s, "the manifest of an index of reports");
    if (status == STORE_OK)
        status = open_segment(s, v, &g);
    if (status != STORE_OK)
        return status;
    if (g.segment.rows != g.record.rows) {
        status = segment_is_damaged(s, g.segment.file);
    } else if (dead != NULL) {
        size_t bytes = g.segment.words * sizeof(*g.tombstones);
        g.tombstone_count = g.record.dead;
        if ((g.tombstones = malloc(bytes)) == NULL)
            status = store_fail(s, ENOMEM, "hold an index snapshot");
        else
            memcpy(g.tombstones, dead, bytes);
    }
    buf_add(out, &g, sizeof(g)); /* also a failed one: it is freed with the others */
    if (buf_ok(out))
        return status;
    segment_close(s, &g.segment);
    free(g.tombstones);
    return store_fail(s, ENOMEM, "hold an index snapshot");
}

static enum store_status take_segments(struct store *s, MDB_txn *txn, struct index_snapshot *v)
{
    struct cursor w = {0};
    struct buf segments = {0};
    key_id(&w.prefix, SPACE_SEGMENT, v->workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_LIST, false);
    for (; status == STORE_OK; status = cursor_next(&w))
        if ((status = take_segment(s, v, &w, &segments)) != STORE_OK)
            break;
    cursor_end(&w);
    segments_free(s, v->segments, v->segment_count);
    v->segments = (struct snapshot_segment *)(void *)segments.p;
    v->segment_count = segments.n / sizeof(*v->segments);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Open the manifest's segments, without the log. */
static enum store_status rebuild(struct store *s, MDB_txn *txn, struct index_snapshot *v)
{
    enum store_status status = take_segments(s, txn, v);
    if (status == STORE_OK && !tail_clear(s, v))
        status = store_fail(s, ENOMEM, "hold an index snapshot");
    v->next_log = v->record.log_from;
    return status == STORE_OK ? tail_replay_base(s, txn, v) : status;
}

static enum store_status update(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                const struct store_list_query *q)
{
    struct index_record record;
    size_t snapshot = mdb_txn_id(txn);
    if (v->snapshot == snapshot)
        return STORE_OK;
    enum store_status status = index_read(s, txn, v->workspace, &record);
    if (status == STORE_OK && record.state == INDEX_REBUILDING)
        status = STORE_REBUILDING;
    bool anew = v->snapshot == 0 || v->snapshot > snapshot ||
                memcmp(&record, &v->record, sizeof(record)) != 0;
    v->record = record;
    if (status == STORE_OK && anew)
        status = rebuild(s, txn, v);
    if (status == STORE_OK)
        status = tail_replay_log(s, txn, v, q);
    if (status == STORE_OK)
        status = mark_deleting(s, txn, v, anew);
    v->snapshot = snapshot;
    return status;
}

static struct index_snapshot *add(struct store *s, uint64_t workspace)
{
    struct index_snapshot *v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL;
    v->workspace = workspace;
    v->next = s->index->snapshots;
    s->index->snapshots = v;
    s->index->snapshot_count++;
    return v;
}

static struct index_snapshot *oldest(const struct store *s)
{
    struct index_snapshot *found = s->index->snapshots;
    for (struct index_snapshot *v = s->index->snapshots; v != NULL; v = v->next)
        if (v->used < found->used)
            found = v;
    return found;
}

static struct index_snapshot *find(struct store *s, uint64_t workspace)
{
    for (struct index_snapshot *v = s->index->snapshots; v != NULL; v = v->next)
        if (v->workspace == workspace)
            return v;
    if (s->index->snapshot_count >= SNAPSHOTS_KEPT)
        drop(s, oldest(s));
    return add(s, workspace);
}

/* All threads share the maps; each drops its own least recently used snapshots. */
static bool too_much_mapped(const struct store *s)
{
    return segment_maps_bytes(s->shared->segments) > s->index->mapped_bytes;
}

static void enforce_limit(struct store *s, const struct index_snapshot *used)
{
    while (too_much_mapped(s) && oldest(s) != used)
        drop(s, oldest(s));
}

static enum store_status get(struct store *s, MDB_txn *txn, uint64_t workspace,
                             const struct store_list_query *q, struct index_snapshot **out)
{
    struct index_snapshot *v = find(s, workspace);
    *out = v;
    if (v == NULL)
        return store_fail(s, ENOMEM, "hold an index snapshot");
    v->used = ++s->index->snapshot_clock;
    s->index->lost_segment = 0;
    bool kept = v->snapshot == mdb_txn_id(txn);
    enum store_status status = update(s, txn, v, q);
    if (status == STORE_OK)
        status = index_snapshot_verified(s, v);
    else
        drop(s, v);
    if (status != STORE_OK)
        *out = NULL;
    else if (!kept)
        enforce_limit(s, v);
    return status;
}

enum store_status index_snapshot_get(struct store *s, MDB_txn *txn, uint64_t workspace,
                                     struct index_snapshot **out)
{
    return get(s, txn, workspace, NULL, out);
}

enum store_status index_snapshot_query(struct store *s, MDB_txn *txn,
                                       const struct store_list_query *q,
                                       struct index_snapshot **out)
{
    return get(s, txn, q->workspace, q, out);
}

enum store_status index_snapshot_verified(struct store *s, struct index_snapshot *v)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct segment *g = &v->segments[i].segment;
        if (!segment_damaged(g))
            continue;
        enum store_status status = segment_is_damaged(s, g->file);
        drop(s, v);
        return status;
    }
    return STORE_OK;
}

static void verify_again(struct store *s)
{
    uint64_t turn = s->index->tidied++;
    for (struct index_snapshot *v = s->index->snapshots; v != NULL; v = v->next)
        for (size_t i = 0; i < v->segment_count; i++)
            segment_file_verify_again(v->segments[i].segment.file, turn, STORE_TIDY_TURNS);
}

bool index_snapshot_tidy(struct store *s)
{
    MDB_txn *txn;
    struct index_record record;
    if (s->index->snapshots == NULL || store_snapshot(s, &txn) != STORE_OK)
        return s->index->snapshots != NULL;
    for (struct index_snapshot *v = s->index->snapshots, *next; v != NULL; v = next) {
        next = v->next;
        if (index_read(s, txn, v->workspace, &record) != STORE_OK ||
            record.version != v->record.version || too_much_mapped(s))
            drop(s, v);
    }
    store_read_end(s);
    verify_again(s);
    return s->index->snapshots != NULL;
}

uint64_t store_lost_segment(const struct store *s)
{
    return s->index->lost_segment;
}
