/*
 * Walking JSON as text: where the members of an object and the items of an array stand, without a
 * tree of them. For what json_scan has found well-formed; of other text the result means nothing,
 * but nothing outside of it is read. Pure functions, any process.
 */
#ifndef ASSAY_TEXT_JSON_SPAN_H
#define ASSAY_TEXT_JSON_SPAN_H

#include "store/bytes.h"

/*
 * json_span_inside(value): what is between the brackets of an array or object; p NULL for other
 * values.
 */
struct str json_span_inside(struct str value);

/* json_span_item(rest, item): the next item of what is inside an array; false at its end. */
bool json_span_item(struct str *rest, struct str *item);

/*
 * json_span_member(rest, name, value): the next member of what is inside an object. ${name} is what
 * stands between its quotes, with its escapes.
 */
bool json_span_member(struct str *rest, struct str *name, struct str *value);

/*
 * json_span_text(value, out): a string that needs no decoding; false for one with escapes, and for
 * other values.
 */
bool json_span_text(struct str value, struct str *out);

#endif
