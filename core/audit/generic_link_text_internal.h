/* Generic link texts such as "click here", by language; the lists are Lighthouse's. Pure. */
#ifndef ASSAY_GENERIC_LINK_TEXT_INTERNAL_H
#define ASSAY_GENERIC_LINK_TEXT_INTERNAL_H

#include "store/bytes.h"

/*
 * is_generic_link_text(language, text): ${text}, trimmed and in lower case, is a generic text of
 * ${language}, or of any language if ${language} is empty.
 */
bool is_generic_link_text(struct str language, struct str text);

#endif
