/* Values that json-c has parsed. Pure functions. */
#ifndef ASSAY_API_JSON_VALUE_H
#define ASSAY_API_JSON_VALUE_H

#include "store/bytes.h"

#include <json-c/json.h>

/* json_value_text(value): the text of a string; it is valid as long as ${value}. */
static inline struct str json_value_text(struct json_object *value)
{
    return (struct str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

#endif
