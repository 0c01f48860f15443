#include "store/index/ngram_block_internal.h"

#include "store/index/bitmap_internal.h"
#include "store/index/search_internal.h"

#define PRESENT_WORDS (TRIGRAM_CODES / 64)
#define BEFORE_STEP 8 /* words of `present` that share a count */

const void *part_take(struct part_reader *r, size_t n)
{
    const uint8_t *p = r->at;
    size_t padded = (n + 7) & ~(size_t)7;
    if (r->bad || (size_t)(r->end - p) < padded) {
        r->bad = true;
        return NULL;
    }
    r->at += padded;
    return p;
}

bool ngram_block_read(struct part_reader *r, struct ngram_block *c)
{
    const struct ngram_block_head *head = part_take(r, sizeof(*head));
    if (head == NULL || head->rows == 0 || head->rows > 1u << NGRAM_BLOCK_ROWS_SHIFT)
        return false;
    c->head = head;
    c->bitmap = (head->rows + 63) / 64;
    c->offset = part_take(r, ((size_t)head->rows + 1) * sizeof(*c->offset));
    c->present = part_take(r, PRESENT_WORDS * sizeof(*c->present));
    c->before = part_take(r, PRESENT_WORDS / BEFORE_STEP * sizeof(*c->before));
    c->trigram_at = part_take(r, ((size_t)head->trigrams + 1) * sizeof(*c->trigram_at));
    c->postings = part_take(r, head->postings * sizeof(*c->postings));
    c->word_at = part_take(r, ((size_t)head->words + 1) * sizeof(*c->word_at));
    c->word_bits = part_take(r, (size_t)head->words * c->bitmap * sizeof(*c->word_bits));
    c->words = part_take(r, head->word_bytes);
    c->text = part_take(r, (size_t)head->text_bytes + TEXT_PAD);
    return !r->bad;
}

/* ---- trigrams ---- */

/* The rows of the code with so many present codes before it; returns their number. */
static uint32_t rows_at(const struct ngram_block *c, uint32_t before, const uint16_t **rows)
{
    *rows = c->postings + c->trigram_at[before];
    return c->trigram_at[before + 1] - c->trigram_at[before];
}

/* Number of present codes before that one. */
static uint32_t present_before(const struct ngram_block *c, uint32_t trigram)
{
    uint32_t word = trigram / 64, n = c->before[word / BEFORE_STEP] +
                                      bit_count(c->present[word] & ((1ull << trigram % 64) - 1));
    for (uint32_t i = word & ~(BEFORE_STEP - 1u); i < word; i++)
        n += bit_count(c->present[i]);
    return n;
}

/* The rows of one code; returns their number. */
static uint32_t gram_rows(const struct ngram_block *c, uint32_t trigram, const uint16_t **rows)
{
    *rows = NULL;
    return bit_test(c->present, trigram) ? rows_at(c, present_before(c, trigram), rows) : 0;
}

static bool is_bitmap(const struct ngram_block *c, uint32_t count)
{
    return count >= 4 * c->bitmap;
}

static uint64_t bitmap_word(const uint16_t *rows, uint32_t i)
{
    const uint16_t *at = rows + (size_t)4 * i;
    return (uint64_t)at[0] | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 32 | (uint64_t)at[3] << 48;
}

static void bits_add(const struct ngram_block *c, const uint16_t *rows, uint32_t count,
                     uint64_t *bits)
{
    if (!is_bitmap(c, count))
        for (uint32_t i = 0; i < count; i++)
            bit_set(bits, rows[i]);
    else
        for (uint32_t i = 0; i < c->bitmap; i++)
            bits[i] |= bitmap_word(rows, i);
}

static void all_rows(const struct ngram_block *c, uint64_t *bits)
{
    memset(bits, 0xff, c->bitmap * sizeof(*bits));
    if (c->head->rows % 64 != 0)
        bits[c->bitmap - 1] = (1ull << c->head->rows % 64) - 1;
}

/* Intersect two sorted lists. */
static uint32_t count_both(const struct ngram_block *c, const uint64_t *bits, const uint64_t *other)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->bitmap; i++)
        n += bit_count(bits[i] & other[i]);
    return n;
}

