/*
 * The OpenAPI document, openapi.json, as bytes in the program (made when it is built).
 * t/unit/openapi.c holds it against the route table.
 */
#ifndef ASSAY_API_OPENAPI_H
#define ASSAY_API_OPENAPI_H

#include <stddef.h>
#include <stdint.h>

extern const unsigned char openapi_text[];
extern const size_t openapi_size;
extern const uint64_t openapi_version; /* a checksum of the text */

#endif
