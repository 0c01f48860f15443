#include "text.h"

#include <errno.h>
#include <stdlib.h>

#define K1 1.2
#define B 0.75
/* Sums in another order differ by this at most. */
#define SLACK 1.0001F

/* ---- the question's words ---- */

static bool asked_already(const struct text_question *q, uint64_t hash)
{
    for (unsigned i = 0; i < q->count; i++)
        if (q->terms[i].hash == hash)
            return true;
    return false;
}

static void take_words(struct text_question *q, struct str question)
{
    struct words w;
    struct word word;
    words_begin(&w, question, false);
    while (q->count < TEXT_QUESTION_WORDS && words_next(&w, &word))
        if (!asked_already(q, word.hash))
            q->terms[q->count++] = (struct text_term){.hash = word.hash, .stop = words_is_stop(word.hash)};
}

/* How many documents have each: the sum over all parts. */
static enum store_status count_documents(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_manifest *m,
                                         struct text_question *q)
{
    int64_t documents[TEXT_QUESTION_WORDS] = {0};
    for (size_t i = 0; i < m->count; i++) {
        struct text_part part;
        struct text_list list;
        enum store_status status = text_part_get(s, txn, agent, m->parts[i].part, &part);
        if (status != STORE_OK)
            return status;
        for (unsigned j = 0; j < q->count; j++) {
            uint32_t term = text_part_find(&part, q->terms[j].hash);
            if (term == part.terms)
                continue;
            if (!text_part_list(&part, term, &list))
                return store_corrupt(s, "a part of the full-text index");
            documents[j] += list.documents;
        }
    }
    for (unsigned j = 0; j < q->count; j++)
        q->terms[j].documents = documents[j] < 0 ? 0 : (uint64_t)documents[j];
    return STORE_OK;
}

/* The natural logarithm of a number from 1 on: a power of two and a series. */
static double logarithm(double x)
{
    double power = 0, sum = 0, term;
    while (x > 1.4142135623730951) {
        x /= 2;
        power++;
    }
    double ratio = (x - 1) / (x + 1);
    term = ratio;
    for (int i = 1; i <= 15; i += 2, term *= ratio * ratio)
        sum += term / i;
    return 2 * sum + power * 0.6931471805599453;
}

/*
 * A collection smaller than TEXT_LEAST_DOCUMENTS weighs words as one of that size. Otherwise a word that all pages of a small site
 * have weighs almost nothing beside a word that no page has, and no question is answered.
 */
static float weight_of(uint64_t documents, uint64_t with)
{
    if (documents < TEXT_LEAST_DOCUMENTS)
        documents = TEXT_LEAST_DOCUMENTS;
    return (float)logarithm(1 + ((double)documents - (double)(with < documents ? with : documents) + 0.5) / ((double)with + 0.5));
}

/* Those that are scored by first: not said by nobody, not stop words; of them the rarest first. */
static int by_use(const void *a, const void *b)
{
    const struct text_term *x = a, *y = b;
    bool use_x = x->documents > 0 && !x->stop, use_y = y->documents > 0 && !y->stop;
    if (use_x != use_y)
        return use_x ? -1 : 1;
    if (x->documents != y->documents)
        return x->documents < y->documents ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Scoring stops before word ${i}: all words that fit the limits of a large collection are taken. */
static bool scored_enough(const struct text_question *q, unsigned i, uint64_t sum)
{
    if (q->documents <= TEXT_SMALL)
        return false;
    return i == TEXT_SCORED_WORDS || (i > 0 && sum > TEXT_SCORED_SHARE * q->documents);
}

static void weigh(struct text_question *q)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < q->count; i++) {
        struct text_term *term = &q->terms[i];
        term->weight = weight_of(q->documents, term->documents);
        q->weight += term->stop ? 0 : (double)term->weight;
    }
    qsort(q->terms, q->count, sizeof(*q->terms), by_use);
    for (unsigned i = 0; i < q->count; i++) {
        const struct text_term *term = &q->terms[i];
        sum += term->documents;
        if (term->documents == 0 || term->stop || scored_enough(q, i, sum))
            break;
        q->scored++;
    }
}

enum store_status text_ask(struct store *s, MDB_txn *txn, const struct ulid *agent, struct str question, struct text_question *out)
{
    struct text_manifest m;
    *out = (struct text_question){.count = 0};
    enum store_status status = text_manifest(s, txn, agent, &m);
    if (status != STORE_OK)
        return status;
    out->documents = m.head.documents;
    out->average = m.head.documents == 0 ? 1 : (double)m.head.words / (double)m.head.documents;
    take_words(out, question);
    status = count_documents(s, txn, agent, &m, out);
    if (status == STORE_OK)
        weigh(out);
    return status;
}

/* ---- the rows of one part ---- */

/* ${weight}: of the question's words that the row has; 0: it has none. */
struct cell {
    float score, weight;
};

struct search_state {
    struct store *s;
    MDB_txn *txn;
    const struct text_question *q;
    text_there_fn *there;
    void *arg;
    struct text_hit *hits;
    unsigned limit, count;
    float length_base, length_each; /* k1 · (1 - b), k1 · b / average */
    float all_weight;               /* of the question, as each word's here: k1 + 1 times its own */
    uint64_t dead[TEXT_ROWS / 64];
    struct cell cells[TEXT_ROWS];
};

/* What a part has of each scored word; ${most}: that one of its rows can get by it, ${rest}: by it and all behind it. */
struct scored_list {
    struct text_list list;
    bool there;
    float most, rest;
};

