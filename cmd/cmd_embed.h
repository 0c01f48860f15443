/* The element that brings an agent's chat to a page. */
#ifndef ASSAY_CMD_EMBED_H
#define ASSAY_CMD_EMBED_H

#include "../store/bytes.h"

/*
 * embed_element(base, agent, out): append the script element for pages, pinned by version and digest; ${base}: the server's public address.
 * False where that cannot stand in an attribute, or OpenSSL failed.
 */
bool embed_element(const char *base, const char *agent, struct buf *out);

#endif
