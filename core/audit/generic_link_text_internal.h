/*
 * Link texts that say nothing of where a link leads: Lighthouse's words, by language. Pure.
 */
#ifndef ASSAY_GENERIC_LINK_TEXT_INTERNAL_H
#define ASSAY_GENERIC_LINK_TEXT_INTERNAL_H

#include "store/bytes.h"

/*
 * is_generic_link_text(language, text): whether ${text}, in lower case and trimmed, is one of ${language}'s generic texts; of any language's
 * where ${language} is empty.
 */
bool is_generic_link_text(struct str language, struct str text);

#endif
