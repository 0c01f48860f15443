#include "store/records/answers_log.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/collection.h"
#include "store/records/context.h"
#include "store/records/ulid_keys.h"

#define DELETED_AT_ONCE 1000 /* maximum of rows that one CHANGE_ANSWERS deletes */

/* ---- records ---- */

static void log_key(struct key *k, const struct ulid *agent, uint64_t number)
{
    key_of(k, SPACE_ANSWERS_LOG, agent);
    key_u64(k, number);
}

bool schema_read_answer_file(MDB_val value, struct store_answers *out)
{
    const struct answer_file_record *r = store_record(value, sizeof(*r));
    if (r == NULL || r->state >= ANSWERS_STATES || r->generation == 0)
        return false;
    *out = (struct store_answers){.indexed = r->indexed,
                                  .generation = r->generation,
                                  .oldest = r->oldest,
                                  .serving = r->serving,
                                  .state = (enum answers_state)r->state};
    return true;
}

bool schema_read_answers(MDB_val value, uint64_t *last)
{
    const void *number = store_record(value, sizeof(*last));
    if (number != NULL)
        memcpy(last, number, sizeof(*last));
    return number != NULL && *last != 0;
}

/* The agent's row of SPACE_ANSWERS, which an erased agent lacks. */
static enum store_status last_read(struct store *s, MDB_txn *txn, const struct ulid *agent,
                                   uint64_t *out)
{
    struct key k;
    MDB_val v;
    *out = 0;
    key_of(&k, SPACE_ANSWERS, agent);
    enum store_status status = store_get(s, txn, SPACE_ANSWERS, &k, &v);
    if (status == STORE_OK && !schema_read_answers(v, out))
        status = store_corrupt(s, "the number of the last change of documents");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status answers_read(struct store *s, MDB_txn *txn, const struct ulid *agent,
                               struct store_answers *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ANSWER_FILE, agent);
    enum store_status status = store_get(s, txn, SPACE_ANSWER_FILE, &k, &v);
    if (status == STORE_OK && !schema_read_answer_file(v, out))
        status = store_corrupt(s, "the record of an answer file");
    return status == STORE_OK ? last_read(s, txn, agent, &out->last) : status;
}

enum store_status store_answers_get(struct store *s, const struct ulid *agent,
                                    struct store_answers *out)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    return status == STORE_OK ? answers_read(s, txn, agent, out) : status;
}

static enum store_status unindexed_read(struct store *s, MDB_txn *txn, uint64_t *out)
{
    struct key k;
    MDB_val v;
    *out = 0;
    key_local(&k, 'a');
    enum store_status status = store_get(s, txn, SPACE_LOCAL, &k, &v);
    if (status == STORE_OK && v.mv_size != sizeof(*out))
        return store_corrupt(s, "the row with the number of changes that are not indexed");
    if (status == STORE_OK)
        memcpy(out, v.mv_data, sizeof(*out));
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status store_answers_unindexed(struct store *s, uint64_t *out)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    *out = 0;
    return status == STORE_OK ? unindexed_read(s, txn, out) : status;
}

/* ---- the agent that a transaction changes ---- */

static void agent_write_back(struct store_txn *t)
{
    struct key k;
    struct changed_answers *a = &t->s->records->answers;
    if (a->known && a->last_dirty) {
        key_of(&k, SPACE_ANSWERS, &a->agent);
        txn_put(t, SPACE_ANSWERS, &k, &a->last, sizeof(a->last));
    }
    if (a->known && a->file_dirty) {
        key_of(&k, SPACE_ANSWER_FILE, &a->agent);
        txn_put(t, SPACE_ANSWER_FILE, &k, &a->file, sizeof(a->file));
    }
    a->last_dirty = a->file_dirty = false;
}

void answers_write_back(struct store_txn *t)
{
    struct key k;
    uint64_t count;
    agent_write_back(t);
    if (t->s->records->unindexed == 0 || t->error != STORE_OK)
        return;
    if (unindexed_read(t->s, t->mdb, &count) != STORE_OK) {
        txn_fail(t, 0, "the number of changes that are not indexed");
        return;
    }
    count += t->s->records->unindexed;
    t->s->records->unindexed = 0;
    key_local(&k, 'a');
    txn_put(t, SPACE_LOCAL, &k, &count, sizeof(count));
}

static void file_load(struct store_txn *t, struct changed_answers *a)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ANSWER_FILE, &a->agent);
    enum store_status status = txn_get(t, SPACE_ANSWER_FILE, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(a->file))
        memcpy(&a->file, v.mv_data, sizeof(a->file));
    else if (status != STORE_NOT_FOUND)
        txn_fail(t, 0, "the record of an answer file");
}

