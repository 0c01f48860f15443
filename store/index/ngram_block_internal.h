/*
 * A chunk: the URLs of up to 4,096 rows of a segment, and what makes searching them cheap. Private
 * to store/.
 *
 *   trigrams    for each three letters that come in it, the rows in which they do: a list of them, or a bitmap where that is shorter
 *   words    for each frequent word, with what parts it from the next or from the one before, a bitmap of its rows; and for what many others
 *            begin or end with
 *   text     the URLs, one behind the other
 *
 * A pattern can only be in rows that have all its letters by three. It is certain to be in those of
 * a frequent word that it is part of, and the others are looked at. Needles of two and three
 * letters need no look.
 */
#ifndef ASSAY_STORE_CHUNK_H
#define ASSAY_STORE_CHUNK_H

#include "store/index/search_internal.h"

#define NGRAM_BLOCK_ROWS_SHIFT 12 /* rows of a chunk, as a power of two; at least 6 */
#define NGRAM_BLOCK_WORDS ((size_t)1 << (NGRAM_BLOCK_ROWS_SHIFT - 6))

struct ngram_block_head {
    uint32_t rows, text_bytes, trigrams, postings, words, word_bytes, short_rows, unused;
};

struct ngram_block {
    const struct ngram_block_head *head;
    uint32_t bitmap;            /* words of 64 rows that a bitmap has */
    const uint32_t *offset;     /* rows + 1; each URL ends in a NUL */
    const uint64_t *present;    /* a bit for each code of three letters */
    const uint32_t *before;     /* codes present before each eighth word of it */
    const uint32_t *trigram_at; /* of each present code: where its rows begin; trigrams + 1 */
    const uint16_t
        *postings; /* rows, ascending; or a bitmap, when there are as many numbers as one has */
    const uint32_t *word_at;   /* words + 1 */
    const uint64_t *word_bits; /* a bitmap for each */
    const uint8_t *words;      /* folded */
    const uint8_t *text;       /* TEXT_PAD bytes more may be read */
};

/*
 * What is read of a part: arrays, each on a boundary of eight bytes. part_take(r, n): the next ${n}
 * bytes; NULL, and bad, at the end.
 */
struct part_reader {
    const uint8_t *at, *end;
    bool bad;
};
const void *part_take(struct part_reader *r, size_t n);

/*
 * part_space(out, n), part_put(out, p, n): append ${n} bytes so, zeroes or a copy; NULL when memory
 * is short (the buffer remembers).
 */
void *part_space(struct buf *out, size_t n);
void part_put(struct buf *out, const void *p, size_t n);

/*
 * ngram_block_read(r, out): false when it is not one. ngram_block_make(urls, count, stride, out):
 * of ${count} strs that lie ${stride} bytes apart.
 */
bool ngram_block_read(struct part_reader *r, struct ngram_block *out);
void ngram_block_make(const struct str *urls, uint32_t count, size_t stride, struct buf *out);

/* ngram_block_bytes(c): from its head on. */
static inline size_t ngram_block_bytes(const struct ngram_block *c)
{
    return (size_t)(c->text - (const uint8_t *)c->head) + c->head->text_bytes;
}

/*
 * ngram_block_order(c, s): what rules out most of this chunk's rows is asked first from now on, of
 * what is left after that the most, and so on: in others it will be much the same. The trigrams of
 * neighbouring letters say much the same too, so some few say nearly all.
 */
void ngram_block_order(const struct ngram_block *c, struct search *s);

/*
 * ngram_block_match(c, s, bits): set the bit of each row that has the pattern. False: s->stop said
 * true, and ${bits} has some of these rows only.
 */
bool ngram_block_match(const struct ngram_block *c, const struct search *s, uint64_t *bits);

/*
 * ngram_block_has(c, trigram, row): do the trigrams know of those three letters in that row? For
 * store_check.
 */
bool ngram_block_has(const struct ngram_block *c, uint32_t trigram, uint32_t row);

#endif
