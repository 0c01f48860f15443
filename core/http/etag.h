/*
 * Entity tags (RFC 9110 §8.8.3, §13.1): the version of a record and that of the program, which
 * renders it: "5-1.0.0", and "5-1.0.0-gz" for the compressed form. Pure functions; conditions.c
 * applies them.
 */
#ifndef ASSAY_HTTP_ETAG_H
#define ASSAY_HTTP_ETAG_H

#include "store/bytes.h"

#define ETAG_SIZE 64 /* of the longest tag with quotes */

/* No record has this version. */
#define ETAG_VERSION_NONE UINT64_MAX

/* etag_format(version, out): the tag of the uncompressed form, in ${out}. */
struct str etag_format(uint64_t version, char out[ETAG_SIZE]);

/* etag_compressed(etag, out): ${etag} as the tag of the compressed form. */
struct str etag_compressed(struct str etag, char out[ETAG_SIZE]);

/*
 * etag_none_match(header, etag): whether an If-None-Match line names ${etag}, by weak comparison:
 * as "*", as it is, or (ETAG_GZIP) in its compressed form.
 */
enum etag_match { ETAG_MISS, ETAG_HIT, ETAG_GZIP };
enum etag_match etag_none_match(struct str header, struct str etag);

/*
 * etag_versions(header, versions, max, count): append the versions that an If-Match line names, by
 * strong comparison, to ${versions} at *count, up to ${max}. Weak and unknown tags are ignored.
 * False: the line is "*", any version.
 */
bool etag_versions(struct str header, uint64_t *versions, size_t max, size_t *count);

#endif
