/*
 * Entity tags (RFC 9110 §8.8.3, §13.1): made of a record's version and the program's, "5-1.0.0",
 * and "5-1.0.0-gz" for the compressed form: another program may render the same record otherwise.
 * Pure functions; conditions.c applies them to a request.
 */
#ifndef ASSAY_HTTP_ETAG_H
#define ASSAY_HTTP_ETAG_H

#include "store/bytes.h"

#define ETAG_SIZE 64 /* room for any tag of ours, quotes included */

/* A version no record ever has. */
#define ETAG_VERSION_NONE UINT64_MAX

/* etag_format(version, out): the tag of the uncompressed form, in ${out}. */
struct str etag_format(uint64_t version, char out[ETAG_SIZE]);

/* etag_compressed(etag, out): ${etag} as the tag of the compressed form. */
struct str etag_compressed(struct str etag, char out[ETAG_SIZE]);

/*
 * etag_none_match(header, etag): whether an If-None-Match line names ${etag}, by the weak
 * comparison: the line's "*", or the tag of either form. ETAG_GZIP says it was the compressed one.
 */
enum etag_match { ETAG_MISS, ETAG_HIT, ETAG_GZIP };
enum etag_match etag_none_match(struct str header, struct str etag);

/*
 * etag_versions(header, versions, max, count):
 * The versions an If-Match line names, by the strong comparison, added to ${versions} at *count
 * (the array has room for ${max}; what is beyond is left out). Weak tags and tags we never made
 * name none. False where the line is "*", any version.
 */
bool etag_versions(struct str header, uint64_t *versions, size_t max, size_t *count);

#endif
