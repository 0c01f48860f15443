#include "index.h"

#define LEAF '\0'
#define INNER '\1'

void index_prefix(struct key *k, enum index_kind kind, enum index_scope scope, uint64_t scope_id, enum report_result class)
{
    key_tag(k, (uint8_t)((unsigned)kind << 4 | (unsigned)scope << 3 | (unsigned)class));
    key_u64(k, scope_id);
}

/* ---- keys ---- */

static void entry_prefix(struct key *k, const struct store_report *r, enum index_scope scope, enum index_kind kind)
{
    index_prefix(k, kind, scope, scope == SCOPE_WORKSPACE ? r->workspace : r->project, r->result);
}

/* A full segment's key below ${node}, or the last one's. */
static void segment_key(struct key *k, const struct store_report *r, enum index_scope scope, uint64_t node, struct str segment, char end)
{
    entry_prefix(k, r, scope, INDEX_URL);
    key_u64(k, node);
    key_str(k, segment);
    key_bytes(k, &end, 1);
    if (end == LEAF)
        key_u64(k, r->id);
}

static void plain_key(struct key *k, const struct store_report *r, enum index_scope scope, enum index_kind kind)
{
    entry_prefix(k, r, scope, kind);
    if (kind == INDEX_DATE)
        key_u64(k, (uint64_t)r->generated_at);
    if (kind == INDEX_SCORE)
        key_u64(k, (uint64_t)r->score);
    key_u64(k, r->id);
}

static void entry_put(struct store_txn *t, struct key *k, const struct store_report *r, enum index_scope scope)
{
    struct key value = {.n = 0};
    if (scope == SCOPE_WORKSPACE)
        key_u64(&value, r->project);
    txn_put(t, SPACE_INDEX, k, value.b, value.n);
}

/* ---- URLs ---- */

static bool node_load(struct store_txn *t, struct key *k, struct index_node *out)
{
    MDB_val v;
    *out = (struct index_node){0};
    if (txn_get(t, SPACE_INDEX, k, &v) != STORE_OK)
        return false;
    if (v.mv_size != sizeof(*out)) {
        txn_fail(t, 0, "the index of URLs");
        return false;
    }
    memcpy(out, v.mv_data, sizeof(*out));
    return true;
}

/* Step over the full segments, counting ${by} at each node; what is left is the last segment. */
static uint64_t url_descend(struct store_txn *t, const struct store_report *r, enum index_scope scope, uint64_t by, struct str *rest)
{
    uint64_t at = 0;
    *rest = r->url;
    while (rest->n > INDEX_SEGMENT_BYTES && t->error == STORE_OK) {
        struct key k;
        struct index_node node;
        segment_key(&k, r, scope, at, (struct str){rest->p, INDEX_SEGMENT_BYTES}, INNER);
        if (!node_load(t, &k, &node))
            node.node = txn_next(t, node);
        node.urls += by;
        if (node.urls == 0)
            txn_del(t, SPACE_INDEX, &k);
        else
            txn_put(t, SPACE_INDEX, &k, &node, sizeof(node));
        at = node.node;
        *rest = (struct str){rest->p + INDEX_SEGMENT_BYTES, rest->n - INDEX_SEGMENT_BYTES};
    }
    return at;
}

static void url_put(struct store_txn *t, const struct store_report *r, enum index_scope scope)
{
    struct key k;
    struct str rest;
    uint64_t node = url_descend(t, r, scope, 1, &rest);
    if (t->error != STORE_OK)
        return; /* it stopped on the way: the rest is more than a segment */
    segment_key(&k, r, scope, node, rest, LEAF);
    entry_put(t, &k, r, scope);
}

static void url_del(struct store_txn *t, const struct store_report *r, enum index_scope scope)
{
    struct key k;
    struct str rest;
    uint64_t node = url_descend(t, r, scope, (uint64_t)-1, &rest);
    if (t->error != STORE_OK)
        return;
    segment_key(&k, r, scope, node, rest, LEAF);
    txn_del(t, SPACE_INDEX, &k);
}

/* ---- moving ---- */

static void plain_del(struct store_txn *t, const struct store_report *r, enum index_scope scope, enum index_kind kind)
{
    struct key k;
    plain_key(&k, r, scope, kind);
    txn_del(t, SPACE_INDEX, &k);
}

static void plain_put(struct store_txn *t, const struct store_report *r, enum index_scope scope, enum index_kind kind)
{
    struct key k;
    plain_key(&k, r, scope, kind);
    entry_put(t, &k, r, scope);
}

