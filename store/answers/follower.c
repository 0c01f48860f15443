#include "store/answers/follower_internal.h"

#include "store/answers/answers.h"
#include "store/answers/follower.h"
#include "store/answers/path.h"
#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/format.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/document.h"
#include "store/records/sync.h"
#include "store/records/ulid_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CACHE_BYTES ((size_t)4 << 20)
#define COLLECTIONS_MAX (STORE_SITES_MAX * SYNCED_KINDS)
#define FAILING_MS 1000                 /* after a failure */
#define STEP_BYTES ((uint64_t)16 << 20) /* disk space that a step may use */

struct follower *follower_new(struct store *s, follower_note_fn *note, follower_wanted_fn *wanted,
                              void *arg)
{
    struct follower *f = calloc(1, sizeof(*f));
    if (f != NULL)
        *f = (struct follower){.s = s, .note = note, .wanted = wanted, .arg = arg};
    return f;
}

static void close_writer(struct open_writer *o)
{
    answers_close(o->writer);
    *o = (struct open_writer){.writer = NULL};
}

void follower_free(struct follower *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < FOLLOWER_FILES; i++)
        close_writer(&f->files[i]);
    free(f);
}

const char *follower_why(const struct follower *f)
{
    return f->why;
}

enum store_status follower_fail(struct follower *f, enum store_status status, const char *path,
                                const char *why)
{
    snprintf(f->why, sizeof(f->why), "%.600s: %.400s", path, why);
    return status;
}

enum store_status follower_fail_store(struct follower *f, enum store_status status)
{
    snprintf(f->why, sizeof(f->why), "%s", store_why(f->s));
    return status;
}

enum store_status follower_note(struct step *p, uint32_t what, uint64_t number)
{
    const struct store_change change = {.kind = CHANGE_ANSWERS,
                                        .fields = what,
                                        .agent = p->name.agent,
                                        .attempt = p->name.generation,
                                        .code = ANSWERS_FORMAT,
                                        .id = number};
    enum store_status status = p->f->note(p->f->arg, &change);
    if (status == STORE_STALE) /* deleted or lost meanwhile: the next step handles it */
        status = STORE_OK;
    return status == STORE_OK
               ? status
               : follower_fail(p->f, status, "Cannot record the state of an answer file",
                               store_status_text(status));
}

/* ---- files that are open ---- */

static struct open_writer *place_for(struct follower *f, const struct ulid *agent)
{
    struct open_writer *oldest = &f->files[0];
    for (size_t i = 0; i < FOLLOWER_FILES; i++) {
        struct open_writer *o = &f->files[i];
        if (o->writer != NULL && ulid_eq(&o->name.agent, agent))
            return o;
        if (o->used < oldest->used)
            oldest = o;
    }
    return oldest;
}

void follower_close(struct follower *f, const struct ulid *agent)
{
    struct open_writer *o = place_for(f, agent);
    if (o->writer != NULL && ulid_eq(&o->name.agent, agent))
        close_writer(o);
}

bool answers_is_lost(enum store_status status)
{
    return status == STORE_NOT_FOUND || status == STORE_CORRUPT || status == STORE_OTHER_FORMAT ||
           status == STORE_STALE;
}

static void unlink_all(struct step *p)
{
    struct answers_name name = p->name;
    for (name.generation = p->state.oldest; name.generation <= p->name.generation;
         name.generation++)
        answers_unlink(p->f->s->dir, &name);
}

/* Create a new file and delete the agent's old ones. */
static enum store_status create(struct step *p, const char *path, struct answers_writer **out,
                                char *why, size_t why_size)
{
    static const struct answers_options options = {.cache_bytes = CACHE_BYTES};
    unlink_all(p);
    return answers_create(path, p->name.store_id, &options, out, why, why_size);
}

static enum store_status open_writer(struct step *p, const char *path, struct answers_writer **out,
                                     char *why, size_t why_size)
{
    static const struct answers_options options = {.cache_bytes = CACHE_BYTES};
    enum store_status status = answers_open(path, p->name.store_id, &options, out, why, why_size);
    if (answers_is_lost(status) && p->state.state == ANSWERS_TO_BUILD)
        status = create(p, path, out, why, why_size);
    return status;
}

enum store_status follower_open(struct step *p)
{
    struct open_writer *o = place_for(p->f, &p->name.agent);
    char path[ANSWERS_PATH_BYTES], why[400] = "";
    if (o->writer == NULL || memcmp(&o->name, &p->name, sizeof(p->name)) != 0) {
        close_writer(o);
        answers_path(path, p->f->s->dir, &p->name);
        enum store_status status = open_writer(p, path, &o->writer, why, sizeof(why));
        p->lost = answers_is_lost(status);
        if (status != STORE_OK)
            return follower_fail(p->f, status, path, why);
    }
    o->name = p->name;
    o->used = ++p->f->clock;
    p->writer = o->writer;
    return STORE_OK;
}

enum store_status follower_fail_file(struct step *p, enum store_status status)
{
    char path[ANSWERS_PATH_BYTES];
    p->lost = answers_is_lost(status);
    answers_path(path, p->f->s->dir, &p->name);
    return follower_fail(p->f, status, path, answers_why(p->writer));
}

/* ---- documents ---- */

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool step_over(struct step *p)
{
    return ++p->documents >= FOLLOWER_STEP_DOCUMENTS || clock_ms() >= p->until_ms;
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

/* ---- a file that is complete: rows of the log ---- */

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

static enum store_status follow_or_lose(struct step *p)
{
    enum store_status status = follow(p);
    store_read_end(p->f->s);
    if (!p->lost)
        return status;
    follower_close(p->f, &p->name.agent);
    return follower_note(p, ANSWERS_NOTE_LOST, 0);
}

/* ---- a file that is to be built ---- */

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
        status = follower_note(p, ANSWERS_NOTE_BUILT, position);
    return status;
}

