/* Decompresses bodies with Content-Encoding: gzip. Pure functions. */
#ifndef ASSAY_HTTP_INFLATE_H
#define ASSAY_HTTP_INFLATE_H

#include "store/bytes.h"

enum inflate_status {
    INFLATE_OK,
    INFLATE_MALFORMED, /* not gzip, incomplete, or followed by other bytes */
    INFLATE_TOO_LARGE, /* more than ${max} bytes */
    INFLATE_NO_MEMORY,
};

/* inflate_gzip(body, max, out): append the content; it stops after ${max} + 1 bytes. */
enum inflate_status inflate_gzip(struct str body, size_t max, struct buf *out);

#endif
