#include "store/answers/answers.h"
#include "store/answers/follower.h"
#include "store/answers/follower_internal.h"
#include "store/answers/path.h"
#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/records/answers_log.h"
#include "store/records/document.h"
#include "store/records/item.h"
#include "store/records/ulid_keys.h"

#include <stdlib.h>

/* Documents into an answer file: its build, and changes from the log. */

#define COLLECTIONS_MAX (STORE_SITES_MAX * SYNCED_KINDS)

static bool step_over(struct step *p)
{
    return ++p->documents >= FOLLOWER_STEP_DOCUMENTS || follower_clock_ms() >= p->until_ms;
}

static enum store_status put(struct step *p, const struct store_synced *d)
{
    struct buf taxonomy = {0};
    buf_str(&taxonomy, d->taxonomy);
    buf_adds(&taxonomy, "\n");
    buf_str(&taxonomy, d->sku);
    const struct answers_document document = {.id = d->id,
                                              .version = d->change,
                                              .kind = d->kind,
                                              .language =
                                                  d->language.n > 0 ? d->language : p->language,
                                              .title = d->title,
                                              .taxonomy = buf_view(&taxonomy),
                                              .text = d->text};
    enum store_status status = buf_ok(&taxonomy) ? answers_put(p->writer, &document) : STORE_BUSY;
    buf_free(&taxonomy);
    return status == STORE_OK ? status : follower_fail_file(p, status);
}

static enum store_status commit(struct step *p, uint64_t position)
{
    store_read_end(p->f->s);
    enum store_status status = answers_commit(p->writer, position);
    return status == STORE_OK ? status : follower_fail_file(p, status);
}

/* A snapshot of documents, newer than the file's state: changes in between are in the log. */
static enum store_status snapshot(struct step *p)
{
    enum store_status status = store_snapshot(p->f->s, &p->txn);
    return status == STORE_OK ? status : follower_fail_store(p->f, status);
}

/* ---- a complete file: rows of the log ---- */

static enum store_status follow_row(struct step *p, uint64_t document)
{
    struct store_synced d;
    enum store_status status = document_get(p->f->s, p->txn, document, &d);
    if (status == STORE_OK)
        return put(p, &d);
    if (status != STORE_NOT_FOUND)
        return follower_fail_store(p->f, status);
    status = answers_remove(p->writer, document);
    return status == STORE_OK ? status : follower_fail_file(p, status);
}