static enum store_status build(struct step *p)
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

/* ---- the file of an agent that is deleted ---- */

static enum store_status delete_file(struct step *p)
{
    follower_close(p->f, &p->name.agent);
    unlink_all(p);
    return follower_note(p, ANSWERS_NOTE_DELETED, 0);
}

/* ---- agents in turn ---- */

static bool is_failing(const struct follower *f, const struct ulid *agent, uint64_t now)
{
    for (size_t i = 0; i < FAILING_MAX; i++)
        if (f->failing[i].until_ms > now && ulid_eq(&f->failing[i].agent, agent))
            return true;
    return false;
}

/* False: too many agents fail, so the reason is not in one of them. */
static bool note_failing(struct follower *f, const struct ulid *agent)
{
    uint64_t now = clock_ms();
    for (size_t i = 0; i < FAILING_MAX; i++)
        if (f->failing[i].until_ms <= now) {
            f->failing[i] = (struct failing){*agent, now + FAILING_MS};
            return true;
        }
    return false;
}

static bool first_agent(struct follower *f, MDB_txn *txn, const struct ulid *after,
                        struct ulid *out)
{
    struct cursor w = {0};
    struct key from;
    key_space(&w.prefix, SPACE_ANSWERS_LOG);
    key_of(&from, SPACE_ANSWERS_LOG, after);
    /* after the agent's rows: numbers begin with a length of at most 8 */
    key_bytes(&from, "\xff", 1);
    bool found =
        cursor_from(f->s, txn, &w, DB_WIDGET, &from) == STORE_OK && w.k.mv_size > 1 + ULID_BYTES;
    if (found)
        memcpy(out->b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
    cursor_end(&w);
    return found;
}

/* The next agent that has rows and does not wait after a failure; *failing: some agent waits. */
static bool next_agent(struct step *p, bool *failing)
{
    struct follower *f = p->f;
    struct ulid after = f->turn;
    uint64_t now = clock_ms();
    for (int rounds = 0; rounds < 2;) {
        if (!first_agent(f, p->txn, &after, &p->name.agent)) {
            after = (struct ulid){{0}};
            rounds++;
            continue;
        }
        if (!is_failing(f, &p->name.agent, now))
            return true;
        *failing = true;
        after = p->name.agent;
    }
    return false;
}

/* STORE_NOT_FOUND: no agent has rows. STORE_AGAIN: all that have rows wait after a failure. */
static enum store_status take_turn(struct step *p)
{
    struct follower *f = p->f;
    struct store_agent agent;
    bool failing = false;
    enum store_status status = store_snapshot(f->s, &p->txn);
    if (status != STORE_OK)
        return follower_fail_store(f, status);
    if (!next_agent(p, &failing))
        return failing ? STORE_AGAIN : STORE_NOT_FOUND;
    f->turn = p->name.agent;
    memcpy(p->name.store_id, f->store_id, STORE_ID_BYTES);
    status = answers_read(f->s, p->txn, &p->name.agent, &p->state);
    if (status != STORE_OK)
        return follower_fail_store(f, status == STORE_NOT_FOUND ? STORE_CORRUPT : status);
    p->name.generation = p->state.generation;
    if (agent_read(f->s, p->txn, &p->name.agent, &agent) == STORE_OK)
        p->language = agent_language(&agent);
    if (p->language.n > sizeof(p->language_bytes))
        p->language.n = 0;
    if (p->language.n > 0)
        memcpy(p->language_bytes, p->language.p, p->language.n);
    p->language.p = p->language_bytes;
    return STORE_OK;
}

/* Answer files leave the disk's reserve free, as creates do. */
static enum store_status look_for_room(struct follower *f)
{
    int why;
    if (store_bytes_ahead(f->s, &why) >= STORE_DISK_RESERVE + STEP_BYTES)
        return STORE_OK;
    return follower_fail(f, STORE_FULL, f->s->dir, "The disk is nearly full: free disk space.");
}

static enum store_status work(struct step *p)
{
    if (p->state.state != ANSWERS_DELETED && look_for_room(p->f) != STORE_OK)
        return STORE_FULL;
    switch (p->state.state) {
    case ANSWERS_TO_BUILD:
        return build(p);
    case ANSWERS_BUILT:
        return follow_or_lose(p);
    default:
        return delete_file(p);
    }
}

static enum follower_result take_step(struct follower *f)
{
    struct step p = {.f = f, .until_ms = clock_ms() + FOLLOWER_STEP_MS};
    enum store_status status = take_turn(&p);
    store_read_end(f->s);
    if (status == STORE_NOT_FOUND)
        return f->swept_records ? FOLLOWER_IDLE : FOLLOWER_MORE;
    if (status != STORE_OK)
        return FOLLOWER_WAIT;
    status = work(&p);
    store_read_end(f->s);
    if (status == STORE_OK)
        return FOLLOWER_MORE;
    if (status == STORE_FULL) /* other agents need the same disk */
        return FOLLOWER_WAIT;
    return note_failing(f, &p.name.agent) ? FOLLOWER_FAILED : FOLLOWER_WAIT;
}

enum follower_result follower_step(struct follower *f)
{
    if (!f->swept_files)
        return follower_sweep(f) == STORE_OK ? FOLLOWER_MORE : FOLLOWER_WAIT;
    if (!f->swept_records && follower_sweep_records(f) != STORE_OK)
        return FOLLOWER_WAIT;
    return take_step(f);
}