/*
 * Copy to ${list}, which may be ${rows}, those of ${n} rows that are in ${bits} or in the posting
 * list; returns their number.
 */
static uint32_t list_and_bits(const uint64_t *bits, const uint16_t *rows, uint32_t n,
                              uint16_t *list)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t row = rows[i];
        list[left] = row;
        left += bit_test(bits, row);
    }
    return left;
}

static uint32_t list_and(const struct ngram_block *c, const uint16_t *rows, uint32_t count,
                         uint16_t *list, uint32_t n)
{
    uint64_t bits[NGRAM_BLOCK_WORDS] = {0};
    uint32_t left = 0;
    if (!is_bitmap(c, count)) {
        bits_add(c, rows, count, bits);
        return list_and_bits(bits, list, n, list);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint16_t row = list[i];
        list[left] = row;
        left += rows[row / 16] >> row % 16 & 1;
    }
    return left;
}

/* Intersect ${bits} with a bitmap among the posting lists; did it remove any? */
static bool bits_and(const struct ngram_block *c, const uint16_t *rows, uint64_t *bits)
{
    uint64_t others = 0;
    for (uint32_t i = 0; i < c->bitmap; i++) {
        uint64_t left = bits[i] & bitmap_word(rows, i);
        others |= bits[i] ^ left;
        bits[i] = left;
    }
    return others != 0;
}

/*
 * The rows with all trigrams of the pattern, or all rows if it has none; returns their number. It
 * stops when they are few, or when the last trigram removed none: comparing their texts is cheaper
 * then.
 */
static uint32_t candidates(const struct ngram_block *c, const struct search *s, uint64_t *bits)
{
    enum { FEW = 8, SOME = 64 };
    uint16_t list[4 * NGRAM_BLOCK_WORDS];
    uint32_t n = 0;
    bool listed = false, done = false;
    for (size_t i = 0; i < s->trigram_count; i++)
        if (!bit_test(c->present, s->trigrams[i]))
            return 0;
    all_rows(c, bits);
    for (size_t i = 0; i < s->trigram_count && !done; i++) {
        const uint16_t *rows;
        uint32_t count = gram_rows(c, s->trigrams[i], &rows), before = n;
        if (listed) {
            n = list_and(c, rows, count, list, n);
            done = n <= FEW || (n <= SOME && n == before);
        } else if (is_bitmap(c, count)) {
            done = !bits_and(c, rows, bits) && i > 0;
        } else {
            n = list_and_bits(bits, rows, count, list);
            listed = true;
            done = n <= FEW;
        }
    }
    if (!listed)
        return count_both(c, bits, bits);
    memset(bits, 0, c->bitmap * sizeof(*bits));
    bits_add(c, list, n, bits);
    return n;
}

void ngram_block_order(const struct ngram_block *c, struct search *s)
{
    enum { ORDERED = 6 };
    uint64_t left[NGRAM_BLOCK_WORDS], of[SEARCH_TRIGRAMS][NGRAM_BLOCK_WORDS] = {{0}};
    s->ordered = true;
    all_rows(c, left);
    for (size_t i = 0; i < s->trigram_count; i++) {
        const uint16_t *rows;
        uint32_t count = gram_rows(c, s->trigrams[i], &rows);
        bits_add(c, rows, count, of[i]);
    }
    uint8_t order[SEARCH_TRIGRAMS];
    uint32_t trigrams[SEARCH_TRIGRAMS];
    memcpy(trigrams, s->trigrams, sizeof(trigrams));
    for (size_t i = 0; i < s->trigram_count; i++)
        order[i] = (uint8_t)i;
    for (size_t done = 0; done < ORDERED && done < s->trigram_count; done++) {
        size_t best = done;
        uint32_t least = UINT32_MAX;
        for (size_t i = done; i < s->trigram_count; i++) {
            uint32_t n = count_both(c, left, of[order[i]]);
            best = n < least ? i : best;
            least = n < least ? n : least;
        }
        uint8_t chosen = order[best];
        memmove(order + done + 1, order + done, best - done);
        order[done] = chosen;
        for (uint32_t i = 0; i < c->bitmap; i++)
            left[i] &= of[chosen][i];
    }
    for (size_t i = 0; i < s->trigram_count; i++)
        s->trigrams[i] = trigrams[order[i]];
}

