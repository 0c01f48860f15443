/*
 * Reads JSON for the command line, which knows no JSON library. Values are borrowed from their
 * document until json_free. Any process.
 */
#ifndef ASSAY_TEXT_JSON_IN_H
#define ASSAY_TEXT_JSON_IN_H

#include "store/bytes.h"

struct json;
enum json_kind { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* json_read(text): a document; NULL: malformed. json_free(j): free it; NULL does nothing. */
struct json *json_read(struct str text);
void json_free(struct json *j);

/* These accept NULL as null, and values of any kind; the result is then NULL, 0 or false. */
enum json_kind json_kind(const struct json *j);
struct json *json_member(const struct json *j, const char *name);
size_t json_length(const struct json *j); /* of an array */
struct json *json_item(const struct json *j, size_t i);
bool json_true(const struct json *j);
uint64_t json_u64(const struct json *j);
/* json_chars(j): the characters of a string, or the JSON of another value. */
const char *json_chars(const struct json *j);

/*
 * json_next(j, at, name, value): the next member of an object; *at starts as NULL. False: the end.
 */
bool json_next(const struct json *j, const void **at, const char **name, struct json **value);

#endif