/* Has ${r} an entry of that kind, and would ${other} have the same? */
static bool only_in(const struct store_report *r, const struct store_report *other, enum index_kind kind)
{
    if (r == NULL)
        return false;
    if ((kind == INDEX_DATE || kind == INDEX_SCORE) && r->result == RESULT_NONE)
        return false;
    if (other == NULL || other->result != r->result)
        return true;
    return (kind == INDEX_DATE && other->generated_at != r->generated_at) || (kind == INDEX_SCORE && other->score != r->score);
}

void index_move(struct store_txn *t, const struct store_report *old, const struct store_report *new)
{
    for (enum index_scope scope = SCOPE_WORKSPACE; scope <= SCOPE_PROJECT; scope++) {
        for (enum index_kind kind = INDEX_ID; kind <= INDEX_SCORE; kind++) {
            if (only_in(old, new, kind))
                plain_del(t, old, scope, kind);
            if (only_in(new, old, kind))
                plain_put(t, new, scope, kind);
        }
        if (only_in(old, new, INDEX_URL))
            url_del(t, old, scope);
        if (only_in(new, old, INDEX_URL))
            url_put(t, new, scope);
    }
}

enum store_status index_key(struct store *s, MDB_txn *txn, const struct store_report *r, enum index_scope scope, enum index_kind kind,
                            struct key *out)
{
    MDB_val v;
    struct str rest = r->url;
    uint64_t node = 0;
    if (kind != INDEX_URL) {
        plain_key(out, r, scope, kind);
        return STORE_OK;
    }
    while (rest.n > INDEX_SEGMENT_BYTES) {
        segment_key(out, r, scope, node, (struct str){rest.p, INDEX_SEGMENT_BYTES}, INNER);
        enum store_status status = store_get(s, txn, SPACE_INDEX, out, &v);
        const struct index_node *found = status == STORE_OK ? store_record(v, sizeof(*found)) : NULL;
        if (found == NULL)
            return status == STORE_OK ? STORE_NOT_FOUND : status;
        node = found->node;
        rest = (struct str){rest.p + INDEX_SEGMENT_BYTES, rest.n - INDEX_SEGMENT_BYTES};
    }
    segment_key(out, r, scope, node, rest, LEAF);
    return STORE_OK;
}

/* ---- walking ---- */

static bool read_value(struct index_run *run, MDB_val v)
{
    const uint8_t *at = v.mv_data;
    run->entry.project = 0;
    return run->scope == SCOPE_PROJECT || key_read_u64(&at, at + v.mv_size, &run->entry.project);
}

static bool read_plain(struct index_run *run)
{
    struct walk *w = &run->levels[0];
    const uint8_t *at = (const uint8_t *)w->k.mv_data + w->prefix.n;
    const uint8_t *end = (const uint8_t *)w->k.mv_data + w->k.mv_size;
    run->entry.value = 0;
    if (run->kind != INDEX_ID && !key_read_u64(&at, end, &run->entry.value))
        return false;
    return key_read_u64(&at, end, &run->entry.id) && at == end && read_value(run, w->v);
}

/* A last segment: at the first level it is the URL, deeper it is put behind what lies above. */
static bool read_leaf(struct index_run *run, const uint8_t *p, const uint8_t *nul, const uint8_t *end)
{
    size_t n = (size_t)(nul - p), above = run->path_n[run->depth];
    const uint8_t *at = nul + 1;
    if (run->depth == 0) {
        run->entry.url = (struct str){(const char *)p, n};
    } else {
        memcpy(run->path + above, p, n);
        run->entry.url = (struct str){run->path, above + n};
    }
    return key_read_u64(&at, end, &run->entry.id) && at == end && read_value(run, run->levels[run->depth].v);
}

static bool descend(struct index_walk *w, struct index_run *run, const uint8_t *segment)
{
    struct walk *from = &run->levels[run->depth];
    const struct index_node *node = store_record(from->v, sizeof(*node));
    size_t above = run->path_n[run->depth];
    if (node == NULL || run->depth + 1 == INDEX_LEVELS || above > URL_MAX_BYTES)
        return false;
    memcpy(run->path + above, segment, INDEX_SEGMENT_BYTES);
    struct walk *to = &run->levels[++run->depth];
    run->path_n[run->depth] = above + INDEX_SEGMENT_BYTES;
    /* the same tag and scope, another node */
    const uint8_t *at = run->levels[0].prefix.b + 1;
    uint64_t scope_id;
    if (!key_read_u64(&at, run->levels[0].prefix.b + run->levels[0].prefix.n, &scope_id))
        return false;
    key_tag(&to->prefix, run->levels[0].prefix.b[0]);
    key_u64(&to->prefix, scope_id);
    key_u64(&to->prefix, node->node);
    run->status = walk_prefix(w->s, w->txn, to, DB_INDEX, w->backward);
    return true;
}

