/*
 * Reads a query, a form or a JSON body by the field table of its route: decodes, checks types, and
 * reports all mistakes at once. fields.c is pure; fields_request.c applies it to a request.
 */
#ifndef ASSAY_HTTP_FIELDS_H
#define ASSAY_HTTP_FIELDS_H

#include "core/http/request.h"
#include "core/text/json_scan.h"

enum fields_status {
    FIELDS_OK,
    FIELDS_MALFORMED, /* bad percent-encoding, NUL or invalid UTF-8 in any name or value: 400 */
    FIELDS_INVALID,   /* see ${errors}: 422 */
};

/* The first names that are not fields of the route, each once; borrowed like values. */
#define FIELDS_UNKNOWN_MAX 16
struct fields_unknown {
    unsigned count;
    struct str name[FIELDS_UNKNOWN_MAX];
};

/*
 * fields_decode(fields, encoded, scratch, values, unknown, errors): read a query or form into
 * ${values}, one per field (${fields} NULL: none). Unknown names are added to ${unknown}. An empty
 * text that may be empty counts as not sent; a field sent twice is a mistake. Decoded bytes are in
 * ${encoded} or in ${scratch}, which has encoded.n bytes (NULL is allowed if ${encoded} has neither
 * "%" nor "+"). ${errors} gets one message per wrong field.
 */
enum fields_status fields_decode(const struct field *fields, struct str encoded, char *scratch,
                                 struct value *values, struct fields_unknown *unknown,
                                 struct buf *errors);

/*
 * fields_of_json(fields, object, values, unknown, errors): the same for a JSON object. A text is a
 * string, a number an integer, a choice either. Texts are borrowed from ${object}.
 * fields_of_flat(fields, members, count, values, unknown, errors): the same for the result of
 * json_scan_flat. FIELDS_MALFORMED: a field is not a text; use fields_of_json.
 */
enum fields_status fields_of_json(const struct field *fields, struct json_object *object,
                                  struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors);
enum fields_status fields_of_flat(const struct field *fields, const struct json_member *members,
                                  int count, struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors);

/*
 * fields_error(errors, name, format, …): append a member of the `errors` object. One per field;
 * ${name} is not escaped.
 * fields_unknown_errors(fields, unknown, errors): append one per unknown name, with the nearest
 * known name.
 * fields_error_body(errors, out): the body of the 422.
 * fields_unknown_list(unknown, out): the unknown names as a JSON array.
 */
void fields_error(struct buf *errors, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void fields_unknown_errors(const struct field *fields, const struct fields_unknown *unknown,
                           struct buf *errors);
void fields_error_body(const struct buf *errors, struct buf *out);
void fields_unknown_list(const struct fields_unknown *unknown, struct buf *out);

/* ---- fields_request.c ---- */

/*
 * fields_parse(r, encoded): read the route's query or form into r->values, and unknown names into
 * r->unknown; with `Prefer: handling=strict` those are mistakes. ${encoded} must live as long as
 * the request. False: 400 or 422 was sent.
 * fields_parse_json(r, text): the same for a JSON body.
 * fields_check_unused_query(r): the query of a request with a body; it must be well-formed.
 */
bool fields_parse(struct request *r, struct str encoded);
bool fields_parse_json(struct request *r, struct str text);
bool fields_check_unused_query(struct request *r);

/* reply_fields_error(r, errors): 422 with these messages; frees ${errors}. */
void reply_fields_error(struct request *r, struct buf *errors);

/*
 * fields_read_large(text, tree, large, fault): check all of a JSON object, but parse it without the
 * value of its member ${tree} (NULL: none), which becomes ${large}, within ${text}. The caller
 * frees the object. Any thread.
 */
struct json_object *fields_read_large(struct str text, const struct field *tree, struct str *large,
                                      struct json_fault *fault);

#endif
