#include "core/http/inflate.h"

#include <zlib.h>

#define STEP ((size_t)64 * 1024)
#define GZIP_ALONE (16 + MAX_WBITS)

static int step(z_stream *z, size_t space, struct buf *out)
{
    char *to = buf_reserve(out, space);
    if (to == NULL)
        return Z_MEM_ERROR;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)space;
    int rc = inflate(z, Z_NO_FLUSH);
    out->n += space - z->avail_out;
    return rc;
}

enum inflate_status inflate_gzip(struct str body, size_t max, struct buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body.p, .avail_in = (uInt)body.n};
    size_t from = out->n;
    int rc = body.n > UINT32_MAX ? Z_DATA_ERROR : inflateInit2(&z, GZIP_ALONE);
    if (rc != Z_OK)
        return rc == Z_MEM_ERROR ? INFLATE_NO_MEMORY : INFLATE_MALFORMED;
    while (rc == Z_OK && out->n - from <= max) {
        size_t left = max + 1 - (out->n - from);
        rc = step(&z, left < STEP ? left : STEP, out);
    }
    bool whole = rc == Z_STREAM_END && z.avail_in == 0;
    inflateEnd(&z);
    if (out->n - from > max)
        return INFLATE_TOO_LARGE;
    return whole ? INFLATE_OK : rc == Z_MEM_ERROR ? INFLATE_NO_MEMORY : INFLATE_MALFORMED;
}
