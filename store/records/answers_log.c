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

bool schema_read_answers(MDB_val value, struct store_answers *out)
{
    const struct answers_record *r = store_record(value, sizeof(*r));
    if (r == NULL || r->state >= ANSWERS_STATES)
        return false;
    *out = (struct store_answers){.last = r->last,
                                  .indexed = r->indexed,
                                  .generation = r->generation,
                                  .oldest = r->oldest,
                                  .serving = r->serving,
                                  .state = (enum answers_state)r->state};
    return true;
}

enum store_status answers_read(struct store *s, MDB_txn *txn, const struct ulid *agent,
                               struct store_answers *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ANSWERS, agent);
    enum store_status status = store_get(s, txn, SPACE_ANSWERS, &k, &v);
    if (status == STORE_OK && !schema_read_answers(v, out))
        status = store_corrupt(s, "the record of an answer file");
    return status;
}

enum store_status store_answers_get(struct store *s, const struct ulid *agent,
                                    struct store_answers *out)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    return status == STORE_OK ? answers_read(s, txn, agent, out) : status;
}

enum store_status store_answers_unindexed(struct store *s, uint64_t *out)
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    const struct synced_counters *counters = NULL;
    enum store_status status = store_snapshot(s, &txn);
    key_meta(&k, 'y');
    *out = 0;
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_META, &k, &v);
    if (status == STORE_OK && (counters = store_record(v, sizeof(*counters))) == NULL)
        status = store_corrupt(s, "the row with the counters of documents");
    if (counters != NULL)
        memcpy(out, (const char *)counters + offsetof(struct synced_counters, unindexed),
               sizeof(*out));
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* ---- the record that a transaction changes ---- */

void answers_write_back(struct store_txn *t)
{
    struct key k;
    if (!t->s->records->answers.known || !t->s->records->answers.dirty)
        return;
    key_of(&k, SPACE_ANSWERS, &t->s->records->answers.agent);
    txn_put(t, SPACE_ANSWERS, &k, &t->s->records->answers.record,
            sizeof(t->s->records->answers.record));
    t->s->records->answers.dirty = false;
}

static struct answers_record *answers_open(struct store_txn *t, const struct ulid *agent)
{
    struct key k;
    MDB_val v;
    if (t->s->records->answers.known && ulid_eq(&t->s->records->answers.agent, agent))
        return &t->s->records->answers.record;
    answers_write_back(t);
    t->s->records->answers.agent = *agent;
    t->s->records->answers.record = (struct answers_record){0};
    t->s->records->answers.event_sent = false;
    key_of(&k, SPACE_ANSWERS, agent);
    enum store_status status = txn_get(t, SPACE_ANSWERS, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(t->s->records->answers.record))
        memcpy(&t->s->records->answers.record, v.mv_data, sizeof(t->s->records->answers.record));
    else if (status != STORE_NOT_FOUND)
        txn_fail(t, 0, "the record of an answer file");
    t->s->records->answers.known = t->error == STORE_OK;
    return t->s->records->answers.known ? &t->s->records->answers.record : NULL;
}

/* Once for each agent that a transaction changes. */
static void emit_event(struct store_txn *t)
{
    t->s->records->answers.dirty = true;
    if (!t->s->records->answers.event_sent)
        txn_event(t, EVENT_ANSWERS, 0, 0, 0);
    t->s->records->answers.event_sent = true;
}

static void row_put(struct store_txn *t, const struct ulid *agent, uint64_t number,
                    uint64_t document)
{
    struct key k;
    MDB_val v;
    struct synced_counters *counters = synced_counters(t);
    log_key(&k, agent, number);
    if (counters != NULL && txn_get(t, SPACE_ANSWERS_LOG, &k, &v) == STORE_NOT_FOUND)
        counters->unindexed++;
    txn_put(t, SPACE_ANSWERS_LOG, &k, &document, sizeof(document));
}

static void row_del(struct store_txn *t, const struct ulid *agent, uint64_t number)
{
    struct key k;
    struct synced_counters *counters = synced_counters(t);
    log_key(&k, agent, number);
    txn_del(t, SPACE_ANSWERS_LOG, &k);
    if (counters != NULL)
        counters->unindexed--;
}

