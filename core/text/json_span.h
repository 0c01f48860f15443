/*
 * Finds the members of an object and the items of an array in JSON text, without parsing it into
 * objects. For text that json_scan accepted; for other text the result is undefined, but nothing
 * outside of it is read. Pure functions, any process.
 */
#ifndef ASSAY_TEXT_JSON_SPAN_H
#define ASSAY_TEXT_JSON_SPAN_H

#include "store/bytes.h"

/* json_span_inside(value): the text between the brackets of an array or object; p NULL: neither. */
struct str json_span_inside(struct str value);

/* json_span_item(rest, item): the next item of the inside of an array; false: the end. */
bool json_span_item(struct str *rest, struct str *item);

/*
 * json_span_member(rest, name, value): the next member of the inside of an object. ${name}: without
 * quotes, with its escapes.
 */
bool json_span_member(struct str *rest, struct str *name, struct str *value);

/* json_span_text(value, out): the characters of a string without escapes; false: anything else. */
bool json_span_text(struct str value, struct str *out);

#endif
