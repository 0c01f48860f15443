/*
 * Languages of the index: stemmer, stop words, words with little meaning. All data is constant; a
 * struct wordset is built for each tokenizer.
 */
#ifndef ASSAY_STORE_ANSWERS_LANGUAGE_INTERNAL_H
#define ASSAY_STORE_ANSWERS_LANGUAGE_INTERNAL_H

#include "store/bytes.h"

/*
 * Changing a stemmer or stop words changes the tokens of files: raise ANSWERS_FORMAT too. Word
 * lists are lower case, without accents, separated by single spaces.
 */
struct language {
    const char *tag;     /* ISO 639-1 */
    const char *stemmer; /* of Snowball; NULL: none */
    const char *stop;    /* neither indexed nor searched */
    const char *light;   /* indexed, but with little meaning for a question */
    double enough;       /* share of a question's meaning that answers it; 0: not measured */
};

/* language_stops.c */
extern const char stop_it[], stop_nl[], stop_sv[], stop_da[], stop_no[], stop_fi[], stop_ru[];

/*
 * language_find(tag): by primary subtag, ignoring case; an unknown one gives the entry without a
 * tag.
 */
const struct language *language_find(struct str tag);

/* A set of words, as slots of an open hash table that point into the list. */
struct wordset {
    struct str *slots;
    size_t mask;
};
bool wordset_make(struct wordset *set, const char *list); /* false: out of memory */
void wordset_free(struct wordset *set);
bool wordset_has(const struct wordset *set, struct str word);

#endif
