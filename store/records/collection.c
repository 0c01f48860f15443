#include "store/records/collection.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/context.h"
#include "store/records/ulid_keys.h"

/* Collections and their generations: synced.h. */

/* ---- ids ---- */

static void counters_key(struct key *k)
{
    key_meta(k, 'y');
}

static bool counters_load(struct store_txn *t)
{
    struct key k;
    MDB_val v;
    counters_key(&k);
    t->s->records->synced = (struct synced_counters){0};
    enum store_status status = txn_get(t, SPACE_META, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(t->s->records->synced))
        memcpy(&t->s->records->synced, v.mv_data, sizeof(t->s->records->synced));
    else if (status != STORE_NOT_FOUND)
        txn_fail(t, 0, "the counters of documents");
    t->s->records->synced_known = t->error == STORE_OK;
    return t->s->records->synced_known;
}

struct synced_counters *synced_counters(struct store_txn *t)
{
    if (!t->s->records->synced_known && !counters_load(t))
        return NULL;
    t->s->records->synced_dirty = true;
    return &t->s->records->synced;
}

static uint64_t synced_next_collection(struct store_txn *t)
{
    struct synced_counters *counters = synced_counters(t);
    return counters == NULL ? 0 : ++counters->collection;
}

uint64_t synced_next_document(struct store_txn *t)
{
    struct synced_counters *counters = synced_counters(t);
    return counters == NULL ? 0 : ++counters->document;
}

void synced_write_back(struct store_txn *t)
{
    struct key k;
    counters_key(&k);
    if (t->s->records->synced_dirty)
        txn_put(t, SPACE_META, &k, &t->s->records->synced, sizeof(t->s->records->synced));
}

/* ---- reading ---- */

bool schema_read_collection(MDB_val value, struct store_collection *out)
{
    const struct collection_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || r->kind >= SYNCED_KINDS || r->sync_id_n > SYNC_ID_MAX ||
        value.mv_size != sizeof(*r) + (size_t)r->site_n + r->sync_id_n)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_collection){
        .id = r->id,
        .agent = r->agent,
        .kind = (enum synced_kind)r->kind,
        .site = {p, r->site_n},
        .count = r->count,
        .generations = r->generations,
        .complete = r->complete,
        .completed_at = r->completed_at,
        .synced_at = r->synced_at,
        .sync_id = {p + r->site_n, r->sync_id_n},
    };
    return true;
}

static void name_key(struct key *k, const struct ulid *agent, enum synced_kind kind,
                     struct str site)
{
    const uint8_t byte = (uint8_t)kind;
    key_of(k, SPACE_COLLECTION_NAME, agent);
    key_bytes(k, &byte, 1);
    key_str(k, site);
}

enum store_status collection_named(struct store *s, MDB_txn *txn, const struct ulid *agent,
                                   enum synced_kind kind, struct str site, uint64_t *out)
{
    struct key k;
    MDB_val v;
    name_key(&k, agent, kind, site);
    enum store_status status = store_get(s, txn, SPACE_COLLECTION_NAME, &k, &v);
    if (status == STORE_OK && v.mv_size != sizeof(*out))
        return store_corrupt(s, "the index of collections");
    if (status == STORE_OK)
        memcpy(out, v.mv_data, sizeof(*out));
    return status;
}

enum store_status collection_read(struct store *s, MDB_txn *txn, uint64_t id,
                                  struct store_collection *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_COLLECTION, id);
    enum store_status status = store_get(s, txn, SPACE_COLLECTION, &k, &v);
    return status == STORE_OK && !schema_read_collection(v, out)
               ? store_corrupt(s, "a collection's record")
               : status;
}

