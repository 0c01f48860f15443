/*
 * JSON coming in, read strictly (RFC 8259) before json-c, which is lax, may see it: what is
 * malformed, not UTF-8, deep, ambiguous or beyond the numbers a program can hold is refused, never
 * guessed. Pure functions, any process.
 */
#ifndef ASSAY_TEXT_JSON_SCAN_H
#define ASSAY_TEXT_JSON_SCAN_H

#include "store/bytes.h"

struct json_object;

#define JSON_SCAN_DEPTH 16      /* of nesting, for bodies */
#define JSON_SCAN_VALUES 100000 /* of a body: a tree of them takes some hundred bytes for each */

enum json_verdict {
    JSON_SCAN_OK,
    /* not JSON: NaN, single quotes, comments, a trailing comma, something behind it */
    JSON_SCAN_MALFORMED,
    JSON_SCAN_ENCODING,  /* not UTF-8, NUL, or half of a surrogate pair */
    JSON_SCAN_DEEP,      /* nested more than ${depth} levels */
    JSON_SCAN_MANY,      /* more than JSON_SCAN_VALUES values */
    JSON_SCAN_DUPLICATE, /* an object names a member twice, however it is escaped */
    JSON_SCAN_RANGE,     /* a whole number beyond 64 bits, or any number too large to be one */
    JSON_SCAN_MEMORY,
};

/* Why and where a text is refused. ${expected}: what could stand there, static; NULL: not known. */
struct json_fault {
    enum json_verdict verdict;
    unsigned line, column; /* from 1; columns count characters */
    const char *expected;
};

/* json_scan(text, depth): judge ${text} in one pass. */
enum json_verdict json_scan(struct str text, unsigned depth);
/*
 * json_scan_member(text, depth, name, value, fault): the same, and where ${text} is an object the
 * value of its member ${name} (written without escapes) as it stands there; p NULL where there is
 * none. ${fault} may be NULL.
 */
enum json_verdict json_scan_member(struct str text, unsigned depth, struct str name,
                                   struct str *value, struct json_fault *fault);

/* json_fault_text(fault, out): one sentence about a refused text, for the person who wrote it. */
#define JSON_FAULT_TEXT 200
void json_fault_text(const struct json_fault *fault, char out[JSON_FAULT_TEXT]);

/*
 * json_scan_read(text, depth, fault): scan, then json-c's tree, to be put back by the caller; NULL
 * where it was refused (or is null).
 * json_scan_parse(text, depth, verdict): the same where nobody is told why.
 */
struct json_object *json_scan_read(struct str text, unsigned depth, struct json_fault *fault);
struct json_object *json_scan_parse(struct str text, unsigned depth, enum json_verdict *verdict);

/*
 * json_scan_flat(text, members, most): the members of an object that holds plain strings alone (no
 * escape in them, no other type, no name twice), borrowed from ${text}; how many. -1: it is
 * anything else, or malformed: json_scan tells. Most bodies are such, and need no tree.
 */
struct json_member {
    struct str name, text;
};
int json_scan_flat(struct str text, struct json_member *members, int most);

#endif
