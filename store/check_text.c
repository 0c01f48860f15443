#include "check_parts.h"
#include "synced_parts.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- of store_check: each agent's full-text index against its documents ---- */

#define LL(v) ((unsigned long long)(v))

static const char *agent_text(const struct ulid *u)
{
    static char text[ULID_TEXT + 1];
    ulid_text(u, text);
    return text;
}

static bool agent_lives(struct check *c, const struct ulid *agent)
{
    struct store_agent a;
    return agent_read(c->s, c->txn, agent, &a) == STORE_OK;
}

/* What the words of a row come to, in whatever order they are met. */
static uint64_t word_sum(uint64_t hash, uint32_t frequency)
{
    uint64_t v = (hash + frequency * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return v ^ v >> 32;
}

struct row_sum {
    uint64_t sum;
    uint32_t words; /* different ones */
};

/* The words of a document, gathered so that each is once there. */
struct gathered {
    struct buf words;
};

struct gathered_word {
    uint64_t hash;
    uint32_t frequency;
};

static void take_word(void *arg, uint64_t hash, uint32_t frequency)
{
    struct gathered *g = arg;
    const struct gathered_word word = {hash, frequency};
    buf_add(&g->words, &word, sizeof(word));
}

static int by_hash(const void *a, const void *b)
{
    const struct gathered_word *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static struct row_sum document_sum(const struct text_doc *doc, uint32_t units, uint32_t *length)
{
    struct gathered g = {{0}};
    struct row_sum sum = {0};
    *length = text_gather(doc, units, take_word, &g);
    struct gathered_word *w = (struct gathered_word *)(void *)g.words.p;
    size_t n = buf_ok(&g.words) ? g.words.n / sizeof(*w) : 0;
    if (n > 0)
        qsort(w, n, sizeof(*w), by_hash);
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t frequency = 0;
        for (end = i; end < n && w[end].hash == w[i].hash; end++)
            frequency += w[end].frequency;
        sum.sum += word_sum(w[i].hash, frequency < TEXT_FREQUENCY ? frequency : TEXT_FREQUENCY);
        sum.words++;
    }
    buf_free(&g.words);
    return sum;
}

/* ---- a part ---- */

/* Its lists in themselves, and what they say of each row. */
static bool part_lists(const struct text_part *p, struct row_sum *sums, uint64_t *postings)
{
    for (uint32_t i = 0; i < p->terms; i++) {
        struct text_list l;
        uint64_t hash = text_load64(p->hashes, i);
        uint32_t frequency, left, most = 0, shortest = TEXT_WORDS;
        if ((i > 0 && text_load64(p->hashes, i - 1) >= hash) || !text_part_list(p, i, &l))
            return false;
        for (left = l.count; left > 0 && text_list_next(&l, &frequency) && l.row < p->rows; left--) {
            uint32_t words = text_load16(p->lengths, l.row);
            most = frequency > most ? frequency : most;
            shortest = words < shortest ? words : shortest;
            sums[l.row].sum += word_sum(hash, frequency);
            sums[l.row].words++;
            ++*postings;
        }
        if (left > 0 || l.at != l.end || (most > 0 && (most != l.max_frequency || shortest != l.min_length)))
            return false;
    }
    return true;
}

static void check_row(struct check *c, const struct ulid *agent, const struct text_part *p, uint32_t row, const struct row_sum *said)
{
    struct key k;
    MDB_val v;
    struct store_synced d;
    uint64_t id = text_load64(p->ids, row);
    uint32_t length;
    key_id(&k, SPACE_DOCUMENT, id);
    if (!check_get(c, SPACE_DOCUMENT, &k, &v) || !schema_read_document(v, &d) || memcmp(d.agent.b, agent->b, ULID_BYTES) != 0) {
        check_say(c, "the full-text index of agent %s has document %llu, which is not there", agent_text(agent), LL(id));
        return;
    }
    key_id(&k, SPACE_TEXT_ROW, id);
    const struct text_row_record *r = check_get(c, SPACE_TEXT_ROW, &k, &v) ? store_record(v, sizeof(*r)) : NULL;
    const struct text_doc texts = document_texts(&d);
    struct row_sum is = document_sum(&texts, r == NULL ? 0 : r->units, &length);
    if (is.sum != said->sum || is.words != said->words || length != text_load16(p->lengths, row))
        check_say(c, "the full-text index has other words of document %llu than its texts", LL(id));
    if (r == NULL || r->seq != p->first + text_load32(p->seqs, row) || r->words != length || memcmp(r->agent.b, agent->b, ULID_BYTES) != 0)
        check_say(c, "document %llu is not known to be where the full-text index has it", LL(id));
}

static void check_part(struct check *c, const struct ulid *agent, const struct text_part_row *row)
{
    struct text_part p;
    uint64_t bits[TEXT_ROWS / 64] = {0}, postings = 0;
    struct row_sum *sums = calloc(TEXT_ROWS, sizeof(*sums));
    uint32_t dead = 0;
    bool good = sums != NULL && text_part_get(c->s, c->txn, agent, row->part, &p) == STORE_OK;
    if (good && row->dead > 0)
        good = text_dead(c->s, c->txn, agent, row->part, bits);
    if (good)
        good = part_lists(&p, sums, &postings) && p.rows == row->rows && p.terms == row->terms && postings == row->postings;
    for (uint32_t i = 0; good && i < p.rows; i++) {
        bool is_dead = (bits[i / 64] >> i % 64 & 1) != 0;
        dead += is_dead;
        if (!is_dead)
            check_row(c, agent, &p, i, &sums[i]);
    }
    if (!good || dead != row->dead)
        check_say(c, "part %llu of the full-text index of agent %s is malformed", LL(row->part), agent_text(agent));
    check_step(c, good ? p.rows : 1);
    free(sums);
}

/* ---- all parts together: how many documents, words, and documents of each word ---- */

struct open_part {
    struct text_part part;
    uint64_t dead[TEXT_ROWS / 64];
    uint32_t term;
};

static uint64_t living_postings(const struct open_part *o, struct text_list l)
{
    uint64_t n = 0;
    uint32_t frequency;
    for (uint32_t left = l.count; left > 0 && text_list_next(&l, &frequency) && l.row < o->part.rows; left--)
        n += (o->dead[l.row / 64] >> l.row % 64 & 1) == 0;
    return n;
}

/* Words of which the parts together say that another number of documents has them than do. */
static uint64_t wrong_terms(struct open_part *open, size_t count)
{
    uint64_t wrong = 0;
    for (;;) {
        uint64_t least = 0, living = 0;
        int64_t said = 0;
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            uint64_t hash = open[i].term < open[i].part.terms ? text_load64(open[i].part.hashes, open[i].term) : 0;
            if (open[i].term < open[i].part.terms && (!any || hash < least))
                least = hash;
            any = any || open[i].term < open[i].part.terms;
        }
        if (!any)
            return wrong;
        for (size_t i = 0; i < count; i++) {
            struct text_list l;
            if (open[i].term == open[i].part.terms || text_load64(open[i].part.hashes, open[i].term) != least)
                continue;
            if (text_part_list(&open[i].part, open[i].term++, &l)) {
                said += l.documents;
                living += living_postings(&open[i], l);
            }
        }
        wrong += said < 0 || (uint64_t)said != living;
    }
}

