/*
 * Secrets that a caller put where none belongs: into a path, a query or another text that is
 * logged. Pure.
 */
#ifndef ASSAY_TEXT_REDACT_H
#define ASSAY_TEXT_REDACT_H

#include "store/bytes.h"

/*
 * redact(text, room): ${text} as it may be logged. Values of parameters whose names speak of a
 * password, token, secret, signature, credential, session or key, and whatever begins like one of
 * our credentials (an API key, a workspace token, a visitor's anon_ secret) or a JWT, are ***
 * instead, also where name, "=" or beginning is percent-encoded. Returns ${text} itself where there
 * is none; else what was written to ${room}, which has as many bytes as ${text} and REDACT_MORE.
 */
#define REDACT_MORE 64
struct str redact(struct str text, char *room);

#endif
