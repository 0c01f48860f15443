#include "core/web/reference_schema.h"

#include "core/web/reference_html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 6

static json *variants(json *schema)
{
    static const char *const words[] = {"oneOf", "anyOf", "allOf"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (doc_member(schema, words[i]) != NULL)
            return doc_member(schema, words[i]);
    return NULL;
}

static void put_type_of(json *value)
{
    enum json_type type = json_object_get_type(value);
    fputs(value == NULL           ? "any"
          : type == json_type_int ? "integer"
                                  : json_type_to_name(type),
          stdout);
}

static void put_type(json *given)
{
    json *schema = doc_resolve(given), *type = doc_member(schema, "type"),
         *all = type == NULL ? variants(schema) : type;
    if (json_object_is_type(type, json_type_string)) {
        html_put(json_object_get_string(type));
        if (doc_string(schema, "format") != NULL)
            printf(" (%s)", doc_string(schema, "format"));
    } else if (all == NULL) {
        put_type_of(doc_member(schema, "const") != NULL
                        ? doc_member(schema, "const")
                        : doc_element(doc_member(schema, "enum"), 0));
    } else {
        for (size_t i = 0; i < doc_length(all); i++) {
            json *one = doc_element(all, i);
            fputs(i == 0 ? "" : " or ", stdout);
            if (type == NULL)
                put_type(one);
            else
                html_put(json_object_get_string(one));
        }
    }
    if (doc_member(schema, "items") != NULL) {
        fputs(" of ", stdout);
        put_type(doc_member(schema, "items"));
    }
}

static void put_values(json *schema)
{
    json *values = doc_member(schema, "enum");
    for (size_t i = 0; i < doc_length(values); i++) {
        fputs(i == 0 ? " <span class=\"rule\">One of " : ", ", stdout);
        json *one = doc_element(values, i);
        html_code(one == NULL ? "null" : json_object_get_string(one));
    }
    fputs(values == NULL ? "" : ".</span>", stdout);
}

static void put_rule(const char *before, json *value, const char *after)
{
    if (value == NULL)
        return;
    printf(" <span class=\"rule\">%s", before);
    html_code(json_object_get_string(value));
    printf("%s.</span>", after);
}

static void put_range(const char *before, json *least, json *most)
{
    if (least == NULL && most == NULL)
        return;
    printf(" <span class=\"rule\">%s%s", before,
           most == NULL    ? "at least "
           : least == NULL ? "at most "
                           : "");
    if (least != NULL)
        html_code(json_object_get_string(least));
    fputs(least != NULL && most != NULL ? " to " : "", stdout);
    if (most != NULL)
        html_code(json_object_get_string(most));
    fputs(".</span>", stdout);
}

static void put_rules(json *schema)
{
    put_values(schema);
    put_rule("Always ", doc_member(schema, "const"), "");
    put_rule("Default ", doc_member(schema, "default"), "");
    put_range("Range: ", doc_member(schema, "minimum"), doc_member(schema, "maximum"));
    put_range("Length: ", doc_member(schema, "minLength"), doc_member(schema, "maxLength"));
    put_rule("At most ", doc_member(schema, "maxItems"), " items");
    put_rule("Matches ", doc_member(schema, "pattern"), "");
}

/* A path such as data[].url, which may wrap after each dot. */
static void put_path(const char *name)
{
    fputs("<code>", stdout);
    for (; *name != '\0'; name++) {
        html_put_char(*name);
        if (*name == '.')
            fputs("<wbr>", stdout);
    }
    fputs("</code>", stdout);
}

void schema_row(const char *name, json *given, const char *where, bool required,
                const char *description)
{
    json *schema = doc_resolve(given);
    fputs("<tr><th scope=\"row\">", stdout);
    put_path(name);
    fputs("<span class=\"type\">", stdout);
    put_type(schema);
    printf("%s%s</span>%s</th><td>", where == NULL ? "" : ", ", where == NULL ? "" : where,
           required ? "<span class=\"required\">required</span>" : "");
    html_inline(description);
    put_rules(schema);
    puts("</td></tr>");
}

static bool requires(json *schema, const char *name)
{
    json *names = doc_member(schema, "required");
    for (size_t i = 0; i < doc_length(names); i++)
        if (strcmp(json_object_get_string(doc_element(names, i)), name) == 0)
            return true;
    return false;
}

static void below(json *schema, const char *path, const char *step, bool of_body, unsigned depth)
{
    char *deeper = NULL;
    if (schema == NULL || depth == DEPTH_MAX || asprintf(&deeper, "%s%s", path, step) < 0)
        return;
    schema_rows(schema, deeper, of_body, depth + 1);
    free(deeper);
}

static void one_field(json *schema, const char *name, json *given, const char *prefix, bool of_body,
                      unsigned depth)
{
    char *path = NULL;
    const char *own = doc_string(given, "description");
    if (asprintf(&path, "%s%s", prefix, name) < 0)
        return;
    schema_row(path, given, NULL, of_body && requires(schema, name),
               own != NULL ? own : doc_string(doc_resolve(given), "description"));
    below(given, path, ".", of_body, depth);
    free(path);
}

void schema_rows(json *given, const char *prefix, bool of_body, unsigned depth)
{
    json *schema = doc_resolve(given), *properties = doc_member(schema, "properties"),
         *all = variants(schema);
    if (properties != NULL) {
        json_object_object_foreach(properties, name, property)
        {
            one_field(schema, name, property, prefix, of_body, depth);
        }
    }
    char *items = strndup(prefix, strlen(prefix) - (*prefix != '\0'));
    below(doc_member(schema, "items"), items, "[].", of_body, depth);
    if (json_object_is_type(doc_member(schema, "additionalProperties"), json_type_object))
        below(doc_member(schema, "additionalProperties"), prefix, "{name}.", of_body, depth);
    free(items);
    for (size_t i = 0; i < doc_length(all); i++)
        schema_rows(doc_element(all, i), prefix, of_body, depth);
}

bool schema_has_rows(json *given)
{
    json *schema = doc_resolve(given), *properties = doc_member(schema, "properties");
    return properties != NULL ? json_object_object_length(properties) > 0
                              : variants(schema) != NULL || doc_member(schema, "items") != NULL;
}
