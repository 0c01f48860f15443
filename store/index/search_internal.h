/*
 * Substring search in texts that lie one behind the other. Private to store/.
 *
 * A pattern is looked for by two of its bytes, the rarest in URLs, sixteen places at a time; where
 * both are, the rest is compared. ASCII letters are folded; URLs and project names have no others.
 * What else a pattern has stands for its percent-encoding where URLs are searched (pattern.c): any
 * of its forms matches, and the bytes in which they differ match all until then.
 */
#ifndef ASSAY_STORE_SEARCH_H
#define ASSAY_STORE_SEARCH_H

#include "store/bytes.h"

#define TEXT_PAD 32 /* bytes after a text that may be read, though not believed */

/*
 * Three letters as one number: each byte is one of 64 sorts, so that different ones may share a
 * code; the filter only rules out.
 */
#define TRIGRAM_CODES (1u << 18)
#define SEARCH_TRIGRAMS 24

extern const uint8_t search_sorts[256];

static inline uint32_t search_trigram(const uint8_t *p)
{
    return (uint32_t)search_sorts[p[0]] << 12 | (uint32_t)search_sorts[p[1]] << 6 |
           search_sorts[p[2]];
}

/* search_note_trigrams(text, trigrams): set the bit of each three letters that come in the text. */
void search_note_trigrams(struct str text, uint64_t *trigrams);

/*
 * A letter of the pattern that has several forms (its cases), each of ${n} bytes, which begin at
 * ${at}.
 */
#define SEARCH_FORMS 4
struct search_letter {
    uint32_t at;
    uint8_t n, forms;
    uint8_t bytes[SEARCH_FORMS][12]; /* folded */
};

struct search {
    struct str
        /*
         * folded, the first form of each letter; into ${folded} or allocated, as the two that
         * follow
         */
        pattern;
    const uint8_t *
        /* behind it; 0x20 for a letter: what makes its two cases one; 0xff where forms differ */
        masks;
    const uint8_t *want;           /* the pattern with the masks: what a text with the masks is */
    struct search_letter *letters; /* those with several forms; allocated */
    size_t letter_count;
    size_t first, second; /* the two places looked at */
    uint32_t trigrams[SEARCH_TRIGRAMS];
    size_t trigram_count;
    bool ordered;            /* by what a chunk says: see ngram_block_order */
    bool never;              /* the pattern has a NUL, and no text has one */
    bool (*stop)(void *arg); /* asked now and then whether to stop; NULL, at first: never */
    void *stop_arg;
    uint8_t *allocated;
    uint8_t folded[3 * 256];
};

/*
 * search_begin(s, pattern): false when memory is short. search_begin_url(s, pattern): what of it is
 * no ASCII stands for its percent-encoding, in any of its cases that take as many bytes.
 * search_room(s, n): for a pattern of ${n} bytes, its masks and what is wanted; NULL when memory is
 * short.
 */
bool search_begin(struct search *s, struct str pattern);
bool search_begin_url(struct search *s, struct str pattern);
uint8_t *search_room(struct search *s, size_t n);

/*
 * What tells one pattern from another: its masks, which lie behind it, as well, since a letter of
 * several forms is not its first form's bytes.
 */
static inline struct str search_key(const struct search *s)
{
    return (struct str){s->pattern.p, 2 * s->pattern.n};
}

/* search_matches(s, text): TEXT_PAD bytes behind it may be read. */
bool search_matches(const struct search *s, struct str text);

/*
 * search_word(s, words, offset, from, count): the first from ${from} on that has the pattern,
 * ${count} where none has, of folded words one behind the other, w from offset[w] to offset[w + 1];
 * TEXT_PAD bytes behind the last may be read.
 */
uint32_t search_word(const struct search *s, const uint8_t *words, const uint32_t *offset,
                     uint32_t from, uint32_t count);

/*
 * search_lacks(s, trigrams): are there three letters of the pattern that do not come in what
 * ${trigrams} was noted of?
 */
bool search_lacks(const struct search *s, const uint64_t *trigrams);

/*
 * search_rows(s, text, offset, from, to, bits): set the bit of each row from..to (not included)
 * that has the pattern. Row r's text is offset[r] up to a NUL before offset[r + 1]; TEXT_PAD bytes
 * behind the last may be read. False: s->stop said true, and ${bits} has some of these rows only.
 */
bool search_rows(const struct search *s, const uint8_t *text, const uint32_t *offset, uint32_t from,
                 uint32_t to, uint64_t *bits);
/* search_some(…): likewise, of ${rows} alone. */
bool search_some(const struct search *s, const uint8_t *text, const uint32_t *offset,
                 const uint16_t *rows, uint32_t count, uint64_t *bits);

static inline bool search_stops(const struct search *s)
{
    return s->stop != NULL && s->stop(s->stop_arg);
}

void search_end(struct search *s);

/*
 * For pattern.c. search_fold(c): ASCII in lower case. search_ready(s): pattern and masks are there;
 * choose what is looked at.
 */
static inline uint8_t search_fold(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static inline uint8_t search_mask(uint8_t folded)
{
    return folded >= 'a' && folded <= 'z' ? 0x20 : 0;
}
void search_ready(struct search *s);

#endif
