/*
 * Bodies that come compressed (Content-Encoding: gzip). Pure functions, any process.
 */
#ifndef ASSAY_HTTP_INFLATE_H
#define ASSAY_HTTP_INFLATE_H

#include "store/bytes.h"

enum inflate_status {
    INFLATE_OK,
    INFLATE_MALFORMED, /* no gzip, ends early, or something stands behind it */
    INFLATE_TOO_LARGE, /* it would be more than ${max} bytes */
    INFLATE_NO_MEMORY,
};

/*
 * inflate_gzip(body, max, out): append what ${body} says; of more than ${max} bytes no more than
 * that is ever made.
 */
enum inflate_status inflate_gzip(struct str body, size_t max, struct buf *out);

#endif