/* Index rows above *position, which becomes the number of the last one. */
static enum store_status follow_rows(struct step *p, uint64_t *position)
{
    struct cursor w = {0};
    struct key from;
    uint64_t document;
    key_of(&w.prefix, SPACE_ANSWERS_LOG, &p->name.agent);
    key_of(&from, SPACE_ANSWERS_LOG, &p->name.agent);
    key_u64(&from, *position + 1);
    enum store_status status = cursor_from(p->f->s, p->txn, &w, DB_WIDGET, &from);
    for (bool over = false; status == STORE_OK && !over;) {
        uint64_t number;
        if (!answers_row_number(&w, &number)) {
            status =
                follower_fail_store(p->f, store_corrupt(p->f->s, "the log of changed documents"));
            break;
        }
        memcpy(&document, w.v.mv_data, sizeof(document));
        status = follow_row(p, document);
        *position = number;
        over = step_over(p);
        if (status == STORE_OK && !over)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/*
 * Is the file's position in this log? The position of a file that a power cut or an operator put
 * back is not.
 */
bool follower_fits(struct step *p)
{
    char path[ANSWERS_PATH_BYTES];
    uint64_t position = answers_position(p->writer);
    if (answers_cursor(p->writer)->collection == ANSWERS_WHOLE && position >= p->state.indexed &&
        position <= p->state.last)
        return true;
    answers_path(path, p->f->s->dir, &p->name);
    follower_fail(p->f, STORE_STALE, path,
                  "The file is older or newer than the log of changed documents.");
    return false;
}

static enum store_status follow(struct step *p)
{
    enum store_status status = follower_open(p);
    if (status != STORE_OK)
        return status;
    p->lost = !follower_fits(p);
    if (p->lost)
        return STORE_STALE;
    uint64_t position = answers_position(p->writer);
    status = snapshot(p);
    if (status == STORE_OK)
        status = follow_rows(p, &position);
    if (status == STORE_OK && position != answers_position(p->writer))
        status = commit(p, position);
    store_read_end(p->f->s);
    if (status != STORE_OK) {
        answers_abort(p->writer);
        return status;
    }
    return follower_note(p, ANSWERS_NOTE_INDEXED, position);
}

enum store_status follower_catch_up(struct step *p)
{
    enum store_status status = follow(p);
    store_read_end(p->f->s);
    if (!p->lost)
        return status;
    follower_close(p->f, &p->name.agent);
    return follower_note(p, ANSWERS_NOTE_LOST, 0);
}

/* ---- the build of a file ---- */

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The agent's collections in the order of their creation: later ones are in the log. */
static enum store_status collections_of(struct step *p, uint64_t *ids, size_t *count)
{
    struct cursor w = {0};
    *count = 0;
    key_of(&w.prefix, SPACE_COLLECTION_NAME, &p->name.agent);
    enum store_status status = cursor_prefix(p->f->s, p->txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK && *count < COLLECTIONS_MAX && w.v.mv_size == sizeof(*ids);
         status = cursor_next(&w))
        memcpy(&ids[(*count)++], w.v.mv_data, sizeof(*ids));
    cursor_end(&w);
    qsort(ids, *count, sizeof(*ids), by_number);
    return status == STORE_NOT_FOUND
               ? STORE_OK
               : follower_fail_store(p->f, status == STORE_OK ? STORE_CORRUPT : status);
}

static enum store_status put_item(struct step *p, const struct cursor *w)
{
    struct item_record item;
    struct store_synced d;
    if (!schema_read_item(w->v, &item))
        return follower_fail_store(p->f, store_corrupt(p->f->s, "an item's record"));
    if (item.document == 0)
        return STORE_OK;
    enum store_status status = document_get(p->f->s, p->txn, item.document, &d);
    return status == STORE_OK
               ? put(p, &d)
               : follower_fail_store(p->f, status == STORE_NOT_FOUND ? STORE_CORRUPT : status);
}

/*
 * Index items of one collection after the cursor, which moves to the last one, and at the end to
 * the next collection.
 */
static enum store_status put_items(struct step *p, struct answers_cursor *cursor, bool *over)
{
    struct cursor w = {0};
    struct key from;
    key_id(&w.prefix, SPACE_ITEM, cursor->collection);
    item_key(&from, cursor->collection, cursor->item);
    enum store_status status = cursor_from(p->f->s, p->txn, &w, DB_WIDGET, &from);
    for (; status == STORE_OK && !*over; status = cursor_next(&w)) {
        uint64_t item = 0;
        if (cursor_u64(&w, 1, &item) && item == cursor->item)
            continue;
        status = put_item(p, &w);
        if (status != STORE_OK)
            break;
        cursor->item = item;
        *over = step_over(p);
    }
    cursor_end(&w);
    if (status == STORE_NOT_FOUND)
        *cursor = (struct answers_cursor){cursor->collection + 1, 0};
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status put_collections(struct step *p)
{
    uint64_t ids[COLLECTIONS_MAX];
    size_t count;
    bool over = false;
    struct answers_cursor *cursor = answers_cursor(p->writer);
    enum store_status status = collections_of(p, ids, &count);
    for (size_t i = 0; i < count && status == STORE_OK && !over; i++) {
        if (ids[i] < cursor->collection)
            continue;
        if (ids[i] > cursor->collection)
            *cursor = (struct answers_cursor){ids[i], 0};
        status = put_items(p, cursor, &over);
    }
    if (status == STORE_OK && !over)
        *cursor = (struct answers_cursor){ANSWERS_WHOLE, 0};
    return status;
}

static enum store_status note_built(struct step *p, uint64_t position)
{
    enum store_status status = follower_note(p, ANSWERS_NOTE_BUILT, position);
    if (status == STORE_OK)
        follower_unlink_serving(p);
    return status;
}

/* The position of a new file is the last change before its first document is read. */
static enum store_status build_some(struct step *p)
{
    struct answers_cursor *cursor = answers_cursor(p->writer);
    bool fresh = cursor->collection == 0 && cursor->item == 0;
    uint64_t position = fresh ? p->state.last : answers_position(p->writer);
    enum store_status status = cursor->collection == ANSWERS_WHOLE ? STORE_OK : snapshot(p);
    if (status == STORE_OK && cursor->collection != ANSWERS_WHOLE)
        status = put_collections(p);
    if (status == STORE_OK)
        status = commit(p, position);
    store_read_end(p->f->s);
    if (status != STORE_OK)
        answers_abort(p->writer);
    else if (answers_cursor(p->writer)->collection == ANSWERS_WHOLE)
        status = note_built(p, position);
    return status;
}

enum store_status follower_build(struct step *p)
{
    enum store_status status = follower_open(p);
    if (status == STORE_OK)
        status = build_some(p);
    store_read_end(p->f->s);
    if (!p->lost)
        return status;
    follower_close(p->f, &p->name.agent);
    answers_unlink(p->f->s->dir, &p->name); /* a later step begins anew */
    return status;
}
