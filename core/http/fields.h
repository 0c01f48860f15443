/*
 * A query or a form against the field table of its route: decoded, typed, and every mistake told at
 * once. fields.c is pure and knows no request in flight; fields_request.c is the pipeline's
 * entrance.
 */
#ifndef ASSAY_HTTP_FIELDS_H
#define ASSAY_HTTP_FIELDS_H

#include "core/text/json_scan.h"
#include "core/http/request.h"

enum fields_status {
    FIELDS_OK,
    /* bad percent-encoding, NUL or invalid UTF-8, in whatever name or value: 400 */
    FIELDS_MALFORMED,
    FIELDS_INVALID, /* something is in ${errors}: 422 */
};

/*
 * Names that were sent and are no field of the route: the first few, each once, borrowed as values
 * are.
 */
#define FIELDS_UNKNOWN_MAX 16
struct fields_unknown {
    unsigned count;
    struct str name[FIELDS_UNKNOWN_MAX];
};

/*
 * fields_decode(fields, encoded, scratch, values, unknown, errors):
 * Decode ${encoded} by ${fields} (NULL: none are known) into ${values}, one for each field. An
 * unknown name must be well-formed, and is noted in ${unknown} (not NULL; its count is 0 or what
 * was noted before). An empty text field that may be empty counts as not sent; a field sent twice,
 * even with equal values, is a mistake. The decoded bytes live in ${scratch} (room for encoded.n
 * bytes; may be NULL where ${encoded} holds neither "%" nor "+") or in ${encoded} itself. ${errors}
 * collects a message per wrong field.
 */
enum fields_status fields_decode(const struct field *fields, struct str encoded, char *scratch,
                                 struct value *values, struct fields_unknown *unknown,
                                 struct buf *errors);

/*
 * fields_of_json(fields, object, values, unknown, errors): the same for the members of a JSON
 * object, with types as the table has them: a text is a string, a number an integer, a choice
 * either. ${text} of each value is borrowed from ${object}.
 */
enum fields_status fields_of_json(const struct field *fields, struct json_object *object,
                                  struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors);

/*
 * fields_of_flat(fields, members, count, values, unknown, errors): the same for what json_scan_flat
 * read; FIELDS_MALFORMED: one of them is a field that is no text, which only a tree can fill.
 */
enum fields_status fields_of_flat(const struct field *fields, const struct json_member *members,
                                  int count, struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors);

/*
 * fields_error(errors, name, format, …): note what is wrong with a field: the members of the
 * contract's `errors` object, in the order found. One message a field. ${name} needs no escaping.
 * fields_error_body(errors, out): the whole body of the 422 they make.
 */
void fields_error(struct buf *errors, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void fields_error_body(const struct buf *errors, struct buf *out);

/*
 * fields_unknown_errors(fields, unknown, errors): a message for each unknown name, with the nearest
 * known one.
 */
void fields_unknown_errors(const struct field *fields, const struct fields_unknown *unknown,
                           struct buf *errors);

/* fields_unknown_list(unknown, out): their names as a JSON array. */
void fields_unknown_list(const struct fields_unknown *unknown, struct buf *out);

/* ---- fields_request.c ---- */

/*
 * fields_parse(r, encoded): decode the route's query or form into r->values. False: 400 or 422 has
 * been replied. ${encoded} must live as long as the request. Unknown names are in r->unknown; under
 * `Prefer: handling=strict` they are mistakes.
 * fields_parse_spare_query(r): the query beside a body. It means nothing, but must be well-formed.
 */
bool fields_parse_spare_query(struct request *r);
bool fields_parse(struct request *r, struct str encoded);

/* fields_parse_json(r, text): the same for a JSON body. */
bool fields_parse_json(struct request *r, struct str text);

/* reply_fields_error(r, errors): 422 with all the messages collected; frees ${errors}. */
void reply_fields_error(struct request *r, struct buf *errors);

/*
 * fields_read_large(text, tree, large, fault): JSON whose member ${tree} (NULL: none) is large is
 * judged as a whole, but only the rest is parsed: ${large} stays in ${text}. What it comes to, to
 * be put back, as json_scan_read says. Any thread.
 */
struct json_object *fields_read_large(struct str text, const struct field *tree, struct str *large,
                                      struct json_fault *fault);

#endif
