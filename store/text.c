#include "text.h"

#include <errno.h>
#include <stdlib.h>

#define GATHER_WORDS (1u << 19) /* that a transaction gathers for an agent before it puts a part */

/* ---- reading the head ---- */

enum store_status text_manifest(struct store *s, MDB_txn *txn, const struct ulid *agent, struct text_manifest *out)
{
    struct key k;
    MDB_val v;
    *out = (struct text_manifest){.head = {.next_seq = 1, .next_part = 1}};
    key_space(&k, SPACE_TEXT);
    key_bytes(&k, agent->b, ULID_BYTES);
    enum store_status status = store_get(s, txn, SPACE_TEXT, &k, &v);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    size_t rest = v.mv_size - sizeof(out->head);
    if (v.mv_size < sizeof(out->head) || rest % sizeof(*out->parts) != 0)
        return store_corrupt(s, "the head of a full-text index");
    memcpy(&out->head, v.mv_data, sizeof(out->head));
    out->parts = (const struct text_part_row *)(const void *)((const uint8_t *)v.mv_data + sizeof(out->head));
    out->count = rest / sizeof(*out->parts);
    return STORE_OK;
}

bool text_dead(struct store *s, MDB_txn *txn, const struct ulid *agent, uint64_t part, uint64_t *bits)
{
    struct key k;
    MDB_val v;
    text_part_key(&k, SPACE_TEXT_DEAD, agent, part);
    memset(bits, 0, TEXT_ROWS / 8);
    enum store_status status = store_get(s, txn, SPACE_TEXT_DEAD, &k, &v);
    if (status == STORE_OK && v.mv_size == TEXT_ROWS / 8)
        memcpy(bits, v.mv_data, TEXT_ROWS / 8);
    return status == STORE_OK && v.mv_size == TEXT_ROWS / 8;
}

/* ---- what a transaction gathers ---- */

/* A word of a row, or (GONE) of a document that went. They come grouped by row. */
struct entry {
    uint64_t hash;
    uint32_t row;
    uint32_t frequency;
};
#define GONE (1u << 31)

struct gathered_row {
    uint64_t id, seq;
    uint32_t words;
    bool dead; /* put and gone in the same transaction */
};

struct text_batch {
    struct text_batch *next;
    struct ulid agent;
    bool open; /* the head was read, in this transaction */
    struct text_head head;
    uint64_t first_seq;             /* of its rows */
    struct buf parts;               /* of text_part_row */
    struct buf entries, rows, dead; /* of entry; gathered_row; numbers of rows of parts that die */
    uint32_t gone;
};

static size_t row_count(const struct text_batch *b)
{
    return b->rows.n / sizeof(struct gathered_row);
}

static struct gathered_row *row_at(struct text_batch *b, size_t i)
{
    return (struct gathered_row *)(void *)b->rows.p + i;
}

static bool batch_open(struct store_txn *t, struct text_batch *b)
{
    struct text_manifest m;
    if (b->open)
        return true;
    if (text_manifest(t->s, t->mdb, &b->agent, &m) != STORE_OK) {
        txn_fail(t, 0, "the head of a full-text index");
        return false;
    }
    b->open = true;
    b->head = m.head;
    b->first_seq = m.head.next_seq;
    b->gone = 0;
    buf_reset(&b->parts);
    buf_reset(&b->entries);
    buf_reset(&b->rows);
    buf_reset(&b->dead);
    buf_add(&b->parts, m.parts, m.count * sizeof(*m.parts));
    return true;
}

static struct text_batch *batch_of(struct store_txn *t, const struct ulid *agent)
{
    struct text_batch *b = t->texts, *unused = NULL;
    for (; b != NULL && memcmp(b->agent.b, agent->b, ULID_BYTES) != 0; b = b->next)
        unused = b->open ? unused : b;
    if (b == NULL && unused != NULL) {
        b = unused;
    } else if (b == NULL) {
        b = calloc(1, sizeof(*b));
        if (b == NULL) {
            txn_fail(t, ENOMEM, "gather words");
            return NULL;
        }
        b->next = t->texts;
        t->texts = b;
    }
    b->agent = *agent;
    return batch_open(t, b) ? b : NULL;
}

static void batch_free(struct text_batch *b)
{
    buf_free(&b->parts);
    buf_free(&b->entries);
    buf_free(&b->rows);
    buf_free(&b->dead);
    free(b);
}

void text_undo(struct store_txn *t)
{
    for (struct text_batch *b = t->texts; b != NULL; b = b->next)
        b->open = false;
}

void text_free(struct store_txn *t)
{
    while (t->texts != NULL) {
        struct text_batch *b = t->texts;
        t->texts = b->next;
        batch_free(b);
    }
}

/* ---- a document ---- */

