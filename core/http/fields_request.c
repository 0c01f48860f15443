#include "core/http/fields.h"

#include "core/http/error_html.h"
#include "core/text/json_scan.h"
#include "core/http/large_body.h"
#include "core/http/conditions.h"
#include "core/http/reply.h"

#include <json-c/json.h>

static void put_first_messages(struct json_object *fields, struct buf *out)
{
    struct json_object_iterator at = json_object_iter_begin(fields),
                                end = json_object_iter_end(fields);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        struct json_object *messages = json_object_iter_peek_value(&at);
        buf_printf(out, "%s %s %s", out->n == 0 ? "" : ";", json_object_iter_peek_name(&at),
                   json_object_get_string(json_object_array_get_idx(messages, 0)));
    }
}

/* The messages as one sentence: "Some values are invalid: password is required." */
static void reply_fields_page(struct request *r, const struct buf *errors)
{
    struct buf object = {0}, text = {0};
    buf_printf(&object, "{%.*s}", (int)errors->n, errors->p);
    buf_add(&object, "", 1);
    struct json_object *fields = buf_ok(&object) ? json_tokener_parse(object.p) : NULL;
    if (fields != NULL)
        put_first_messages(fields, &text);
    json_object_put(fields);
    buf_free(&object);
    reply_error(r, ERR_VALIDATION_FAILED, "Some values are invalid:%.*s.", (int)text.n, text.p);
    buf_free(&text);
}

void reply_fields_error(struct request *r, struct buf *errors)
{
    struct buf body = {0};
    if (error_is_page(r)) {
        reply_fields_page(r, errors);
        buf_free(errors);
        return;
    }
    r->etag = (struct str){NULL, 0};
    fields_error_body(errors, &body);
    buf_free(errors);
    if (buf_ok(&body)) {
        struct str part = buf_view(&body);
        reply_json(r, err_row(ERR_VALIDATION_FAILED)->status, &part, 1);
    } else {
        reply_error(r, ERR_UNAVAILABLE, NULL);
    }
    buf_free(&body);
}

void reply_invalid(struct request *r, const char *field, const char *message)
{
    struct buf errors = {0};
    fields_error(&errors, field, "%s", message);
    reply_fields_error(r, &errors);
}

static char *alloc_scratch(struct request *r, struct str encoded)
{
    bool escaped = encoded.n != 0 && (memchr(encoded.p, '%', encoded.n) != NULL ||
                                      memchr(encoded.p, '+', encoded.n) != NULL);
    return escaped ? request_alloc(r, encoded.n) : NULL;
}

/* Static pages ignore unknown parameters. */
static bool may_refuse_unknown(const struct route *route)
{
    return route->fields != NULL || route->auth != AUTH_NONE;
}

/* Note unknown names, or refuse them with handling=strict. */
static enum fields_status check_unknown(struct request *r, const struct field *fields,
                                        const struct fields_unknown *unknown,
                                        enum fields_status status, struct buf *errors)
{
    if (unknown->count == 0 || status == FIELDS_MALFORMED)
        return status;
    if (may_refuse_unknown(r->route) && request_is_strict(r)) {
        reply_header(r, "preference-applied", STR("handling=strict"));
        fields_unknown_errors(fields, unknown, errors);
        return FIELDS_INVALID;
    }
    r->unknown = request_alloc(r, sizeof(*unknown));
    *r->unknown = *unknown;
    return status;
}

static bool parse(struct request *r, const struct field *fields, struct str encoded,
                  const char *what)
{
    if (fields == NULL && encoded.n == 0)
        return true;
    struct buf errors = {0};
    struct fields_unknown unknown = {.count = 0};
    enum fields_status status =
        fields_decode(fields, encoded, alloc_scratch(r, encoded), r->values, &unknown, &errors);
    switch (check_unknown(r, fields, &unknown, status, &errors)) {
    case FIELDS_OK:
        return true;
    case FIELDS_MALFORMED:
        buf_free(&errors);
        reply_error(r, ERR_BAD_REQUEST,
                    "The %s is malformed. Each %% needs two hexadecimal digits; decoded, its text "
                    "must be UTF-8 without NUL.",
                    what);
        return false;
    case FIELDS_INVALID:
        reply_fields_error(r, &errors);
        return false;
    }
    return false;
}