bool ngram_block_has(const struct ngram_block *c, uint32_t trigram, uint32_t row)
{
    const uint16_t *rows;
    uint32_t low = 0, high = gram_rows(c, trigram, &rows);
    if (is_bitmap(c, high))
        return rows[row / 16] >> row % 16 & 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gram_rows(c, trigram, &rows) && rows[low] == row;
}

/*
 * Two letters: the trigrams that begin with them lie in one word of `present`; a URL that only ends
 * with them has a trigram for that.
 */
static void match_two(const struct ngram_block *c, const struct search *s, uint64_t *bits)
{
    const uint8_t *pattern = (const uint8_t *)s->pattern.p;
    uint32_t pair = (uint32_t)search_sorts[pattern[0]] << 6 | search_sorts[pattern[1]];
    const uint16_t *rows;
    uint32_t first = c->present[pair] == 0 ? 0 : present_before(c, pair << 6),
             count = bit_count(c->present[pair]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = rows_at(c, first + i, &rows);
        bits_add(c, rows, n, bits);
    }
    for (uint32_t before = 0; before < 64; before++) {
        uint32_t n = gram_rows(c, before << 12 | pair, &rows);
        bits_add(c, rows, n, bits);
    }
}

/* ---- frequent words ---- */

/*
 * Move rows with a frequent word that contains the pattern from ${maybe} to ${bits}; returns how
 * many are left.
 */
static uint32_t settle(const struct ngram_block *c, const struct search *s, uint64_t *maybe,
                       uint64_t *bits)
{
    uint32_t left = 0;
    for (uint32_t i = 0;
         (i = search_word(s, c->words, c->word_at, i, c->head->words)) < c->head->words; i++)
        for (uint32_t j = 0; j < c->bitmap; j++)
            bits[j] |= c->word_bits[(size_t)i * c->bitmap + j];
    for (uint32_t j = 0; j < c->bitmap; j++) {
        maybe[j] &= ~bits[j];
        left += bit_count(maybe[j]);
    }
    return left;
}

/* ---- matching ---- */

/* Has each letter of the pattern a class of its own? */
static bool letters_exact(const struct search *s)
{
    for (size_t i = 0; i < s->pattern.n; i++)
        if (search_sorts[(uint8_t)s->pattern.p[i]] == 0)
            return false;
    return true;
}

/* Compare the ${count} rows of ${maybe}; false: the search stops. */
static bool look(const struct ngram_block *c, const struct search *s, const uint64_t *maybe,
                 uint32_t count, uint64_t *bits)
{
    enum { ALL_FROM = 4 }; /* from a quarter on, all rows are compared in one pass */
    uint16_t rows[(1u << NGRAM_BLOCK_ROWS_SHIFT) / ALL_FROM];
    uint32_t n = 0;
    if (count > c->head->rows / ALL_FROM)
        return search_rows(s, c->text, c->offset, 0, c->head->rows, bits);
    for (uint32_t word = 0; word < c->bitmap; word++)
        for (uint64_t left = maybe[word]; left != 0; left &= left - 1)
            rows[n++] = (uint16_t)(word * 64 + (uint32_t)__builtin_ctzll(left));
    return search_some(s, c->text, c->offset, rows, n, bits);
}

bool ngram_block_match(const struct ngram_block *c, const struct search *s, uint64_t *bits)
{
    enum { FEW = 32 }; /* so few rows are compared before the words are used */
    uint64_t maybe[NGRAM_BLOCK_WORDS];
    if (s->never)
        return true;
    if (s->pattern.n == 2 && c->head->short_rows == 0 && letters_exact(s)) {
        match_two(c, s, bits);
        return true;
    }
    uint32_t count = candidates(c, s, maybe);
    if (s->pattern.n == 3 && letters_exact(s)) {
        for (uint32_t i = 0; i < c->bitmap && count != 0; i++)
            bits[i] |= maybe[i];
        return true;
    }
    if (count > FEW)
        count = settle(c, s, maybe, bits);
    return count == 0 || look(c, s, maybe, count, bits);
}