uint32_t text_gather(const struct text_doc *doc, uint32_t units, text_word_fn *each, void *arg)
{
    /* Columns: a text, what one of its words counts */
    const struct {
        struct str text;
        uint32_t frequency;
    } fields[] = {{doc->title, 4}, {doc->taxonomy, 2}, {doc->sku, 2}, {doc->text, 1}};
    uint32_t count = 0, left = units == 0 ? UINT32_MAX : units * TEXT_UNIT;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        struct words w;
        struct word word;
        words_begin(&w, fields[i].text, true);
        for (; count < TEXT_WORDS && left > 0 && words_next(&w, &word); left--) {
            each(arg, word.hash, fields[i].frequency);
            count += word.counts;
        }
    }
    return count;
}

struct gathering {
    struct text_batch *batch;
    uint32_t row;
};

static void add_entry(void *arg, uint64_t hash, uint32_t frequency)
{
    const struct gathering *g = arg;
    const struct entry e = {hash, g->row, frequency};
    buf_add(&g->batch->entries, &e, sizeof(e));
}

/* Adds its words, each ${row}'s; how many it has. */
static uint32_t gather(struct text_batch *b, const struct text_doc *doc, uint32_t units, uint32_t row)
{
    struct gathering g = {b, row};
    return text_gather(doc, units, add_entry, &g);
}

void text_share(struct store_txn *t, size_t count)
{
    t->text_shares = (uint32_t)count;
    t->text_entries = TEXT_BATCH_ENTRIES;
}

/* What the next document may have: what is left, but for the shares of those behind it. */
static uint32_t units_of(const struct store_txn *t)
{
    const uint32_t others = t->text_shares * TEXT_SHARE - TEXT_SHARE;
    uint32_t entries = t->text_entries > others + TEXT_SHARE ? t->text_entries - others : TEXT_SHARE;
    return (entries < TEXT_DOC_ENTRIES ? entries : TEXT_DOC_ENTRIES) / TEXT_UNIT;
}

static void row_key(struct key *k, uint64_t id)
{
    key_id(k, SPACE_TEXT_ROW, id);
}

static void remove_doc(struct store_txn *t, struct text_batch *b, uint64_t id, const struct text_doc *was)
{
    struct key k;
    MDB_val v;
    row_key(&k, id);
    const struct text_row_record *r = txn_get(t, SPACE_TEXT_ROW, &k, &v) == STORE_OK ? store_record(v, sizeof(*r)) : NULL;
    if (r == NULL || memcmp(r->agent.b, b->agent.b, ULID_BYTES) != 0) {
        txn_fail(t, 0, "the full-text index");
        return;
    }
    b->head.documents--;
    b->head.words -= r->words;
    if (r->seq >= b->first_seq) {
        row_at(b, r->seq - b->first_seq)->dead = true;
        return;
    }
    uint64_t seq = r->seq;
    buf_add(&b->dead, &seq, sizeof(seq));
    gather(b, was, r->units, GONE | b->gone++);
}

static void put_doc(struct store_txn *t, struct text_batch *b, uint64_t id, const struct text_doc *now)
{
    struct key k;
    struct gathered_row row = {.id = id, .seq = b->head.next_seq++};
    const size_t before = b->entries.n;
    uint32_t units = t->text_shares > 0 ? units_of(t) : 0;
    row.words = gather(b, now, units, (uint32_t)row_count(b));
    buf_add(&b->rows, &row, sizeof(row));
    uint32_t entries = (uint32_t)((b->entries.n - before) / sizeof(struct entry));
    struct text_row_record r = {b->agent, row.seq, (uint16_t)row.words, entries == units * TEXT_UNIT ? (uint16_t)units : 0};
    if (t->text_shares > 0) {
        t->text_shares--;
        t->text_entries -= entries < t->text_entries ? entries : t->text_entries;
    }
    b->head.documents++;
    b->head.words += row.words;
    row_key(&k, id);
    txn_put(t, SPACE_TEXT_ROW, &k, &r, sizeof(r));
}

static void flush(struct store_txn *t, struct text_batch *b);

void text_set(struct store_txn *t, const struct ulid *agent, uint64_t id, const struct text_doc *was, const struct text_doc *now)
{
    struct text_batch *b = t->error == STORE_OK ? batch_of(t, agent) : NULL;
    struct key k;
    if (b == NULL)
        return;
    if (was != NULL)
        remove_doc(t, b, id, was);
    if (now != NULL && t->error == STORE_OK)
        put_doc(t, b, id, now);
    row_key(&k, id);
    if (now == NULL && t->error == STORE_OK)
        txn_del(t, SPACE_TEXT_ROW, &k);
    if (b->entries.n >= GATHER_WORDS * sizeof(struct entry) || row_count(b) == TEXT_ROWS)
        flush(t, b);
}

