/*
 * A text's words, as the index knows them. Private to store/.
 *
 * A word is a run of letters and digits, folded (fold.h), of whatever length. Scripts that write without spaces have no words to be seen, so
 * of those each two neighbours are one, as is a letter that stands alone; of a text that is indexed (${whole}) each ideograph is one
 * besides, so that one that is asked for alone is found, but does not count for the text's length. A word is known by 64 bits of a hash of
 * its folded letters. They are the same for ever: indexes hold them.
 */
#ifndef ASSAY_STORE_WORDS_H
#define ASSAY_STORE_WORDS_H

#include "bytes.h"

struct word {
    uint64_t hash;
    uint32_t from, to; /* where it stands in the text, in bytes */
    bool counts;       /* for the length */
};

struct words {
    const uint8_t *begin, *at, *end;
    bool whole;
    unsigned run;  /* letters seen of a run without spaces; the last of them: */
    uint32_t last; /* folded */
    const uint8_t *last_at;
    bool last_ideograph;
    bool waiting; /* a word that comes next */
    struct word next;
};

/* words_begin(w, text, whole): ${text} is UTF-8, of less than 4 GiB; what is not parts words. words_next(w, out): false at its end. */
void words_begin(struct words *w, struct str text, bool whole);
bool words_next(struct words *w, struct word *out);

/* words_decode(at, end, n): the code point at ${at}, before ${end}, and how many bytes it has; 0 of one byte where it is none. */
uint32_t words_decode(const uint8_t *at, const uint8_t *end, size_t *n);

/* words_hash(text): of a text that is one word. */
uint64_t words_hash(struct str text);

/* words_is_stop(hash): a word that says nothing of what is asked: "the", "how", "und", … */
bool words_is_stop(uint64_t hash);

#endif
