/* A file that is in the program, made by core/base/embed when it is built. */
#ifndef ASSAY_BASE_EMBEDDED_H
#define ASSAY_BASE_EMBEDDED_H

#include "store/bytes.h"

#include <stdint.h>

struct embedded {
    struct str text, gzip; /* gzip: the same, compressed */
    uint64_t version;      /* the first 64 bits of its SHA-256, never 0 */
};

#endif
