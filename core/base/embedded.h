/* A file that the build embeds in the program, by core/base/embed. */
#ifndef ASSAY_BASE_EMBEDDED_H
#define ASSAY_BASE_EMBEDDED_H

#include "store/bytes.h"

#include <stdint.h>

struct embedded {
    struct str text, gzip; /* gzip: ${text} compressed */
    uint64_t version;      /* the first 64 bits of its SHA-256, never 0 */
};

#endif
