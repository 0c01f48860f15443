/*
 * JSON coming in, for who only looks at it: the command line reads the server's answers and a page's results by this, and knows no JSON
 * library. Any process; nothing here is shared. A value is borrowed from its document until json_free.
 */
#ifndef ASSAY_TEXT_JSON_IN_H
#define ASSAY_TEXT_JSON_IN_H

#include "store/bytes.h"

struct json;
enum json_kind { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* json_read(text): a document; NULL where ${text} is none. json_free(j): all of it; NULL does nothing. */
struct json *json_read(struct str text);
void json_free(struct json *j);

/* What follows takes NULL for null, and any kind of value: what a value has not is NULL, 0 or false. */
enum json_kind json_kind(const struct json *j);
struct json *json_member(const struct json *j, const char *name);
size_t json_length(const struct json *j); /* of an array */
struct json *json_item(const struct json *j, size_t i);
bool json_true(const struct json *j);
uint64_t json_u64(const struct json *j);
/* json_chars(j): a string's characters; of another value, its JSON. */
const char *json_chars(const struct json *j);

/* json_next(j, at, name, value): the members of an object in their order, beginning with *${at} NULL; false after the last. */
bool json_next(const struct json *j, const void **at, const char **name, struct json **value);

#endif
