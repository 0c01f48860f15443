#include "store/records/cached_records.h"

#include "store/engine/txn.h"
#include "store/records/context.h"

#include <errno.h>
#include <stdlib.h>

static struct cached_record **chain(struct store_txn *t, enum space space, uint64_t id)
{
    return &t->s->records->cache[(id * 2 + (space == SPACE_PROJECT)) % CACHE_CHAINS];
}

static struct cached_record *cache_add(struct store_txn *t, enum space space, uint64_t id,
                                       struct str name)
{
    struct cached_record *c = t->s->records->unused;
    if (c != NULL)
        t->s->records->unused = c->next;
    else
        c = malloc(sizeof(*c));
    if (c == NULL) {
        txn_fail(t, ENOMEM, "hold a record");
        return NULL;
    }
    struct cached_record **at = chain(t, space, id);
    c->next = *at;
    *at = c;
    c->space = space;
    c->id = id;
    c->dirty = c->gone = false;
    memcpy(c->name_bytes, name.p, name.n);
    c->name = (struct str){c->name_bytes, name.n};
    return c;
}

struct cached_record *txn_made(struct store_txn *t, enum space space, uint64_t id, struct str name)
{
    struct cached_record *c = cache_add(t, space, id, name);
    if (c == NULL)
        return NULL;
    c->dirty = true;
    c->workspace = (struct workspace_record){.id = id, .created_at = t->now};
    c->project =
        (struct project_record){.id = id, .version = 1, .created_at = t->now, .updated_at = t->now};
    return c;
}

/* Read a record: a header of ${size} bytes, followed by the name. */
static struct cached_record *cache_load(struct store_txn *t, enum space space, uint64_t id)
{
    struct key k;
    MDB_val v;
    key_id(&k, space, id);
    if (txn_get(t, space, &k, &v) != STORE_OK)
        return NULL;
    struct store_workspace w;
    struct store_project p;
    bool good =
        space == SPACE_WORKSPACE ? schema_read_workspace(v, &w) : schema_read_project(v, &p);
    struct str name = space == SPACE_WORKSPACE ? w.name : p.name;
    if (!good) {
        txn_fail(t, 0, space == SPACE_WORKSPACE ? "a workspace's record" : "a project's record");
        return NULL;
    }
    struct cached_record *c = cache_add(t, space, id, name);
    if (c == NULL)
        return NULL;
    if (space == SPACE_WORKSPACE)
        memcpy(&c->workspace, v.mv_data, sizeof(c->workspace));
    else
        memcpy(&c->project, v.mv_data, sizeof(c->project));
    return c;
}

static struct cached_record *cache_get(struct store_txn *t, enum space space, uint64_t id)
{
    for (struct cached_record *c = *chain(t, space, id); c != NULL; c = c->next) {
        if (c->id == id && c->space == space)
            return c->gone ? NULL : c;
    }
    return cache_load(t, space, id);
}

struct cached_record *txn_workspace(struct store_txn *t, uint64_t id)
{
    return cache_get(t, SPACE_WORKSPACE, id);
}

struct cached_record *txn_project(struct store_txn *t, uint64_t id)
{
    return cache_get(t, SPACE_PROJECT, id);
}

struct cached_record *txn_workspace_active(struct store_txn *t, uint64_t id)
{
    struct cached_record *c = txn_workspace(t, id);
    return c == NULL || c->workspace.deleting ? NULL : c;
}

struct cached_record *txn_project_active(struct store_txn *t, uint64_t workspace, uint64_t id)
{
    struct cached_record *c = txn_project(t, id);
    return c == NULL || c->project.deleting || c->project.workspace != workspace ? NULL : c;
}

void txn_changed(struct store_txn *t, struct cached_record *c)
{
    if (c->space == SPACE_PROJECT) {
        c->project.updated_at = t->now;
        c->project.version += !c->dirty;
    }
    c->dirty = true;
}

void txn_gone(struct store_txn *t, struct cached_record *c)
{
    struct key k;
    key_id(&k, c->space, c->id);
    txn_drop(t, c->space, &k);
    c->gone = true;
}

static void write_workspace(struct store_txn *t, struct cached_record *c)
{
    struct key k;
    key_id(&k, SPACE_WORKSPACE, c->id);
    c->workspace.name_n = (uint16_t)c->name.n;
    char *to = txn_reserve(t, SPACE_WORKSPACE, &k, sizeof(c->workspace) + c->name.n);
    if (to == NULL)
        return;
    memcpy(to, &c->workspace, sizeof(c->workspace));
    memcpy(to + sizeof(c->workspace), c->name.p, c->name.n);
}

static void write_project(struct store_txn *t, struct cached_record *c)
{
    struct project_record *r = &c->project;
    struct key k;
    r->name_n = (uint16_t)c->name.n;
    key_id(&k, SPACE_PROJECT, c->id);
    char *to = txn_reserve(t, SPACE_PROJECT, &k, sizeof(*r) + c->name.n);
    if (to == NULL)
        return;
    memcpy(to, r, sizeof(*r));
    memcpy(to + sizeof(*r), c->name.p, c->name.n);
}

void cache_write(struct store_txn *t)
{
    for (size_t i = 0; i < CACHE_CHAINS; i++) {
        for (struct cached_record *c = t->s->records->cache[i]; c != NULL; c = c->next) {
            if (!c->dirty || c->gone)
                continue;
            if (c->space == SPACE_WORKSPACE)
                write_workspace(t, c);
            else
                write_project(t, c);
        }
    }
}

void cache_clear(struct store_txn *t)
{
    t->s->records->named = NULL;
    for (size_t i = 0; i < CACHE_CHAINS; i++) {
        while (t->s->records->cache[i] != NULL) {
            struct cached_record *c = t->s->records->cache[i];
            t->s->records->cache[i] = c->next;
            c->next = t->s->records->unused;
            t->s->records->unused = c;
        }
    }
}

void cache_free(struct store_txn *t)
{
    cache_clear(t);
    while (t->s->records->unused != NULL) {
        struct cached_record *c = t->s->records->unused;
        t->s->records->unused = c->next;
        free(c);
    }
}
