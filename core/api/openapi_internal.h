/*
 * The OpenAPI document, openapi.json, embedded by the build. A test compares it with the route
 * table.
 */
#ifndef ASSAY_API_OPENAPI_H
#define ASSAY_API_OPENAPI_H

#include <stddef.h>
#include <stdint.h>

extern const unsigned char openapi_text[];
extern const size_t openapi_size;
extern const uint64_t openapi_version; /* a checksum of the text */

#endif
