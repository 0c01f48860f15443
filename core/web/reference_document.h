/*
 * The OpenAPI document of make_reference; one at a time. All values are borrowed from it until
 * doc_close. NULL is a missing value; every function accepts it.
 */
#ifndef ASSAY_WEB_REFERENCE_DOCUMENT_H
#define ASSAY_WEB_REFERENCE_DOCUMENT_H

#include <json-c/json.h>
#include <stdbool.h>

typedef struct json_object json;

/* doc_open(file): read ${file}; false: it is not readable or not JSON. */
bool doc_open(const char *file);
void doc_close(void);
json *doc_root(void);

/* doc_fail(what, of): print what is wrong with ${of}, and end the program. */
void doc_fail(const char *what, const char *of) __attribute__((noreturn));

json *doc_member(json *object, const char *name);
json *doc_element(json *array, size_t i);
size_t doc_length(json *array);
/* doc_string(object, name): the member ${name} as text. */
const char *doc_string(json *object, const char *name);

/* doc_resolve(value): the target of its $ref; without one, ${value} itself. */
json *doc_resolve(json *value);
/* doc_component(value): the name in its $ref: NotFound of #/components/responses/NotFound. */
const char *doc_component(json *value);
/* doc_media(holder, type): the JSON of its content, or the only media type; *type: its name. */
json *doc_media(json *holder, const char **type);

struct operation {
    const char *method, *path, *id;
    json *item, *row; /* of the path, of the method */
};

/* doc_operation_each(call, of): call ${call} with every operation, and with ${of}. */
typedef void operation_fn(const struct operation *o, const void *of);
void doc_operation_each(operation_fn *call, const void *of);

#endif
