#include "core/web/reference_samples.h"

#include "core/web/reference_html.h"
#include "core/web/reference_operation.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_escaped(const char *text)
{
    for (; *text != '\0'; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL)
            putchar(*text);
        else
            printf("%%%02X", (unsigned char)*text);
}

struct search {
    const char *name;
    size_t n;
    json *found;
};

static void find_by_name(json *p, void *of)
{
    struct search *s = of;
    if (strcmp(doc_string(p, "in"), "path") == 0 && strlen(doc_string(p, "name")) == s->n &&
        strncmp(doc_string(p, "name"), s->name, s->n) == 0)
        s->found = p;
}

static void put_argument(const struct operation *o, const char *name, size_t n)
{
    struct search s = {name, n, NULL};
    operation_parameter_each(o, find_by_name, &s);
    if (doc_string(s.found, "example") == NULL)
        doc_fail("a path parameter has no example", o->id);
    put_escaped(doc_string(s.found, "example"));
}

static void put_query(json *p, void *of)
{
    bool *started = of; /* the query */
    if (strcmp(doc_string(p, "in"), "query") != 0 || doc_string(p, "example") == NULL)
        return;
    printf("%s%s=", *started ? "&amp;" : "?", doc_string(p, "name"));
    put_escaped(doc_string(p, "example"));
    *started = true;
}

static void put_address(const struct operation *o)
{
    bool query_started = false;
    fputs("\"$ASSAY", stdout);
    for (const char *p = o->path; *p != '\0'; p++) {
        if (*p != '{') {
            putchar(*p);
            continue;
        }
        size_t n = strcspn(p + 1, "}");
        put_argument(o, p + 1, n);
        p += n + 1;
    }
    operation_parameter_each(o, put_query, &query_started);
    putchar('"');
}

static void put_data(const struct operation *o)
{
    const char *type;
    json *found = doc_media(doc_member(o->row, "requestBody"), &type),
         *example = doc_member(found, "example");
    if (found == NULL)
        return;
    if (example == NULL)
        doc_fail("the body has no example", o->id);
    fputs(" \\\n  -H \"Content-Type: application/json\" \\\n  -d '", stdout);
    if (strchr(json_object_to_json_string(example), '\'') != NULL)
        doc_fail("the example of the body has an apostrophe, which would end the argument of -d",
                 o->id);
    html_example(example);
    putchar('\'');
}

void samples_request_put(const struct operation *o)
{
    const struct credential *c = operation_credential(o);
    bool is_post = strcmp(o->method, "post") == 0;
    html_sample_begin("Request", NULL);
    fputs("curl ", stdout);
    if (strcmp(o->method, "get") != 0 && !is_post)
        printf("-X %s ", strcmp(o->method, "put") == 0 ? "PUT" : "DELETE");
    put_address(o);
    if (c != NULL)
        printf(" \\\n  -H \"Authorization: Bearer $%s\"", c->variable);
    if (strncmp(o->path, "/api/v1/widget/", 15) == 0)
        fputs(" \\\n  -H \"Origin: https://www.example.com\"", stdout);
    put_data(o);
    html_sample_end();
}

void samples_responses_put(const struct operation *o)
{
    json_object_object_foreach(doc_member(o->row, "responses"), status, response)
    {
        char detail[80];
        const char *type;
        json *found = doc_media(response, &type);
        if (atoi(status) >= 300)
            continue;
        if (doc_member(found, "example") == NULL)
            doc_fail("a response has no example", o->id);
        snprintf(detail, sizeof(detail), "%s, %s", status, type);
        html_sample_begin("Response", detail);
        html_example(doc_member(found, "example"));
        html_sample_end();
    }
}
