/*
 * An n-gram block: the URLs of up to 4,096 rows of a segment, with posting lists for searching.
 *
 *   trigrams  for each trigram, the rows that have it: a list, or a bitmap if that is shorter
 *   words     for each frequent word with the separators on one side, a bitmap of its rows; also
 *             for common beginnings and ends of words
 *   text      the URLs, concatenated
 *
 * Only rows with all trigrams of a pattern can match. Rows with a frequent word that contains the
 * pattern do match; the others are compared. Patterns of two and three letters need no comparison.
 */
#ifndef ASSAY_STORE_INDEX_NGRAM_BLOCK_INTERNAL_H
#define ASSAY_STORE_INDEX_NGRAM_BLOCK_INTERNAL_H

#include "store/index/search_internal.h"

#define NGRAM_BLOCK_ROWS_SHIFT 12 /* log2 of the rows of a block; at least 6 */
#define NGRAM_BLOCK_WORDS ((size_t)1 << (NGRAM_BLOCK_ROWS_SHIFT - 6))

struct ngram_block_head {
    uint32_t rows, text_bytes, trigrams, postings, words, word_bytes, short_rows, unused;
};

struct ngram_block {
    const struct ngram_block_head *head;
    uint32_t bitmap;            /* length of a bitmap in 64-bit words */
    const uint32_t *offset;     /* rows + 1; each URL ends in a NUL */
    const uint64_t *present;    /* a bit for each code of a trigram */
    const uint32_t *before;     /* number of codes before each eighth word of ${present} */
    const uint32_t *trigram_at; /* of each present code: where its rows begin; trigrams + 1 */
    const uint16_t *postings;   /* rows, ascending; or a bitmap if that is shorter */
    const uint32_t *word_at;    /* words + 1 */
    const uint64_t *word_bits;  /* a bitmap for each */
    const uint8_t *words;       /* folded */
    const uint8_t *text;        /* followed by TEXT_PAD readable bytes */
};

/*
 * Reads the arrays of a part, each aligned to eight bytes. part_take(r, n): the next ${n} bytes;
 * NULL, and ${bad}, at the end.
 */
struct part_reader {
    const uint8_t *at, *end;
    bool bad;
};
const void *part_take(struct part_reader *r, size_t n);

/*
 * part_space(out, n), part_put(out, p, n): append ${n} aligned bytes, zeros or a copy; NULL: out of
 * memory (the buffer remembers).
 */
void *part_space(struct buf *out, size_t n);
void part_put(struct buf *out, const void *p, size_t n);

/*
 * ngram_block_read(r, out): false: it is malformed. ngram_block_make(urls, count, stride, out):
 * build one from ${count} strs that lie ${stride} bytes apart.
 */
bool ngram_block_read(struct part_reader *r, struct ngram_block *out);
void ngram_block_make(const struct str *urls, uint32_t count, size_t stride, struct buf *out);

/*
 * ngram_block_order(c, s): order the trigrams of ${s} by how many of this block's rows each rules
 * out, after those before it. Other blocks are similar. Overlapping trigrams rule out the same
 * rows, so a few of them suffice.
 */
void ngram_block_order(const struct ngram_block *c, struct search *s);

/*
 * ngram_block_match(c, s, bits): set the bit of each matching row. False: s->stop returned true,
 * and ${bits} is incomplete.
 */
bool ngram_block_match(const struct ngram_block *c, const struct search *s, uint64_t *bits);

/* ngram_block_has(c, trigram, row): is that row listed under the trigram? For store_check. */
bool ngram_block_has(const struct ngram_block *c, uint32_t trigram, uint32_t row);

#endif
