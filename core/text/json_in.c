#include "core/text/json_in.h"

#include <json-c/json.h>

/* struct json is json-c's object. */
static struct json_object *inner(const struct json *j)
{
    return (struct json_object *)(uintptr_t)j;
}

static struct json *outer(struct json_object *object)
{
    return (struct json *)object;
}

struct json *json_read(struct str text)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *object =
        tokener == NULL ? NULL : json_tokener_parse_ex(tokener, text.p, (int)text.n);
    json_tokener_free(tokener);
    return outer(object);
}

void json_free(struct json *j)
{
    json_object_put(inner(j));
}

enum json_kind json_kind(const struct json *j)
{
    static const enum json_kind kinds[] = {
        [json_type_null] = JSON_NULL,     [json_type_boolean] = JSON_BOOLEAN,
        [json_type_double] = JSON_NUMBER, [json_type_int] = JSON_NUMBER,
        [json_type_object] = JSON_OBJECT, [json_type_array] = JSON_ARRAY,
        [json_type_string] = JSON_STRING,
    };
    return kinds[json_object_get_type(inner(j))];
}

struct json *json_member(const struct json *j, const char *name)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(inner(j), name, &value) ? outer(value) : NULL;
}

size_t json_length(const struct json *j)
{
    return json_kind(j) == JSON_ARRAY ? json_object_array_length(inner(j)) : 0;
}

struct json *json_item(const struct json *j, size_t i)
{
    return i < json_length(j) ? outer(json_object_array_get_idx(inner(j), i)) : NULL;
}

bool json_true(const struct json *j)
{
    return json_kind(j) == JSON_BOOLEAN && json_object_get_boolean(inner(j));
}

uint64_t json_u64(const struct json *j)
{
    return json_object_get_uint64(inner(j));
}

const char *json_chars(const struct json *j)
{
    if (j == NULL || json_kind(j) == JSON_STRING)
        return json_object_get_string(inner(j));
    return json_object_to_json_string_ext(inner(j), JSON_C_TO_STRING_NOSLASHESCAPE);
}

bool json_next(const struct json *j, const void **at, const char **name, struct json **value)
{
    if (json_kind(j) != JSON_OBJECT)
        return false;
    const struct lh_entry *entry =
        *at == NULL ? json_object_get_object(inner(j))->head : ((const struct lh_entry *)*at)->next;
    *at = entry;
    if (entry == NULL)
        return false;
    *name = lh_entry_k(entry);
    *value = outer(lh_entry_v(entry));
    return true;
}