bool fields_parse(struct request *r, struct str encoded)
{
    return parse(r, r->route->fields, encoded, r->route->body != BODY_NONE ? "form" : "query");
}

bool fields_check_unused_query(struct request *r)
{
    return parse(r, NULL, r->query, "query");
}

/* A json-c object that is freed with the request. */
struct tree {
    struct json_object *object;
};

static void tree_dispose(void *arg)
{
    json_object_put(((struct tree *)arg)->object);
}

/* Most bodies are a few plain strings and need no json-c tree. */
static bool parse_flat(struct request *r, struct str text, enum fields_status *status,
                       struct buf *errors)
{
    struct json_member members[FIELDS_MAX];
    struct fields_unknown unknown = {.count = 0};
    const struct field *fields = r->route->fields;
    int count = json_scan_flat(text, members, FIELDS_MAX);
    if (count >= 0)
        *status = fields_of_flat(fields, members, count, r->values, &unknown, errors);
    if (count < 0 || *status == FIELDS_MALFORMED) {
        buf_free(errors);
        return false;
    }
    *status = check_unknown(r, fields, &unknown, *status, errors);
    return true;
}

static bool finish(struct request *r, enum fields_status status, struct buf *errors)
{
    if (status != FIELDS_OK) {
        reply_fields_error(r, errors);
        return false;
    }
    buf_free(errors);
    return true;
}

static int find_tree_field(const struct field *fields)
{
    for (int i = 0; fields != NULL && fields[i].name != NULL; i++)
        if (fields[i].type == FIELD_TREE)
            return i;
    return -1;
}

struct json_object *fields_read_large(struct str text, const struct field *tree, struct str *large,
                                      struct json_fault *fault)
{
    struct buf small = {0};
    *large = (struct str){NULL, 0};
    if (tree == NULL)
        return json_scan_read(text, JSON_SCAN_DEPTH, fault);
    if (json_scan_member(text, JSON_SCAN_DEPTH, str_of(tree->name), large, fault) != JSON_SCAN_OK)
        return NULL;
    if (str_eq(*large, STR("null")))
        *large = (struct str){NULL, 0};
    size_t before = large->p == NULL ? text.n : (size_t)(large->p - text.p);
    buf_add(&small, text.p, before);
    if (large->p != NULL) {
        buf_adds(&small, "null");
        buf_add(&small, large->p + large->n, text.n - before - large->n);
    }
    struct json_object *object = NULL;
    if (buf_ok(&small))
        object = json_scan_read(buf_view(&small), JSON_SCAN_DEPTH, fault);
    else
        fault->verdict = JSON_SCAN_MEMORY;
    buf_free(&small);
    return object;
}

bool fields_parse_json(struct request *r, struct str text)
{
    struct buf errors = {0};
    enum fields_status status;
    int at = find_tree_field(r->route->fields);
    if (at < 0 && r->large_body == NULL && parse_flat(r, text, &status, &errors))
        return finish(r, status, &errors);
    struct json_fault fault;
    struct str large = {NULL, 0};
    struct tree *tree = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*tree), tree_dispose);
    tree->object = NULL;
    if (r->large_body != NULL) {
        fault = r->large_body->fault;
        large = r->large_body->large;
        tree->object = r->large_body->object;
        r->large_body->object = NULL;
    } else {
        tree->object =
            fields_read_large(text, at < 0 ? NULL : &r->route->fields[at], &large, &fault);
    }
    if (fault.verdict == JSON_SCAN_MEMORY) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return false;
    }
    if (fault.verdict != JSON_SCAN_OK || !json_object_is_type(tree->object, json_type_object)) {
        char why[JSON_FAULT_TEXT] = "The body must be a JSON object.";
        if (fault.verdict != JSON_SCAN_OK)
            json_fault_text(&fault, why);
        reply_error(r, ERR_BAD_REQUEST, "%s", why);
        return false;
    }
    struct fields_unknown unknown = {.count = 0};
    status = fields_of_json(r->route->fields, tree->object, r->values, &unknown, &errors);
    status = check_unknown(r, r->route->fields, &unknown, status, &errors);
    if (status == FIELDS_OK && large.p != NULL)
        r->values[at] = (struct value){.sent = true, .text = large};
    return finish(r, status, &errors);
}
