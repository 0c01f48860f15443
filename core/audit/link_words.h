/*
 * Link texts that say nothing of where a link leads: Lighthouse's words, by language. Pure.
 */
#ifndef ASSAY_LINK_WORDS_H
#define ASSAY_LINK_WORDS_H

#include "store/bytes.h"

/*
 * link_words_have(language, text): whether ${text}, in lower case and trimmed, is one of ${language}'s generic texts; of any language's
 * where ${language} is empty.
 */
bool link_words_have(struct str language, struct str text);

#endif