static void check_totals(struct check *c, const struct ulid *agent, const struct text_manifest *m)
{
    struct open_part *open = calloc(m->count + 1, sizeof(*open));
    uint64_t documents = 0, words = 0;
    bool good = open != NULL;
    for (size_t i = 0; i < m->count && good; i++) {
        good = text_part_get(c->s, c->txn, agent, m->parts[i].part, &open[i].part) == STORE_OK &&
               (m->parts[i].dead == 0 || text_dead(c->s, c->txn, agent, m->parts[i].part, open[i].dead));
        for (uint32_t row = 0; good && row < open[i].part.rows; row++) {
            bool lives = (open[i].dead[row / 64] >> row % 64 & 1) == 0;
            documents += lives;
            words += lives ? text_load16(open[i].part.lengths, row) : 0;
        }
    }
    uint64_t wrong = good ? wrong_terms(open, m->count) : 0;
    if (!good)
        check_say(c, "the full-text index of agent %s cannot be read", agent_text(agent));
    else if (documents != m->head.documents || words != m->head.words)
        check_say(c, "the full-text index of agent %s counts %llu documents of %llu words; there are %llu of %llu", agent_text(agent),
                  LL(m->head.documents), LL(m->head.words), LL(documents), LL(words));
    else if (wrong > 0)
        check_say(c, "the full-text index of agent %s counts the documents of %llu words wrongly", agent_text(agent), LL(wrong));
    free(open);
}

