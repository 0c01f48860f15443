/*
 * Languages that the index knows: stemmer, stop words, words that say little. Private to
 * store/answers. All data is constant; a struct wordset is built for each tokenizer.
 */
#ifndef ASSAY_ANSWERS_LANGUAGE_H
#define ASSAY_ANSWERS_LANGUAGE_H

#include "store/bytes.h"

/*
 * A change of a stemmer or of stop words changes tokens of files: raise ANSWERS_FORMAT with it.
 * Word lists are lower case, without accents, separated by single spaces.
 */
struct language {
    const char *tag;     /* ISO 639-1 */
    const char *stemmer; /* of Snowball; NULL: none */
    const char *stop;    /* not indexed and not looked for */
    const char *light;   /* indexed, but say little of what a question is about */
};

/* language_find(tag): by primary subtag, whatever its case; the one without a tag if unknown. */
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
