#include "store/index/select_internal.h"

#include "store/index/bitmap_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

struct sort_key {
    int64_t value;
    struct str url; /* a NUL follows it */
    uint64_t id;
};

/* ---- a run ---- */

void run_of_bits(struct run *run)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->words; i++) {
        run->before[i] = n;
        n += bit_count(run->bits[i]);
    }
    run->before[run->words] = n;
    run->count = n;
}

/* Number of matches below ${rank}. */
static uint32_t matches_below(const struct run *run, uint32_t rank)
{
    if (run->rows != NULL)
        return rank;
    if (rank == run->ranks)
        return run->count;
    return run->before[rank / 64] + bit_count(run->bits[rank / 64] & ((1ull << rank % 64) - 1));
}

/* The rank of the ${n}-th match. */
static uint32_t rank_of(const struct run *run, uint32_t n)
{
    if (run->rows != NULL)
        return n;
    /* the word after the last one with at most n matches before it */
    uint32_t low = 0, high = run->words;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (run->before[middle] <= n)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t word = low - 1;
    uint64_t bits = run->bits[word];
    for (uint32_t skip = n - run->before[word]; skip > 0; skip--)
        bits &= bits - 1;
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The first match at ${rank} or above; run->ranks: none. */
static uint32_t match_from(const struct run *run, uint32_t rank)
{
    uint32_t n = matches_below(run, rank);
    return n == run->count ? run->ranks : rank_of(run, n);
}

static uint32_t segment_row_of(const struct segment *g, unsigned sort, uint32_t rank)
{
    switch (sort) {
    case REPORT_BY_GENERATED_AT:
        return g->date.row[rank];
    case REPORT_BY_URL:
        return g->url.row[rank];
    case REPORT_BY_SCORE:
        return g->score.row[rank];
    default:
        return rank;
    }
}

static void key_at(const struct index_snapshot *v, const struct run *run, unsigned sort,
                   uint32_t rank, struct sort_key *out)
{
    const struct segment *g = run->segment;
    uint32_t row = run->rows != NULL ? run->rows[rank] : segment_row_of(g, sort, rank);
    out->id = g == NULL ? v->rows[row].id : g->ids[row];
    out->value = 0;
    if (sort == REPORT_BY_GENERATED_AT)
        out->value = g == NULL ? v->rows[row].date : g->dates[row];
    if (sort == REPORT_BY_SCORE)
        out->value = g == NULL ? v->rows[row].score : g->scores[row];
    if (sort == REPORT_BY_URL)
        out->url = g == NULL ? index_snapshot_url(v, row) : segment_url(g, row);
    else
        out->url = STR("");
}

static bool key_below(const struct sort_key *a, const struct sort_key *b)
{
    if (a->value != b->value)
        return a->value < b->value;
    int by = memcmp(a->url.p, b->url.p, (a->url.n < b->url.n ? a->url.n : b->url.n) + 1);
    return by != 0 ? by < 0 : a->id < b->id;
}

/* The likely position of the ${want}-th of ${all} in a span of ${width}. */
static uint32_t likely(uint32_t width, uint64_t want, uint64_t all)
{
    uint64_t at = all == 0 ? 0 : width * want / all;
    return at < width ? (uint32_t)at : width - 1;
}

/*
 * The first rank between run->low and run->high whose key is not below ${key}: by exponential
 * search from its likely position, then binary search.
 */
static uint32_t rank_below(const struct selection *s, const struct run *run,
                           const struct sort_key *key, uint32_t likely_at)
{
    uint32_t low = run->low, high = run->high, step = 8, next = likely_at;
    while (low < high) {
        struct sort_key at;
        key_at(s->snapshot, run, s->sort, next, &at);
        bool below = key_below(&at, key);
        if (below)
            low = next + 1;
        else
            high = next;
        if ((high - low) / 2 <= step) {
            next = low + (high - low) / 2;
        } else {
            next = below ? low + step : high - step;
            step *= 2;
        }
    }
    return low;
}

/* ---- the cut ---- */

static size_t widest(const struct run *runs, size_t count, uint32_t *width)
{
    size_t at = 0;
    *width = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t n = matches_below(&runs[i], runs[i].high) - matches_below(&runs[i], runs[i].low);
        if (n > *width) {
            *width = n;
            at = i;
        }
    }
    return at;
}

/*
 * Set every run's low to the rank at which the part before ${from} ends. Runs are usually similar,
 * so the likely position of one is near the cut; every second time the middle is taken, which
 * halves that run in any case.
 */
static void cut(const struct selection *s, uint64_t from)
{
    const struct index_snapshot *v = s->snapshot;
    struct run *runs = s->runs;
    size_t count = s->count;
    uint32_t width;
    uint64_t below = 0, all = 0; /* matches before all runs' low, and between low and high */
    bool halve = false;
    for (size_t i = 0; i < count; i++) {
        runs[i].low = 0;
        runs[i].high = runs[i].ranks;
        all += runs[i].count;
    }
    for (size_t w = widest(runs, count, &width); width != 0;
         w = widest(runs, count, &width), halve = !halve) {
        uint64_t want = from - below, place = 0;
        uint32_t skip = halve ? width / 2 : likely(width, want, all);
        uint32_t rank = rank_of(&runs[w], matches_below(&runs[w], runs[w].low) + skip), at[count];
        struct sort_key pivot;
        key_at(v, &runs[w], s->sort, rank, &pivot);
        for (size_t i = 0; i < count; i++) {
            uint32_t ranks = runs[i].high - runs[i].low;
            at[i] = i == w ? rank : runs[i].low;
            if (i != w && ranks != 0)
                at[i] = rank_below(s, &runs[i], &pivot, at[i] + likely(ranks, skip, width));
            place += matches_below(&runs[i], at[i]);
        }
        for (size_t i = 0; i < count; i++) {
            if (place < from)
                runs[i].low = at[i] + (i == w);
            else
                runs[i].high = at[i];
        }
        all = place < from ? all - (place + 1 - below) : place - below;
        below = place < from ? place + 1 : below;
    }
}

/* ---- the page ---- */

void select_page(const struct selection *s, uint64_t from, size_t want, uint64_t *ids)
{
    const struct index_snapshot *v = s->snapshot;
    struct run *runs = s->runs;
    size_t count = s->count;
    struct sort_key heads[count];
    cut(s, from);
    for (size_t i = 0; i < count; i++) {
        runs[i].low = match_from(&runs[i], runs[i].low);
        if (runs[i].low < runs[i].ranks)
            key_at(v, &runs[i], s->sort, runs[i].low, &heads[i]);
    }
    for (size_t n = 0; n < want; n++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (runs[i].low < runs[i].ranks &&
                (best == count || key_below(&heads[i], &heads[best])))
                best = i;
        if (best == count)
            break;
        ids[n] = heads[best].id;
        runs[best].low = match_from(&runs[best], runs[best].low + 1);
        if (runs[best].low < runs[best].ranks)
            key_at(v, &runs[best], s->sort, runs[best].low, &heads[best]);
    }
}
