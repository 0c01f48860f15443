/* Language tags (BCP 47), as far as pages need them. Pure functions. */
#ifndef ASSAY_LANGUAGE_INTERNAL_H
#define ASSAY_LANGUAGE_INTERNAL_H

#include "store/bytes.h"

/*
 * language_is_known(tag): ${tag} is a well-formed language tag (RFC 5646, 2.1) whose primary
 * language subtag is registered.
 */
bool language_is_known(struct str tag);

#endif