/* ---- changes of documents ---- */

uint64_t answers_log(struct store_txn *t, const struct ulid *agent, uint64_t document,
                     uint64_t before)
{
    struct answers_record *r = answers_open(t, agent);
    if (r == NULL)
        return 0;
    if (r->last == 0) {
        r->generation = r->oldest = 1;
        row_put(t, agent, 0, 0);
    }
    if (before > r->indexed)
        row_del(t, agent, before);
    row_put(t, agent, ++r->last, document);
    /* a lazy commit can be lost, and the follower would be ahead of the store */
    t->awaited = true;
    emit_event(t);
    return r->last;
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

void answers_erase(struct store_txn *t, const struct ulid *agent)
{
    struct answers_record *r = answers_open(t, agent);
    if (r == NULL || r->last == 0 || r->state == ANSWERS_DELETED)
        return;
    r->state = ANSWERS_DELETED;
    row_put(t, agent, 0, 0);
    emit_event(t);
}

/* ---- changes of the state of a file ---- */

static void indexed(struct store_txn *t, const struct ulid *agent, struct answers_record *r,
                    uint64_t number)
{
    uint64_t numbers[DELETED_AT_ONCE];
    size_t count = delete_rows(t, agent, number, numbers, DELETED_AT_ONCE);
    uint64_t to = count == DELETED_AT_ONCE ? numbers[count - 1] : number;
    if (to > r->indexed)
        r->indexed = to;
    t->s->records->answers.dirty = true;
}

static void built(struct store_txn *t, const struct ulid *agent, struct answers_record *r,
                  uint64_t number)
{
    r->state = ANSWERS_BUILT;
    r->oldest = r->generation;
    r->serving = 0;
    row_del(t, agent, 0);
    indexed(t, agent, r, number);
}

void answers_rebuild(struct store_txn *t, const struct ulid *agent, bool sound)
{
    struct answers_record *r = answers_open(t, agent);
    if (r == NULL || r->last == 0 || r->state == ANSWERS_DELETED)
        return;
    if (r->state == ANSWERS_BUILT)
        r->serving = sound ? r->generation : 0;
    r->generation++;
    r->state = ANSWERS_TO_BUILD;
    row_put(t, agent, 0, 0);
    emit_event(t);
}

/* Delete the record after the rows: until then the follower repeats the change. */
static void deleted(struct store_txn *t, const struct ulid *agent)
{
    struct key k;
    uint64_t numbers[DELETED_AT_ONCE];
    if (delete_rows(t, agent, UINT64_MAX, numbers, DELETED_AT_ONCE) == DELETED_AT_ONCE)
        return;
    row_del(t, agent, 0);
    key_of(&k, SPACE_ANSWERS, agent);
    txn_del(t, SPACE_ANSWERS, &k);
    t->s->records->answers.known = t->s->records->answers.dirty = false;
}

enum store_status answers_note(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    static const enum answers_state before[] = {[ANSWERS_NOTE_INDEXED] = ANSWERS_BUILT,
                                                [ANSWERS_NOTE_BUILT] = ANSWERS_TO_BUILD,
                                                [ANSWERS_NOTE_LOST] = ANSWERS_BUILT,
                                                [ANSWERS_NOTE_DELETED] = ANSWERS_DELETED};
    struct answers_record *r = answers_open(t, &c->agent);
    (void)answer;
    if (r == NULL)
        return t->error;
    if (c->fields >= sizeof(before) / sizeof(*before))
        return STORE_INVALID;
    if (r->last == 0 || r->state != before[c->fields] || r->generation != c->attempt ||
        c->code != ANSWERS_FORMAT)
        return STORE_STALE;
    if (c->id > r->last)
        return STORE_INVALID;
    switch (c->fields) {
    case ANSWERS_NOTE_INDEXED:
        indexed(t, &c->agent, r, c->id);
        break;
    case ANSWERS_NOTE_BUILT:
        built(t, &c->agent, r, c->id);
        break;
    case ANSWERS_NOTE_LOST:
        answers_rebuild(t, &c->agent, false);
        break;
    default:
        deleted(t, &c->agent);
    }
    return t->error;
}
