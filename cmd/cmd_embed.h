/* The element that brings an agent's chat to a page. */
#ifndef ASSAY_CMD_EMBED_H
#define ASSAY_CMD_EMBED_H

#include "store/bytes.h"

/* What the launcher shows before the server is asked: of the agent's theme. */
struct embed_looks {
    char color[8];        /* "#rgb" or "#rrggbb"; empty: the widget's own */
    const char *position; /* "left" or "right"; NULL: the widget's own */
};

/*
 * embed_element(base, agent, looks, out): append the script element for pages, pinned by version and digest; ${base}: the server's public
 * address. False where that cannot stand in an attribute, or OpenSSL failed.
 */
bool embed_element(const char *base, const char *agent, const struct embed_looks *looks,
                   struct buf *out);

#endif
