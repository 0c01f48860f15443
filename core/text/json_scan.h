/*
 * Strict JSON (RFC 8259). Text is checked here before json-c, which is lax, parses it: malformed,
 * not UTF-8, too deep, ambiguous or with numbers out of range is refused. Pure functions, any
 * process.
 */
#ifndef ASSAY_TEXT_JSON_SCAN_H
#define ASSAY_TEXT_JSON_SCAN_H

#include "core/text/json_flat.h"
#include "store/bytes.h"

struct json_object;

#define JSON_SCAN_DEPTH 16      /* levels of arrays and objects in a body */
#define JSON_SCAN_VALUES 100000 /* in a body: json-c uses some hundred bytes for each */

enum json_verdict {
    JSON_SCAN_OK,
    JSON_SCAN_MALFORMED, /* also NaN, single quotes, comments, a trailing comma, text after it */
    JSON_SCAN_ENCODING,  /* not UTF-8, NUL, or half of a surrogate pair */
    JSON_SCAN_DEEP,      /* more than ${depth} levels */
    JSON_SCAN_MANY,      /* more than JSON_SCAN_VALUES values */
    JSON_SCAN_DUPLICATE, /* two members of an object with the same name, however it is escaped */
    JSON_SCAN_RANGE,     /* a whole number beyond 64 bits, or a number that is too large */
    JSON_SCAN_MEMORY,
};

/* Why and where a text is refused. */
struct json_fault {
    enum json_verdict verdict;
    unsigned line, column; /* from 1; columns count characters */
    const char *expected;  /* what could be there; static; NULL: unknown */
};

/*
 * json_scan(text, depth): check ${text} in one pass.
 * json_scan_member(text, depth, name, value, fault): the same, and find the value of the member
 * ${name} (written without escapes) if ${text} is an object; p NULL: none. ${fault} may be NULL.
 */
enum json_verdict json_scan(struct str text, unsigned depth);
enum json_verdict json_scan_member(struct str text, unsigned depth, struct str name,
                                   struct str *value, struct json_fault *fault);

/* json_fault_text(fault, out): a sentence about a refused text, for its author. */
#define JSON_FAULT_TEXT 200
void json_fault_text(const struct json_fault *fault, char out[JSON_FAULT_TEXT]);

/*
 * json_scan_read(text, depth, fault): check ${text} and parse it with json-c; the caller frees the
 * object. NULL: refused, or null.
 * json_scan_parse(text, depth, verdict): the same with the verdict alone.
 */
struct json_object *json_scan_read(struct str text, unsigned depth, struct json_fault *fault);
struct json_object *json_scan_parse(struct str text, unsigned depth, enum json_verdict *verdict);

#endif