/* ---- putting it ---- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static void sort_pass(const struct entry *from, struct entry *to, size_t n, unsigned shift)
{
    uint32_t at[DIGITS] = {0};
    for (size_t i = 0; i < n; i++)
        at[from[i].hash >> shift & (DIGITS - 1)]++;
    for (uint32_t i = 0, sum = 0; i < DIGITS; i++) {
        uint32_t count = at[i];
        at[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].hash >> shift & (DIGITS - 1)]++] = from[i];
}

/* By hash, stable: three passes over the upper bits, then what they left among equals, of which there are hardly any. */
static struct entry *sort_entries(struct buf *entries, struct entry *room, size_t n)
{
    struct entry *p = (struct entry *)(void *)entries->p;
    sort_pass(p, room, n, 64 - 3 * DIGIT_BITS);
    sort_pass(room, p, n, 64 - 2 * DIGIT_BITS);
    sort_pass(p, room, n, 64 - DIGIT_BITS);
    for (size_t i = 1; i < n; i++) {
        struct entry e = room[i];
        size_t at = i;
        for (; at > 0 && room[at - 1].hash > e.hash; at--)
            room[at] = room[at - 1];
        room[at] = e;
    }
    return room;
}

/* Rows that are still there get their places, the others none. */
static void make_rows(struct text_batch *b, struct text_maker *m)
{
    for (size_t i = 0; i < row_count(b); i++) {
        struct gathered_row *r = row_at(b, i);
        uint32_t place = r->dead ? TEXT_NO_ROW : text_make_row(m, r->id, r->seq, r->words);
        r->words = place; /* it has been told */
    }
}

static void make_terms(struct text_batch *b, struct text_maker *m, const struct entry *e, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        text_make_term(m, e[i].hash);
        for (end = i; end < n && e[end].hash == e[i].hash;) {
            uint32_t row = e[end].row, frequency = 0;
            for (; end < n && e[end].hash == e[i].hash && e[end].row == row; end++)
                frequency += e[end].frequency;
            uint32_t place = (row & GONE) != 0 ? TEXT_NO_ROW : row_at(b, row)->words;
            if (place != TEXT_NO_ROW)
                text_make_posting(m, place, frequency);
            m->documents += (row & GONE) != 0 ? -1 : place != TEXT_NO_ROW;
        }
        text_make_term_end(m);
    }
}