static struct changed_answers *answers_open(struct store_txn *t, const struct ulid *agent)
{
    struct changed_answers *a = &t->s->records->answers;
    if (a->known && ulid_eq(&a->agent, agent))
        return a;
    agent_write_back(t);
    *a = (struct changed_answers){.agent = *agent};
    file_load(t, a);
    if (last_read(t->s, t->mdb, agent, &a->last) != STORE_OK)
        txn_fail(t, 0, "the number of the last change of documents");
    a->known = t->error == STORE_OK;
    return a->known ? a : NULL;
}

/* Once for each agent that a transaction changes. */
static void emit_event(struct store_txn *t, struct changed_answers *a)
{
    a->file_dirty = true;
    if (!a->event_sent)
        txn_event(t, EVENT_ANSWERS, 0, 0, 0);
    a->event_sent = true;
}

static void row_put(struct store_txn *t, const struct ulid *agent, uint64_t number,
                    uint64_t document)
{
    struct key k;
    MDB_val v;
    log_key(&k, agent, number);
    if (txn_get(t, SPACE_ANSWERS_LOG, &k, &v) == STORE_NOT_FOUND)
        t->s->records->unindexed++;
    txn_put(t, SPACE_ANSWERS_LOG, &k, &document, sizeof(document));
}

static void row_del(struct store_txn *t, const struct ulid *agent, uint64_t number)
{
    struct key k;
    log_key(&k, agent, number);
    txn_del(t, SPACE_ANSWERS_LOG, &k);
    t->s->records->unindexed--;
}

/* ---- changes of documents ---- */

static bool is_erased(const struct changed_answers *a)
{
    return a->file.generation != 0 && a->file.state == ANSWERS_DELETED;
}

static void file_begin(struct store_txn *t, struct changed_answers *a)
{
    if (a->file.generation != 0)
        return;
    a->file.generation = a->file.oldest = 1;
    row_put(t, &a->agent, 0, 0);
    emit_event(t, a);
}

/* Its row in the log, in the place of the document's earlier one. */
static void log_change(struct store_txn *t, struct changed_answers *a, uint64_t number,
                       uint64_t document, uint64_t before)
{
    if (before > a->file.indexed)
        row_del(t, &a->agent, before);
    row_put(t, &a->agent, number, document);
    /* a lazy commit can be lost, and the follower would be ahead of the store */
    t->synced = true;
    emit_event(t, a);
}

uint64_t answers_log(struct store_txn *t, const struct ulid *agent, uint64_t document,
                     uint64_t before)
{
    struct changed_answers *a = answers_open(t, agent);
    if (a == NULL || is_erased(a) || (a->last == 0 && before != 0))
        return 0;
    file_begin(t, a);
    a->last++;
    a->last_dirty = true;
    log_change(t, a, a->last, document, before);
    return a->last;
}

/* The numbers of an agent's first rows, from 1 to ${last}. */
static size_t first_rows(struct store_txn *t, const struct ulid *agent, uint64_t last,
                         uint64_t *numbers, size_t most)
{
    struct cursor w = {0};
    struct key from;
    size_t count = 0;
    key_of(&w.prefix, SPACE_ANSWERS_LOG, agent);
    log_key(&from, agent, 1);
    enum store_status status =
        t->error != STORE_OK ? t->error : cursor_from(t->s, t->mdb, &w, DB_WIDGET, &from);
    for (; status == STORE_OK && count < most; status = cursor_next(&w), count++)
        if (!answers_row_number(&w, &numbers[count]) || numbers[count] > last)
            break;
    cursor_end(&w);
    return count;
}

/* Delete rows up to number ${last}; returns how many. */
static size_t delete_rows(struct store_txn *t, const struct ulid *agent, uint64_t last,
                          uint64_t *numbers, size_t most)
{
    size_t count = first_rows(t, agent, last, numbers, most);
    for (size_t i = 0; i < count; i++)
        row_del(t, agent, numbers[i]);
    return count;
}

bool answers_row_number(const struct cursor *w, uint64_t *out)
{
    const uint8_t *at = (const uint8_t *)w->k.mv_data + 1 + ULID_BYTES;
    const uint8_t *end = (const uint8_t *)w->k.mv_data + w->k.mv_size;
    return end > at && w->v.mv_size == sizeof(uint64_t) && key_read_u64(&at, end, out) && at == end;
}

static void file_erase(struct store_txn *t, struct changed_answers *a)
{
    a->last = 0;
    a->last_dirty = false;
    if (a->file.generation == 0 || is_erased(a))
        return;
    a->file.state = ANSWERS_DELETED;
    row_put(t, &a->agent, 0, 0);
    emit_event(t, a);
}

void answers_erase(struct store_txn *t, const struct ulid *agent)
{
    struct key k;
    struct changed_answers *a = answers_open(t, agent);
    if (a == NULL)
        return;
    key_of(&k, SPACE_ANSWERS, agent);
    if (a->last != 0)
        txn_drop(t, SPACE_ANSWERS, &k);
    file_erase(t, a);
}

