/*
 * Masks secrets that callers put into paths, queries or other logged text. Pure functions.
 */
#ifndef ASSAY_TEXT_REDACT_H
#define ASSAY_TEXT_REDACT_H

#include "store/bytes.h"

/*
 * redact(text, scratch): ${text} for the log. These become ***: values of parameters with names
 * like password, token, secret, signature, credential, session or key; and text that starts like an
 * API key, a workspace token, a visitor's anon_ secret or a JWT; percent-encoded or not. Returns
 * ${text} itself if it has none, else the text in ${scratch}, which has text.n + REDACT_MORE bytes.
 */
#define REDACT_MORE 64
struct str redact(struct str text, char *scratch);

#endif