static inline float bm25(const struct search_state *state, float weight, uint32_t frequency, uint32_t words)
{
    float f = (float)frequency;
    return weight * f / (f + state->length_base + state->length_each * (float)words);
}

static float worst_hit(const struct search_state *state)
{
    return state->count < state->limit ? 0 : state->hits[state->count - 1].score;
}

static bool open_lists(const struct search_state *state, const struct text_part *part, struct scored_list *lists)
{
    float rest = 0;
    for (unsigned i = 0; i < state->q->scored; i++) {
        uint32_t term = text_part_find(part, state->q->terms[i].hash);
        lists[i] = (struct scored_list){.there = term < part->terms};
        if (!lists[i].there)
            continue;
        if (!text_part_list(part, term, &lists[i].list))
            return false;
        const struct text_list *l = &lists[i].list;
        lists[i].most = l->count == 0 ? 0 : bm25(state, state->q->terms[i].weight, l->max_frequency, l->min_length);
    }
    for (unsigned i = state->q->scored; i-- > 0;)
        rest = lists[i].rest = rest + lists[i].most;
    return true;
}

/* Adds a word to the rows that have it; where rows with nothing yet cannot become good enough any more, to the others alone. */
static bool add_list(struct search_state *state, const struct text_part *part, struct scored_list *l, unsigned word, bool all)
{
    const float weight = state->q->terms[word].weight;
    uint32_t left = l->list.count, frequency;
    for (; left > 0 && text_list_next(&l->list, &frequency) && l->list.row < part->rows; left--) {
        struct cell *cell = &state->cells[l->list.row];
        if (!all && cell->weight == 0)
            continue;
        cell->score += bm25(state, weight, frequency, text_load16(part->lengths, l->list.row));
        cell->weight += weight;
    }
    return left == 0;
}

static bool better(const struct text_hit *a, const struct text_hit *b)
{
    return a->score != b->score ? a->score > b->score : a->seq < b->seq;
}

static void keep_hit(struct search_state *state, struct text_hit hit)
{
    unsigned at = state->count < state->limit ? state->count++ : state->limit - 1;
    for (; at > 0 && better(&hit, &state->hits[at - 1]); at--)
        state->hits[at] = state->hits[at - 1];
    state->hits[at] = hit;
}

static enum store_status offer_hit(struct search_state *state, struct text_hit hit)
{
    if (state->count == state->limit && !better(&hit, &state->hits[state->count - 1]))
        return STORE_OK;
    enum store_status status = state->there == NULL ? STORE_OK : state->there(state->s, state->txn, state->arg, hit.id);
    if (status == STORE_OK)
        keep_hit(state, hit);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status collect(struct search_state *state, const struct text_part *part, bool any_dead)
{
    enum store_status status = STORE_OK;
    float worst = worst_hit(state);
    for (uint32_t row = 0; row < part->rows && status == STORE_OK; row++) {
        const struct cell *cell = &state->cells[row];
        if (cell->score < worst || cell->weight == 0 ||
            (any_dead && (state->dead[row / 64] >> row % 64 & 1) != 0))
            continue;
        status = offer_hit(state, (struct text_hit){
                                      .id = text_load64(part->ids, row),
                                      .seq = part->first + text_load32(part->seqs, row),
                                      .score = cell->score,
                                      .share = cell->weight / state->all_weight,
                                  });
        worst = worst_hit(state);
    }
    return status;
}

static enum store_status search_part(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_part_row *row,
                                     struct search_state *state)
{
    struct text_part part;
    struct scored_list lists[TEXT_QUESTION_WORDS];
    enum store_status status = text_part_get(s, txn, agent, row->part, &part);
    if (status != STORE_OK)
        return status;
    if (!open_lists(state, &part, lists) || (row->dead > 0 && !text_dead(s, txn, agent, row->part, state->dead)))
        return store_corrupt(s, "a part of the full-text index");
    if (part.rows == 0 || state->q->scored == 0 || lists[0].rest * SLACK < worst_hit(state))
        return STORE_OK;
    memset(state->cells, 0, part.rows * sizeof(*state->cells));
    for (unsigned i = 0; i < state->q->scored; i++) {
        bool all = lists[i].rest * SLACK >= worst_hit(state);
        if (lists[i].there && !add_list(state, &part, &lists[i], i, all))
            return store_corrupt(s, "a part of the full-text index");
    }
    return collect(state, &part, row->dead > 0);
}

enum store_status text_find(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_question *q, unsigned limit,
                            text_there_fn *there, void *arg, struct text_hit *hits, unsigned *count)
{
    struct text_manifest m;
    struct text_question by = *q;
    *count = 0;
    enum store_status status = text_manifest(s, txn, agent, &m);
    struct search_state *state = status == STORE_OK ? malloc(sizeof(*state)) : NULL;
    if (state == NULL)
        return status == STORE_OK ? store_fail(s, ENOMEM, "look for words") : status;
    for (unsigned i = 0; i < by.scored; i++)
        by.terms[i].weight *= (float)(K1 + 1);
    state->s = s;
    state->txn = txn;
    state->q = &by;
    state->there = there;
    state->arg = arg;
    state->hits = hits;
    state->limit = limit < TEXT_HITS_MAX ? limit : TEXT_HITS_MAX;
    state->count = 0;
    state->all_weight = (float)(q->weight * (K1 + 1));
    state->length_base = (float)(K1 * (1 - B));
    state->length_each = (float)(K1 * B / q->average);
    for (size_t i = 0; i < m.count && status == STORE_OK && state->limit > 0; i++)
        status = search_part(s, txn, agent, &m.parts[i], state);
    *count = status == STORE_OK ? state->count : 0;
    free(state);
    return status;
}