/* ---- in slices: a part each; what follows is found by its rows' numbers, since parts merge meanwhile ---- */

static bool manifest_there(struct check *c, const struct ulid *agent, struct text_manifest *m, enum store_status *status)
{
    *status = check_renew(c);
    if (*status != STORE_OK || !agent_lives(c, agent))
        return false;
    if (text_manifest(c->s, c->txn, agent, m) == STORE_OK)
        return true;
    check_say(c, "the head of the full-text index of agent %s is malformed", agent_text(agent));
    return false;
}

static enum store_status check_agent_texts(struct check *c, const struct ulid *agent)
{
    struct text_manifest m;
    enum store_status status = STORE_OK;
    uint64_t reached = 0;
    while (!c->stopped && manifest_there(c, agent, &m, &status)) {
        size_t i = 0;
        while (i < m.count && (m.parts[i].rows == 0 || m.parts[i].last <= reached))
            i++;
        if (i == m.count) {
            check_totals(c, agent, &m);
            return STORE_OK;
        }
        reached = m.parts[i].last;
        check_part(c, agent, &m.parts[i]);
    }
    return status;
}

/* The first agent above ${after} that has an index. */
static bool next_agent(struct check *c, struct ulid *after, bool first, enum store_status *status)
{
    struct walk w = {0};
    struct key from;
    bool found = false;
    *status = check_renew(c);
    if (*status != STORE_OK)
        return false;
    key_space(&w.prefix, SPACE_TEXT);
    key_of(&from, SPACE_TEXT, after);
    if (!first)
        key_bytes(&from, "", 1);
    if (walk_from(c->s, c->txn, &w, schema_space_db[SPACE_TEXT], &from) == STORE_OK && w.k.mv_size == 1 + ULID_BYTES) {
        memcpy(after->b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
        found = true;
    }
    walk_end(&w);
    return found;
}

enum store_status check_texts(struct check *c)
{
    struct ulid agent = {{0}};
    enum store_status status = STORE_OK;
    for (bool first = true; !c->stopped && next_agent(c, &agent, first, &status) && status == STORE_OK; first = false) {
        status = check_agent_texts(c, &agent);
        if (status != STORE_OK)
            return status;
    }
    return status;
}

void check_text_row(struct check *c, const struct walk *w)
{
    struct text_manifest m;
    struct text_part p;
    uint64_t bits[TEXT_ROWS / 64], id;
    const struct text_row_record *r = store_record(w->v, sizeof(*r));
    if (r == NULL || !walk_u64(w, 0, &id)) {
        check_say(c, "a document's place in the full-text index is malformed");
        return;
    }
    if (!agent_lives(c, &r->agent))
        return; /* what it had is being purged */
    bool good = text_manifest(c->s, c->txn, &r->agent, &m) == STORE_OK;
    size_t i = 0;
    while (good && i < m.count && (m.parts[i].rows == 0 || m.parts[i].last < r->seq))
        i++;
    good = good && i < m.count && text_part_get(c->s, c->txn, &r->agent, m.parts[i].part, &p) == STORE_OK;
    uint32_t row = good ? text_part_row(&p, r->seq) : 0;
    good = good && row < p.rows && text_load64(p.ids, row) == id;
    if (good && m.parts[i].dead > 0)
        good = text_dead(c->s, c->txn, &r->agent, m.parts[i].part, bits) && (bits[row / 64] >> row % 64 & 1) == 0;
    if (!good)
        check_say(c, "document %llu is not in the full-text index where it is said to be", LL(id));
}

void check_document_text(struct check *c, const struct store_synced *d)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_TEXT_ROW, d->id);
    if (agent_lives(c, &d->agent) && !check_get(c, SPACE_TEXT_ROW, &k, &v))
        check_say(c, "document %llu is not in the full-text index", LL(d->id));
}
