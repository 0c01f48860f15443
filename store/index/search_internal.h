/*
 * Substring search in concatenated texts.
 *
 * The search looks for two bytes of the pattern, the rarest in URLs, at sixteen places at a time,
 * and compares the rest where both match. ASCII letters are folded. Non-ASCII characters of a
 * pattern stand for their percent-encoding in URLs (search_pattern.c): any form of a letter
 * matches, and bytes in which the forms differ match everything until the forms are compared.
 */
#ifndef ASSAY_STORE_INDEX_SEARCH_INTERNAL_H
#define ASSAY_STORE_INDEX_SEARCH_INTERNAL_H

#include "store/bytes.h"

#define TEXT_PAD 32 /* readable bytes after a text, of any value */

/*
 * A trigram as a number: each byte is one of 64 classes, so different trigrams may share a code;
 * codes only rule rows out.
 */
#define TRIGRAM_CODES (1u << 18)
#define SEARCH_TRIGRAMS 24

extern const uint8_t search_sorts[256];

static inline uint32_t search_trigram(const uint8_t *p)
{
    return (uint32_t)search_sorts[p[0]] << 12 | (uint32_t)search_sorts[p[1]] << 6 |
           search_sorts[p[2]];
}

/* search_note_trigrams(text, trigrams): set the bit of each trigram of the text. */
void search_note_trigrams(struct str text, uint64_t *trigrams);

/*
 * A letter of the pattern with several forms (upper and lower case), each of ${n} bytes from ${at}
 * on.
 */
#define SEARCH_FORMS 4
struct search_letter {
    uint32_t at;
    uint8_t n, forms;
    uint8_t bytes[SEARCH_FORMS][12]; /* folded */
};

struct search {
    struct str
        /* folded, the first form of each letter; in ${folded} or allocated, as the next two */
        pattern;
    const uint8_t *
        /* after it; 0x20 for a letter: the bit that differs in case; 0xff where forms differ */
        masks;
    const uint8_t *want;           /* the pattern with the masks applied, as a text would be */
    struct search_letter *letters; /* letters with several forms; allocated */
    size_t letter_count;
    size_t first, second; /* the two bytes that are searched */
    uint32_t trigrams[SEARCH_TRIGRAMS];
    size_t trigram_count;
    bool ordered;            /* by a block: ngram_block_order */
    bool never;              /* the pattern has a NUL, which no text has */
    bool (*stop)(void *arg); /* called now and then: stop? NULL: never */
    void *stop_arg;
    uint8_t *allocated;
    uint8_t folded[3 * 256];
};

/*
 * search_begin(s, pattern): false: out of memory. search_begin_url(s, pattern): non-ASCII
 * characters stand for their percent-encoding, in any case that has as many bytes. search_room(s,
 * n): memory for a pattern of ${n} bytes, its masks and masked bytes; NULL: out of memory.
 */
bool search_begin(struct search *s, struct str pattern);
bool search_begin_url(struct search *s, struct str pattern);
uint8_t *search_room(struct search *s, size_t n);

/*
 * Identifies a pattern: its bytes and the masks that follow them, since a letter with several forms
 * is more than the bytes of its first form.
 */
static inline struct str search_key(const struct search *s)
{
    return (struct str){s->pattern.p, 2 * s->pattern.n};
}

/* search_matches(s, text): TEXT_PAD bytes after it must be readable. */
bool search_matches(const struct search *s, struct str text);

/*
 * search_word(s, words, offset, from, count): the first matching word from ${from} on; ${count}:
 * none. Folded words are concatenated, w from offset[w] to offset[w + 1]; TEXT_PAD bytes after the
 * last must be readable.
 */
uint32_t search_word(const struct search *s, const uint8_t *words, const uint32_t *offset,
                     uint32_t from, uint32_t count);

/* search_lacks(s, trigrams): has the pattern a trigram that is not in ${trigrams}? */
bool search_lacks(const struct search *s, const uint64_t *trigrams);

/*
 * search_rows(s, text, offset, from, to, bits): set the bit of each matching row in from..to
 * (exclusive). Row r's text is offset[r] up to a NUL before offset[r + 1]; TEXT_PAD bytes after the
 * last must be readable. False: s->stop returned true, and ${bits} is incomplete.
 */
bool search_rows(const struct search *s, const uint8_t *text, const uint32_t *offset, uint32_t from,
                 uint32_t to, uint64_t *bits);
/* search_some(…): the same for ${rows} alone. */
bool search_some(const struct search *s, const uint8_t *text, const uint32_t *offset,
                 const uint16_t *rows, uint32_t count, uint64_t *bits);

static inline bool search_stops(const struct search *s)
{
    return s->stop != NULL && s->stop(s->stop_arg);
}

void search_end(struct search *s);

/*
 * For search_pattern.c. search_fold(c): lower case of ASCII. search_ready(s): choose the two bytes
 * to search, after pattern and masks are set.
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
