#include "text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- which ---- */

#define TIER 4 /* how much heavier a tier is than the one below */
#define FULL_ROWS (TEXT_ROWS * 3 / 4)
#define TERMS_AS_A_ROW 64 /* what a part's terms cost, told as rows */

static uint32_t living(const struct text_part_row *p)
{
    return p->rows - p->dead;
}

static uint32_t weight(const struct text_part_row *p)
{
    return 1 + living(p) + p->terms / TERMS_AS_A_ROW;
}

/* Neighbours that would be one: rows, postings, weights, the numbers of their rows. */
struct run {
    uint64_t rows, postings, weight, first, last;
};

static bool run_add(struct run *r, const struct text_part_row *p)
{
    if (r->rows + living(p) > TEXT_ROWS || (r->postings > 0 && r->postings + p->postings > TEXT_POSTINGS))
        return false;
    if (p->rows > 0) {
        r->first = r->last == 0 || p->first < r->first ? p->first : r->first;
        r->last = p->last > r->last ? p->last : r->last;
    }
    if (r->last - r->first > UINT32_MAX) /* a part tells them by what is between them and its first */
        return false;
    r->rows += living(p);
    r->postings += p->postings;
    r->weight += weight(p);
    return true;
}

/*
 * Tiers are by weight. The parts at the end of which none is above a tier become one where they weigh more than two of its heaviest would:
 * what they become is above it, so that a row is rewritten once a tier at most. Of the heaviest tier two that nearly fill a part do.
 */
size_t text_merge_tail(const struct text_part_row *parts, size_t count)
{
    size_t from = count; /* of those that are one by the tiers below */
    struct run run = {0};
    for (uint64_t most = TIER; most <= TEXT_ROWS; most *= TIER) {
        struct run more = run;
        size_t at = from, heavy = run.weight > most / TIER;
        if (run.weight > most)
            continue;
        while (at > 0 && weight(&parts[at - 1]) <= most && run_add(&more, &parts[at - 1]))
            heavy += weight(&parts[--at]) > most / TIER;
        if (more.weight <= 2 * most && (heavy < 2 || more.rows < FULL_ROWS))
            continue;
        from = at;
        run = more;
    }
    return from;
}

/* With the smaller of its neighbours that there is room for, else alone. */
static size_t with_neighbour(const struct text_part_row *parts, size_t count, size_t at, size_t *n)
{
    struct run before = {0}, behind = {0};
    bool can_before = at > 0 && run_add(&before, &parts[at]) && run_add(&before, &parts[at - 1]);
    bool can_behind = at + 1 < count && run_add(&behind, &parts[at]) && run_add(&behind, &parts[at + 1]);
    *n = 1 + (can_before || can_behind);
    return can_before && (!can_behind || before.weight <= behind.weight) ? at - 1 : at;
}

size_t text_merge_half_dead(const struct text_part_row *parts, size_t count, size_t *n)
{
    size_t worst = count;
    *n = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].dead * 2 > parts[i].rows && (worst == count || parts[i].dead > parts[worst].dead))
            worst = i;
    return worst == count ? count : with_neighbour(parts, count, worst, n);
}

/* ---- how ---- */

struct source {
    struct text_part part;
    uint32_t term;
    uint16_t place[TEXT_ROWS]; /* of each row in the new part; TEXT_ROWS: dead */
};

static bool open_source(struct store_txn *t, const struct ulid *agent, const struct text_part_row *row, struct source *s,
                        struct text_maker *m)
{
    uint64_t bits[TEXT_ROWS / 64];
    if (text_part_get(t->s, t->mdb, agent, row->part, &s->part) != STORE_OK)
        return false;
    if (!text_dead(t->s, t->mdb, agent, row->part, bits) && row->dead > 0)
        return false;
    s->term = 0;
    for (uint32_t i = 0; i < s->part.rows; i++) {
        bool dead = (bits[i / 64] >> i % 64 & 1) != 0;
        s->place[i] = TEXT_ROWS;
        if (!dead)
            s->place[i] = (uint16_t)text_make_row(m, text_load64(s->part.ids, i), s->part.first + text_load32(s->part.seqs, i),
                                                  text_load16(s->part.lengths, i));
    }
    return true;
}

/* The list of the term that stands next in ${s}, its rows in their new places. */
static bool copy_list(struct source *s, struct text_maker *m)
{
    struct text_list list;
    uint32_t frequency;
    if (!text_part_list(&s->part, s->term++, &list))
        return false;
    m->documents += list.documents;
    uint32_t left = list.count;
    for (; left > 0 && text_list_next(&list, &frequency) && list.row < s->part.rows; left--)
        if (s->place[list.row] != TEXT_ROWS)
            text_make_posting(m, s->place[list.row], frequency);
    return left == 0;
}

static bool merge_terms(struct source *sources, size_t n, struct text_maker *m)
{
    for (;;) {
        uint64_t least = UINT64_MAX;
        bool any = false, good = true;
        for (size_t i = 0; i < n; i++) {
            if (sources[i].term == sources[i].part.terms)
                continue;
            uint64_t hash = text_load64(sources[i].part.hashes, sources[i].term);
            least = hash < least ? hash : least;
            any = true;
        }
        if (!any)
            return true;
        text_make_term(m, least);
        for (size_t i = 0; i < n; i++)
            if (sources[i].term < sources[i].part.terms && text_load64(sources[i].part.hashes, sources[i].term) == least)
                good = good && copy_list(&sources[i], m);
        if (!good)
            return false;
        text_make_term_end(m);
    }
}

static void drop(struct store_txn *t, const struct ulid *agent, const struct text_part_row *row)
{
    struct key k;
    text_part_key(&k, SPACE_TEXT_PART, agent, row->part);
    txn_del(t, SPACE_TEXT_PART, &k);
    text_part_key(&k, SPACE_TEXT_DEAD, agent, row->part);
    if (row->dead > 0)
        txn_del(t, SPACE_TEXT_DEAD, &k);
}

void text_merge(struct store_txn *t, const struct ulid *agent, const struct text_part_row *parts, size_t n, uint64_t number,
                struct text_part_row *out)
{
    struct source *sources = malloc(n * sizeof(*sources));
    struct text_maker m = {0};
    bool good = sources != NULL;
    *out = (struct text_part_row){0};
    for (size_t i = 0; i < n && good; i++)
        good = open_source(t, agent, &parts[i], &sources[i], &m);
    good = good && merge_terms(sources, n, &m);
    if (!good)
        txn_fail(t, sources == NULL ? ENOMEM : 0, sources == NULL ? "merge the full-text index" : "the full-text index");
    free(sources);
    if (good && (m.rows > 0 || m.terms > 0))
        text_make_put(t, &m, agent, number, out);
    text_make_free(&m);
    for (size_t i = 0; i < n && t->error == STORE_OK; i++)
        drop(t, agent, &parts[i]);
}