static void put_part(struct store_txn *t, struct text_batch *b)
{
    size_t n = b->entries.n / sizeof(struct entry);
    struct entry *room = malloc((n + 1) * sizeof(*room));
    struct text_maker m = {0};
    struct text_part_row row;
    if (room == NULL || !buf_ok(&b->entries) || !buf_ok(&b->rows)) {
        txn_fail(t, ENOMEM, "sort words");
        free(room);
        return;
    }
    make_rows(b, &m);
    if (n > 0)
        make_terms(b, &m, sort_entries(&b->entries, room, n), n);
    if (m.rows > 0 || m.terms > 0) {
        text_make_put(t, &m, &b->agent, b->head.next_part++, &row);
        buf_add(&b->parts, &row, sizeof(row));
    }
    text_make_free(&m);
    free(room);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* The rows of one part, ${seqs} from ${from} on; where the next part's begin. */
static size_t kill_rows(struct store_txn *t, const struct ulid *agent, struct text_part_row *row, const uint64_t *seqs, size_t from,
                        size_t n)
{
    uint64_t bits[TEXT_ROWS / 64];
    struct text_part part;
    struct key k;
    size_t i = from;
    if (row->rows == 0 || seqs[i] > row->last)
        return i;
    if (text_part_get(t->s, t->mdb, agent, row->part, &part) != STORE_OK ||
        (row->dead > 0 && !text_dead(t->s, t->mdb, agent, row->part, bits))) {
        txn_fail(t, 0, "the full-text index");
        return n;
    }
    if (row->dead == 0)
        memset(bits, 0, sizeof(bits));
    for (; i < n && seqs[i] <= row->last; i++) {
        uint32_t at = text_part_row(&part, seqs[i]);
        if (at == part.rows || (bits[at / 64] >> at % 64 & 1) != 0) {
            txn_fail(t, 0, "the full-text index");
            return n;
        }
        bits[at / 64] |= UINT64_C(1) << at % 64;
        row->dead++;
    }
    text_part_key(&k, SPACE_TEXT_DEAD, agent, row->part);
    txn_put(t, SPACE_TEXT_DEAD, &k, bits, sizeof(bits));
    return i;
}

static void kill_all(struct store_txn *t, struct text_batch *b)
{
    struct text_part_row *parts = (struct text_part_row *)(void *)b->parts.p;
    uint64_t *seqs = (uint64_t *)(void *)b->dead.p;
    size_t n = b->dead.n / sizeof(*seqs), count = b->parts.n / sizeof(*parts), i = 0;
    if (!buf_ok(&b->dead) || !buf_ok(&b->parts)) {
        txn_fail(t, ENOMEM, "gather words");
        return;
    }
    if (n == 0)
        return;
    qsort(seqs, n, sizeof(*seqs), by_number);
    for (size_t p = 0; p < count && i < n && t->error == STORE_OK; p++)
        i = kill_rows(t, &b->agent, &parts[p], seqs, i, n);
    if (i < n)
        txn_fail(t, 0, "the full-text index");
}

static void merge_run(struct store_txn *t, struct text_batch *b, size_t from, size_t n)
{
    struct text_part_row *parts = (struct text_part_row *)(void *)b->parts.p, made;
    size_t count = b->parts.n / sizeof(*parts);
    uint64_t bytes = 0;
    for (size_t i = from; i < from + n; i++)
        bytes += (uint64_t)parts[i].terms * 16 + (uint64_t)parts[i].rows * 14 + (uint64_t)parts[i].postings * 4;
    if (!txn_upkeep_fits(t, bytes)) /* what is left of a full store is for deletes */
        return;
    text_merge(t, &b->agent, parts + from, n, b->head.next_part++, &made);
    bool empty = made.rows == 0 && made.terms == 0;
    parts[from] = made;
    size_t kept = from + !empty;
    memmove(parts + kept, parts + from + n, (count - from - n) * sizeof(*parts));
    b->parts.n = (kept + count - from - n) * sizeof(*parts);
}

static void merge(struct store_txn *t, struct text_batch *b)
{
    const struct text_part_row *parts = (const struct text_part_row *)(const void *)b->parts.p;
    size_t count = b->parts.n / sizeof(*parts), n;
    size_t from = text_merge_half_dead(parts, count, &n);
    if (from < count)
        merge_run(t, b, from, n);
    count = b->parts.n / sizeof(*parts);
    from = text_merge_tail(parts, count);
    if (from < count && t->error == STORE_OK)
        merge_run(t, b, from, count - from);
}

static void put_head(struct store_txn *t, struct text_batch *b)
{
    struct key k;
    key_space(&k, SPACE_TEXT);
    key_bytes(&k, b->agent.b, ULID_BYTES);
    char *to = buf_ok(&b->parts) ? txn_reserve(t, SPACE_TEXT, &k, sizeof(b->head) + b->parts.n) : NULL;
    if (to == NULL) {
        txn_fail(t, ENOMEM, "gather words");
        return;
    }
    memcpy(to, &b->head, sizeof(b->head));
    if (b->parts.n > 0)
        memcpy(to + sizeof(b->head), b->parts.p, b->parts.n);
}

static void flush(struct store_txn *t, struct text_batch *b)
{
    if (t->error == STORE_OK)
        kill_all(t, b);
    if (t->error == STORE_OK)
        put_part(t, b);
    if (t->error == STORE_OK)
        merge(t, b);
    if (t->error == STORE_OK)
        put_head(t, b);
    b->open = false;
    if (b->entries.cap > 2 * GATHER_WORDS * sizeof(struct entry))
        buf_free(&b->entries);
}

void text_write(struct store_txn *t)
{
    for (struct text_batch *b = t->texts; b != NULL; b = b->next)
        if (b->open)
            flush(t, b);
}

/* ---- the end ---- */

static bool erase_first(struct store_txn *t, enum space space, const struct ulid *agent)
{
    struct walk w = {0};
    struct key k = {.n = 0};
    key_space(&w.prefix, space);
    key_bytes(&w.prefix, agent->b, ULID_BYTES);
    bool found = t->error == STORE_OK && walk_prefix(t->s, t->mdb, &w, schema_space_db[space], false) == STORE_OK;
    if (found)
        key_bytes(&k, w.k.mv_data, w.k.mv_size);
    walk_end(&w);
    if (found)
        txn_del(t, space, &k);
    return found;
}

void text_erase(struct store_txn *t, const struct ulid *agent, uint64_t *left)
{
    static const enum space spaces[] = {SPACE_TEXT, SPACE_TEXT_PART,
                                        SPACE_TEXT_DEAD}; /* the head first: what it names no more is nobody's */
    for (struct text_batch *b = t->texts; b != NULL; b = b->next)
        if (memcmp(b->agent.b, agent->b, ULID_BYTES) == 0)
            b->open = false;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
        while (*left > 0 && erase_first(t, spaces[i], agent))
            txn_spend(t, left);
}

void text_forget(struct store_txn *t, uint64_t id)
{
    struct key k;
    row_key(&k, id);
    txn_drop(t, SPACE_TEXT_ROW, &k);
}