void store_collection_each(struct store *s, const struct ulid *agent, store_collection_fn *each,
                           void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct store_collection c;
    struct store_agent a;
    uint64_t id;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = agent_read(s, txn, agent, &a);
    key_of(&w.prefix, SPACE_COLLECTION_NAME, agent);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        bool good = w.v.mv_size == sizeof(id);
        if (good)
            memcpy(&id, w.v.mv_data, sizeof(id));
        if (!good || collection_read(s, txn, id, &c) != STORE_OK) {
            status = store_corrupt(s, "the index of collections");
            break;
        }
        each(arg, STORE_OK, &c);
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- generations ---- */

static void generation_key(struct key *k, uint64_t collection, uint64_t number)
{
    key_id(k, SPACE_GENERATION, collection);
    key_u64(k, number);
}

static void generation_load(struct open_collection *o, struct open_generation *g, uint64_t number)
{
    struct key k;
    MDB_val v;
    *g = (struct open_generation){.number = number, .known = true};
    generation_key(&k, o->record.id, number);
    enum store_status status = txn_get(o->t, SPACE_GENERATION, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(g->row))
        memcpy(&g->row, v.mv_data, sizeof(g->row));
    else if (status != STORE_NOT_FOUND)
        txn_fail(o->t, 0, "a generation's record");
}

static void generation_store(struct open_collection *o, struct open_generation *g)
{
    struct key k;
    if (!g->known)
        return;
    generation_key(&k, o->record.id, g->number);
    txn_put(o->t, SPACE_GENERATION, &k, &g->row, sizeof(g->row));
    g->known = false;
}

static struct generation_record *generation_row(struct open_collection *o, uint64_t number)
{
    if (number < generations_closed(&o->record))
        number = generations_closed(&o->record);
    if (o->live.known && o->live.number == number)
        return &o->live.row;
    if (o->left.known && o->left.number == number)
        return &o->left.row;
    struct open_generation *g = o->live.known ? &o->left : &o->live;
    generation_store(o, g);
    generation_load(o, g, number);
    return &g->row;
}

static void sync_id_key(struct key *k, uint64_t collection, struct str sync_id)
{
    key_id(k, SPACE_GENERATION_ID, collection);
    key_str(k, sync_id);
}

uint64_t generation_of(struct open_collection *o, struct str sync_id)
{
    struct key k;
    MDB_val v;
    uint64_t number = 0;
    if (o->record.id == 0)
        return 0;
    sync_id_key(&k, o->record.id, sync_id);
    enum store_status status = txn_get(o->t, SPACE_GENERATION_ID, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(number))
        memcpy(&number, v.mv_data, sizeof(number));
    else if (status != STORE_NOT_FOUND)
        txn_fail(o->t, 0, "the index of generations");
    return number;
}

/*
 * This generation and all before it can no longer be completed: add their counts to the next one's
 * row, the new last one of this kind.
 */
static void generation_close(struct open_collection *o, uint64_t number)
{
    struct open_generation g, next;
    generation_store(o, &o->live);
    generation_store(o, &o->left);
    generation_load(o, &g, number);
    generation_load(o, &next, number + 1);
    next.row.items += g.row.items;
    if (g.row.items == 0)
        return;
    g.row.items = 0;
    generation_store(o, &g);
    generation_store(o, &next);
}

uint64_t generation_begin(struct open_collection *o, struct str sync_id)
{
    struct key k;
    uint64_t closed = generations_closed(&o->record), number = ++o->record.generations;
    if (closed < generations_closed(&o->record) && closed >= o->record.complete)
        generation_close(o, closed);
    sync_id_key(&k, o->record.id, sync_id);
    txn_put(o->t, SPACE_GENERATION_ID, &k, &number, sizeof(number));
    generation_row(o, number)->begun_at = o->t->now;
    return number;
}

void generation_count(struct open_collection *o, const uint64_t *from, const uint64_t *to)
{
    if (from != NULL)
        generation_row(o, *from)->items--;
    if (to != NULL)
        generation_row(o, *to)->items++;
    o->record.count += (to != NULL) - (uint64_t)(from != NULL);
}

uint64_t generation_complete(struct open_collection *o, uint64_t number, struct str sync_id)
{
    struct cursor w = {0};
    struct key from;
    uint64_t unseen = 0, at;
    generation_store(o, &o->live); /* so that the cursor sees them */
    generation_store(o, &o->left);
    key_id(&w.prefix, SPACE_GENERATION, o->record.id);
    generation_key(&from, o->record.id, o->record.complete);
    enum store_status status = o->t->error != STORE_OK
                                   ? o->t->error
                                   : cursor_from(o->t->s, o->t->mdb, &w, DB_WIDGET, &from);
    for (; status == STORE_OK && cursor_u64(&w, 1, &at) && at < number; status = cursor_next(&w)) {
        struct generation_record row = {0};
        if (w.v.mv_size == sizeof(row))
            memcpy(&row, w.v.mv_data, sizeof(row));
        unseen += row.items;
    }
    cursor_end(&w);
    o->record.count -= unseen;
    o->record.complete = number;
    o->record.completed_at = o->t->now;
    o->sync_id = sync_id;
    return unseen;
}

/* ---- a collection that a transaction changes ---- */

bool collection_by_id(struct open_collection *o, struct store_txn *t, uint64_t id)
{
    struct key k;
    MDB_val v;
    struct store_collection c;
    *o = (struct open_collection){.t = t};
    key_id(&k, SPACE_COLLECTION, id);
    if (txn_get(t, SPACE_COLLECTION, &k, &v) != STORE_OK || !schema_read_collection(v, &c)) {
        txn_fail(t, 0, "a collection's record");
        return false;
    }
    memcpy(&o->record, v.mv_data, sizeof(o->record));
    memcpy(o->texts, c.site.p, c.site.n + c.sync_id.n);
    o->site = (struct str){o->texts, c.site.n};
    o->sync_id = (struct str){o->texts + c.site.n, c.sync_id.n};
    return true;
}

bool collection_open(struct open_collection *o, struct store_txn *t, const struct ulid *agent,
                     enum synced_kind kind, struct str site)
{
    uint64_t id = 0;
    enum store_status status =
        t->error != STORE_OK ? t->error : collection_named(t->s, t->mdb, agent, kind, site, &id);
    if (status == STORE_OK)
        return collection_by_id(o, t, id);
    if (status != STORE_NOT_FOUND) {
        txn_fail(t, 0, "the index of collections");
        return false;
    }
    *o = (struct open_collection){
        .t = t, .site = site, .record = {.kind = (uint8_t)kind, .agent = *agent}};
    return t->error == STORE_OK;
}

bool collection_has_room(struct open_collection *o)
{
    struct cursor w = {0};
    const struct ulid agent = o->record.agent;
    unsigned count = 0;
    name_key(&w.prefix, &agent, (enum synced_kind)o->record.kind, (struct str){NULL, 0});
    enum store_status status = cursor_prefix(o->t->s, o->t->mdb, &w, DB_WIDGET, false);
    for (; status == STORE_OK && count < STORE_SITES_MAX; status = cursor_next(&w))
        count++;
    cursor_end(&w);
    return count < STORE_SITES_MAX;
}

bool collection_begin(struct open_collection *o)
{
    struct key k;
    const struct ulid agent = o->record.agent;
    o->record.synced_at = o->t->now;
    if (o->record.id != 0)
        return true;
    uint64_t id = synced_next_collection(o->t);
    o->record.id = id;
    name_key(&k, &agent, (enum synced_kind)o->record.kind, o->site);
    txn_put(o->t, SPACE_COLLECTION_NAME, &k, &id, sizeof(id));
    return o->t->error == STORE_OK;
}

void collection_close(struct open_collection *o)
{
    struct key k;
    generation_store(o, &o->live);
    generation_store(o, &o->left);
    o->record.site_n = (uint8_t)o->site.n;
    o->record.sync_id_n = (uint8_t)o->sync_id.n;
    key_id(&k, SPACE_COLLECTION, o->record.id);
    char *to =
        txn_reserve(o->t, SPACE_COLLECTION, &k, sizeof(o->record) + o->site.n + o->sync_id.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&o->record, sizeof(o->record)});
    append_str(append_str(to, o->site), o->sync_id);
}
