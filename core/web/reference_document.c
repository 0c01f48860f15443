#include "core/web/reference_document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json *document;

bool doc_open(const char *file)
{
    document = json_object_from_file(file);
    return document != NULL;
}

void doc_close(void)
{
    json_object_put(document);
    document = NULL;
}

json *doc_root(void)
{
    return document;
}

json *doc_member(json *object, const char *name)
{
    json *value = NULL;
    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &value)
               ? value
               : NULL;
}

json *doc_element(json *array, size_t i)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_get_idx(array, i) : NULL;
}

size_t doc_length(json *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

const char *doc_string(json *object, const char *name)
{
    json *value = doc_member(object, name);
    return value == NULL ? NULL : json_object_get_string(value);
}

void doc_fail(const char *what, const char *of)
{
    fprintf(stderr, "make_reference: %s: %s\n", of, what);
    exit(EXIT_FAILURE);
}

json *doc_resolve(json *value)
{
    const char *reference = doc_string(value, "$ref");
    if (reference == NULL)
        return value;
    char *path = strdup(reference), *save = NULL;
    json *at = document;
    strtok_r(path, "/", &save);
    for (char *name; at != NULL && (name = strtok_r(NULL, "/", &save)) != NULL;)
        at = doc_member(at, name);
    free(path);
    if (at == NULL)
        doc_fail("broken $ref", reference);
    return at;
}

const char *doc_component(json *value)
{
    const char *reference = doc_string(value, "$ref");
    return reference == NULL ? NULL : strrchr(reference, '/') + 1;
}

void doc_operation_each(operation_fn *call, const void *of)
{
    json_object_object_foreach(doc_member(document, "paths"), path, item)
    {
        json_object_object_foreach(item, method, row)
        {
            struct operation o = {method, path, doc_string(row, "operationId"), item, row};
            if (strcmp(method, "parameters") == 0)
                continue;
            if (o.id == NULL)
                doc_fail("an operation has no operationId", path);
            call(&o, of);
        }
    }
}

json *doc_media(json *holder, const char **type)
{
    json *content = doc_member(doc_resolve(holder), "content"), *first = NULL;
    *type = "application/json";
    if (content == NULL || (first = doc_member(content, *type)) != NULL)
        return first;
    json_object_object_foreach(content, name, value)
    {
        *type = name;
        first = value;
    }
    return first;
}
