/*
 * Letters: which code points make words, and what each is once case and accents are folded. Private to store/.
 *
 * Tables of our own, since what the C library knows depends on the locale and on its version, and an index must be read as it was written.
 * They follow Unicode 14: lower case, then without the marks of the canonical decomposition, except where the mark makes another letter
 * (й, が, Hangul). Letters beyond them are words as they are.
 */
#ifndef ASSAY_STORE_FOLD_H
#define ASSAY_STORE_FOLD_H

#include <stddef.h>
#include <stdint.h>

enum letter {
    LETTER_NONE,     /* parts words */
    LETTER_MARK,     /* an accent or a joiner within a word: left out */
    LETTER_WORD,     /* of a script that writes words apart */
    LETTER_DENSE,    /* of one that does not: kana, Hangul, Thai, Lao, Khmer, Burmese */
    LETTER_IDEOGRAPH /* of one that does not, and a word by itself: Han */
};

enum letter fold_class(uint32_t c);

/* fold(c, out): the letter folded, in how many code points (1 or 2). */
size_t fold(uint32_t c, uint32_t out[2]);

/* fold_ascii: of each byte below 0x80 the folded letter or digit, 0 where it parts words. */
extern const uint8_t fold_ascii[128];

#endif
