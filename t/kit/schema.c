#include "t/kit/schema.h"

#include "t/kit/harness.h"

#include <regex.h>

typedef struct json_object json;

json *member(json *object, const char *name)
{
    json *value = NULL;
    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &value)
               ? value
               : NULL;
}

json *schema_resolve(json *document, json *value)
{
    json *reference = member(value, "$ref");
    if (reference == NULL)
        return value;
    char *path = text("%s", json_object_get_string(reference)), *step = strsep(&path, "/");
    while (document != NULL && (step = strsep(&path, "/")) != NULL)
        document = member(document, step);
    return document;
}

static bool is_of(json *value, const char *type)
{
    enum json_type of = json_object_get_type(value);
    return !strcmp(type, of == json_type_int      ? "integer"
                         : of == json_type_double ? "number"
                                                  : json_type_to_name(of)) ||
           (of == json_type_int && !strcmp(type, "number"));
}

static char *check_type(json *document, json *rule, json *value)
{
    (void)document;
    bool fits =
        json_object_is_type(rule, json_type_string) && is_of(value, json_object_get_string(rule));
    for (size_t i = 0;
         json_object_is_type(rule, json_type_array) && i < json_object_array_length(rule); i++)
        fits |= is_of(value, json_object_get_string(json_object_array_get_idx(rule, i)));
    return fits ? NULL : text("is not of type %s", json_object_get_string(rule));
}

static char *check_const(json *document, json *rule, json *value)
{
    (void)document;
    return json_object_equal(rule, value) ? NULL : text("is not %s", json_object_get_string(rule));
}

static char *check_enum(json *document, json *rule, json *value)
{
    (void)document;
    for (size_t i = 0; i < json_object_array_length(rule); i++)
        if (json_object_equal(json_object_array_get_idx(rule, i), value))
            return NULL;
    return text("is none of %s", json_object_get_string(rule));
}

static char *check_required(json *document, json *rule, json *value)
{
    (void)document;
    for (size_t i = 0;
         json_object_is_type(value, json_type_object) && i < json_object_array_length(rule); i++)
        if (!json_object_object_get_ex(
                value, json_object_get_string(json_object_array_get_idx(rule, i)), NULL))
            return text("has no %s", json_object_get_string(json_object_array_get_idx(rule, i)));
    return NULL;
}

static char *of_member(const char *name, char *mistake)
{
    return mistake == NULL ? NULL : text("%s: %s", name, mistake);
}

static char *check_properties(json *document, json *rule, json *value)
{
    char *mistake = NULL;
    if (!json_object_is_type(value, json_type_object))
        return NULL;
    json_object_object_foreach(value, name, below)
    {
        if (mistake == NULL && member(rule, name) != NULL)
            mistake = of_member(name, schema_mistake(document, member(rule, name), below));
    }
    return mistake;
}

static char *check_items(json *document, json *rule, json *value)
{
    char *mistake = NULL;
    for (size_t i = 0; mistake == NULL && json_object_is_type(value, json_type_array) &&
                       i < json_object_array_length(value);
         i++)
        mistake =
            of_member("[]", schema_mistake(document, rule, json_object_array_get_idx(value, i)));
    return mistake;
}

static char *check_all_of(json *document, json *rule, json *value)
{
    char *mistake = NULL;
    for (size_t i = 0; mistake == NULL && i < json_object_array_length(rule); i++)
        mistake = schema_mistake(document, json_object_array_get_idx(rule, i), value);
    return mistake;
}

static char *check_any_of(json *document, json *rule, json *value)
{
    char *mistake = NULL;
    for (size_t i = 0; i < json_object_array_length(rule); i++)
        if ((mistake = schema_mistake(document, json_object_array_get_idx(rule, i), value)) == NULL)
            return NULL;
    return mistake;
}

static char *check_minimum(json *document, json *rule, json *value)
{
    (void)document;
    return json_object_get_double(value) >= json_object_get_double(rule) || value == NULL
               ? NULL
               : text("is less than %s", json_object_get_string(rule));
}

static char *check_maximum(json *document, json *rule, json *value)
{
    (void)document;
    return json_object_get_double(value) <= json_object_get_double(rule)
               ? NULL
               : text("is more than %s", json_object_get_string(rule));
}

static char *check_max_items(json *document, json *rule, json *value)
{
    (void)document;
    bool fits = !json_object_is_type(value, json_type_array) ||
                (int64_t)json_object_array_length(value) <= json_object_get_int64(rule);
    return fits ? NULL : text("has more than %s items", json_object_get_string(rule));
}

static char *check_pattern(json *document, json *rule, json *value)
{
    (void)document;
    regex_t regex;
    ck_assert_int_eq(regcomp(&regex, json_object_get_string(rule), REG_EXTENDED | REG_NOSUB), 0);
    bool fits = !json_object_is_type(value, json_type_string) ||
                regexec(&regex, json_object_get_string(value), 0, NULL, 0) == 0;
    regfree(&regex);
    return fits ? NULL : text("does not match %s", json_object_get_string(rule));
}

static const struct {
    const char *keyword;
    char *(*check)(json *document, json *rule, json *value);
} checks[] = {
    {"type", check_type},         {"const", check_const},           {"enum", check_enum},
    {"required", check_required}, {"properties", check_properties}, {"items", check_items},
    {"allOf", check_all_of},      {"anyOf", check_any_of},          {"oneOf", check_any_of},
    {"minimum", check_minimum},   {"maximum", check_maximum},       {"maxItems", check_max_items},
    {"pattern", check_pattern},
};

/* the members that `properties` does not name; false allows none */
static char *check_others(json *document, json *schema, json *value)
{
    json *rule = member(schema, "additionalProperties"), *named = member(schema, "properties");
    char *mistake = NULL;
    if (rule == NULL || !json_object_is_type(value, json_type_object))
        return NULL;
    json_object_object_foreach(value, name, below)
    {
        if (mistake != NULL || member(named, name) != NULL)
            continue;
        mistake = json_object_is_type(rule, json_type_boolean)
                      ? (json_object_get_boolean(rule) ? NULL : text("has %s", name))
                      : of_member(name, schema_mistake(document, rule, below));
    }
    return mistake;
}

char *schema_mistake(json *document, json *schema, json *value)
{
    json *found = schema_resolve(document, schema);
    char *mistake =
        found == NULL ? text("its $ref points nowhere") : check_others(document, found, value);
    for (size_t i = 0; mistake == NULL && i < COUNT(checks); i++)
        if (member(found, checks[i].keyword) != NULL)
            mistake = checks[i].check(document, member(found, checks[i].keyword), value);
    return mistake;
}

static char *member_differs(const char *name, json *example, json *value)
{
    json *other = NULL;
    if (!json_object_object_get_ex(value, name, &other))
        return text("%s is not there", name);
    return of_member(name, schema_differs(example, other));
}

char *schema_differs(json *example, json *value)
{
    enum json_type type = json_object_get_type(example);
    char *mistake = NULL;
    if (example == NULL || value == NULL)
        return NULL;
    if (json_object_get_type(value) != type)
        return text("is %s, not %s", json_object_get_string(value), json_type_to_name(type));
    if (type == json_type_array && json_object_array_length(example) > 0)
        return json_object_array_length(value) == 0
                   ? text("is empty")
                   : schema_differs(json_object_array_get_idx(example, 0),
                                    json_object_array_get_idx(value, 0));
    if (type != json_type_object)
        return NULL;
    json_object_object_foreach(example, name, below)
    {
        if (mistake == NULL)
            mistake = member_differs(name, below, value);
    }
    return mistake;
}
