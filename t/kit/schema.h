/* JSON Schema validation, as far as core/api/openapi.json needs it. */
#ifndef ASSAY_T_SCHEMA_KIT_H
#define ASSAY_T_SCHEMA_KIT_H

#include <json-c/json.h>

/* member(object, name): a member of an object, or NULL. */
struct json_object *member(struct json_object *object, const char *name);

/* schema_resolve(document, value): what a "$ref" in it points at; ${value} itself without one.
 * NULL: it points nowhere. */
struct json_object *schema_resolve(struct json_object *document, struct json_object *value);

/* schema_mistake(document, schema, value): a new text of the first thing in ${value} that ${schema}
 * does not allow, or NULL. */
char *schema_mistake(struct json_object *document, struct json_object *schema,
                     struct json_object *value);

/*
 * schema_differs(example, value): a new text of the first member of ${example} that ${value} lacks
 * or has of another type, or NULL. null is like any type; of an array's items the first are
 * compared.
 */
char *schema_differs(struct json_object *example, struct json_object *value);

#endif