/* ---- changes of documents in another store ---- */

void answers_follow(struct store_txn *t, const struct ulid *agent, uint64_t last)
{
    struct changed_answers *a = answers_open(t, agent);
    if (a == NULL)
        return;
    if (last == 0) {
        file_erase(t, a);
        return;
    }
    a->last = last;
    a->last_dirty = true;
    file_begin(t, a);
}

/*
 * The last change that no document names: the number of a deletion. The numbers that the first
 * store gave to deletions are not in its rows. 0: none is left, because the deletion of a deleted
 * agent's document has no number.
 */
static uint64_t last_free(struct store_txn *t, struct changed_answers *a)
{
    struct key k;
    MDB_val v;
    if (a->free == 0)
        a->free = a->last + 1;
    while (a->free > a->file.indexed + 1 && t->error == STORE_OK) {
        log_key(&k, &a->agent, --a->free);
        if (txn_get(t, SPACE_ANSWERS_LOG, &k, &v) == STORE_NOT_FOUND)
            return a->free;
    }
    return 0;
}

void answers_follow_document(struct store_txn *t, const struct ulid *agent, uint64_t document,
                             uint64_t before, uint64_t change)
{
    struct changed_answers *a = before == change ? NULL : answers_open(t, agent);
    if (a == NULL || a->file.generation == 0 || is_erased(a))
        return;
    if (change == 0)
        change = last_free(t, a);
    if (change != 0)
        log_change(t, a, change, document, before);
}

/* ---- changes of the state of a file ---- */

static void indexed(struct store_txn *t, struct changed_answers *a, uint64_t number)
{
    uint64_t numbers[DELETED_AT_ONCE];
    size_t count = delete_rows(t, &a->agent, number, numbers, DELETED_AT_ONCE);
    uint64_t to = count == DELETED_AT_ONCE ? numbers[count - 1] : number;
    if (to > a->file.indexed)
        a->file.indexed = to;
    a->file_dirty = true;
}

static void built(struct store_txn *t, struct changed_answers *a, uint64_t number)
{
    a->file.state = ANSWERS_BUILT;
    a->file.oldest = a->file.generation;
    a->file.serving = 0;
    row_del(t, &a->agent, 0);
    indexed(t, a, number);
}

void answers_rebuild(struct store_txn *t, const struct ulid *agent, bool sound)
{
    struct changed_answers *a = answers_open(t, agent);
    if (a == NULL || a->file.generation == 0 || is_erased(a))
        return;
    if (a->file.state == ANSWERS_BUILT)
        a->file.serving = sound ? a->file.generation : 0;
    a->file.generation++;
    a->file.state = ANSWERS_TO_BUILD;
    row_put(t, agent, 0, 0);
    emit_event(t, a);
}

/* Delete the record after the rows: until then the follower repeats the change. */
static void deleted(struct store_txn *t, const struct ulid *agent)
{
    struct key k;
    uint64_t numbers[DELETED_AT_ONCE];
    if (delete_rows(t, agent, UINT64_MAX, numbers, DELETED_AT_ONCE) == DELETED_AT_ONCE)
        return;
    row_del(t, agent, 0);
    key_of(&k, SPACE_ANSWER_FILE, agent);
    txn_del(t, SPACE_ANSWER_FILE, &k);
    t->s->records->answers = (struct changed_answers){0};
}

enum store_status answers_note(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    static const enum answers_state before[] = {[ANSWERS_NOTE_INDEXED] = ANSWERS_BUILT,
                                                [ANSWERS_NOTE_BUILT] = ANSWERS_TO_BUILD,
                                                [ANSWERS_NOTE_LOST] = ANSWERS_BUILT,
                                                [ANSWERS_NOTE_DELETED] = ANSWERS_DELETED};
    struct changed_answers *a = answers_open(t, &c->agent);
    (void)answer;
    if (a == NULL)
        return t->error;
    if (c->fields >= sizeof(before) / sizeof(*before))
        return STORE_INVALID;
    if (a->file.generation == 0 || a->file.state != before[c->fields] ||
        a->file.generation != c->attempt || c->code != ANSWERS_FORMAT)
        return STORE_STALE;
    if (c->id > a->last)
        return STORE_INVALID;
    switch (c->fields) {
    case ANSWERS_NOTE_INDEXED:
        indexed(t, a, c->id);
        break;
    case ANSWERS_NOTE_BUILT:
        built(t, a, c->id);
        break;
    case ANSWERS_NOTE_LOST:
        answers_rebuild(t, &c->agent, false);
        break;
    default:
        deleted(t, &c->agent);
    }
    return t->error;
}
