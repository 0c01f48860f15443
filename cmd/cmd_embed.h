/* The script element that adds an agent's chat to a page. */
#ifndef ASSAY_CMD_EMBED_H
#define ASSAY_CMD_EMBED_H

#include "store/bytes.h"

/* What the launcher shows before it asks the server; part of the agent's theme. */
struct embed_looks {
    char color[8];        /* "#rgb" or "#rrggbb"; empty: the default */
    const char *position; /* "left" or "right"; NULL: the default */
};

/*
 * embed_element(base, agent, looks, out): append the script element, pinned by version and digest.
 * ${base}: the public URL of the server. False: the URL cannot be an attribute, or OpenSSL failed.
 */
bool embed_element(const char *base, const char *agent, const struct embed_looks *looks,
                   struct buf *out);

#endif