/* Go on from where the deepest level stands until a URL is complete. */
static void settle_url(struct index_walk *w, struct index_run *run)
{
    for (;;) {
        struct walk *level = &run->levels[run->depth];
        if (run->status == STORE_NOT_FOUND && run->depth > 0) {
            walk_end(level);
            run->depth--;
            run->status = walk_next(&run->levels[run->depth]);
            continue;
        }
        if (run->status != STORE_OK)
            return;
        const uint8_t *p = (const uint8_t *)level->k.mv_data + level->prefix.n;
        const uint8_t *end = (const uint8_t *)level->k.mv_data + level->k.mv_size;
        size_t n = (size_t)(end - p);
        const uint8_t *nul = memchr(p, LEAF, n < INDEX_SEGMENT_BYTES + 1 ? n : INDEX_SEGMENT_BYTES + 1);
        bool good;
        if (nul != NULL) {
            good = read_leaf(run, p, nul, end);
        } else {
            good = n == INDEX_SEGMENT_BYTES + 1 && p[INDEX_SEGMENT_BYTES] == INNER && descend(w, run, p);
            if (good)
                continue;
        }
        if (!good)
            run->status = store_corrupt(w->s, "the index of URLs");
        return;
    }
}

static void settle(struct index_walk *w, struct index_run *run)
{
    if (run->kind == INDEX_URL)
        settle_url(w, run);
    else if (run->status == STORE_OK && !read_plain(run))
        run->status = store_corrupt(w->s, "an index of reports");
}

static void run_begin(struct index_walk *w, struct index_run *run)
{
    run->depth = 0;
    run->path_n[0] = 0;
    run->entry = (struct index_entry){.group = run->group};
    if (run->kind == INDEX_URL)
        key_u64(&run->levels[0].prefix, 0);
    run->status = walk_prefix(w->s, w->txn, &run->levels[0], DB_INDEX, w->backward);
    settle(w, run);
}

void index_begin(struct store *s, MDB_txn *txn, struct index_walk *w, enum report_sort sort, enum index_scope scope, uint64_t scope_id,
                 enum report_result result, bool ascending)
{
    static const enum index_kind kinds[] = {
        [REPORT_BY_ID] = INDEX_ID, [REPORT_BY_GENERATED_AT] = INDEX_DATE, [REPORT_BY_URL] = INDEX_URL, [REPORT_BY_SCORE] = INDEX_SCORE};
    w->s = s;
    w->txn = txn;
    w->backward = !ascending;
    w->count = 0;
    w->last = NULL;
    for (enum report_result class = RESULT_NONE; class <= RESULT_BAD; class ++) {
        if (result != RESULT_NONE && result != class)
            continue;
        struct index_run *run = &w->runs[w->count++];
        bool without = class == RESULT_NONE && (sort == REPORT_BY_GENERATED_AT || sort == REPORT_BY_SCORE);
        run->kind = without ? INDEX_ID : kinds[sort];
        run->group = without ? 0 : 1;
        run->scope = scope;
        index_prefix(&run->levels[0].prefix, run->kind, scope, scope_id, class);
        run_begin(w, run);
    }
}

/* Entries in the order of the list, ascending. */
static int compare(const struct index_entry *a, const struct index_entry *b)
{
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    size_t n = a->url.n < b->url.n ? a->url.n : b->url.n;
    int order = n == 0 ? 0 : memcmp(a->url.p, b->url.p, n);
    if (order != 0)
        return order;
    if (a->url.n != b->url.n)
        return a->url.n < b->url.n ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The entry handed out is the one its run stands on; the step away from it is taken at the next call, so that it may borrow. */
enum store_status index_next(struct index_walk *w, struct index_entry *entry)
{
    struct index_run *best = NULL;
    if (w->last != NULL) {
        w->last->status = walk_next(&w->last->levels[w->last->depth]);
        settle(w, w->last);
        w->last = NULL;
    }
    for (size_t i = 0; i < w->count; i++) {
        struct index_run *run = &w->runs[i];
        if (run->status == STORE_NOT_FOUND)
            continue;
        if (run->status != STORE_OK)
            return run->status;
        int order = best == NULL ? 0 : compare(&run->entry, &best->entry);
        if (best == NULL || (w->backward ? order > 0 : order < 0))
            best = run;
    }
    if (best == NULL)
        return STORE_NOT_FOUND;
    *entry = best->entry;
    w->last = best;
    return STORE_OK;
}

void index_end(struct index_walk *w)
{
    for (size_t i = 0; i < w->count; i++) {
        for (size_t level = 0; level <= w->runs[i].depth; level++)
            walk_end(&w->runs[i].levels[level]);
    }
    w->count = 0;
}
