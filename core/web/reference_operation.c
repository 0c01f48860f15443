#include "core/web/reference_operation.h"

#include "core/web/reference_html.h"
#include "core/web/reference_samples.h"
#include "core/web/reference_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the id without "Alias". */
static size_t base_length(const char *id)
{
    static const char suffix[] = "Alias";
    size_t n = strlen(id), tail = sizeof(suffix) - 1;
    return n > tail && strcmp(id + n - tail, suffix) == 0 ? n - tail : n;
}

bool operation_is_alias(const struct operation *o)
{
    return o->id[base_length(o->id)] != '\0';
}

bool operation_has_tag(const struct operation *o, const char *tag)
{
    return strcmp(json_object_get_string(doc_element(doc_member(o->row, "tags"), 0)), tag) == 0;
}

const struct credential credentials[CREDENTIALS] = {
    {"apiKey", "API key", "KEY"},
    {"workspaceToken", "Workspace token", "TOKEN"},
    {"visitor", "Visitor&#39;s token", "JWT"},
};

const struct credential *operation_credential(const struct operation *o)
{
    json *first = doc_element(doc_member(o->row, "security"), 0);
    for (size_t i = 0; i < CREDENTIALS; i++)
        if (doc_member(first, credentials[i].scheme) != NULL)
            return &credentials[i];
    return NULL;
}

static void put_credential(const struct operation *o)
{
    const struct credential *c = operation_credential(o);
    if (c == NULL) {
        fputs("none", stdout);
        return;
    }
    json *scopes = doc_member(doc_element(doc_member(o->row, "security"), 0), c->scheme);
    printf("<a href=\"#credential-%s\">%s</a>", c->scheme, c->name);
    for (size_t i = 0; i < doc_length(scopes); i++) {
        fputs(i == 0 ? " with " : ", ", stdout);
        html_code(json_object_get_string(doc_element(scopes, i)));
    }
}

static void put_facts(const struct operation *o)
{
    const char *limiter = doc_string(o->row, "x-limiter");
    fputs("<dl class=\"facts\"><div><dt>Credential</dt><dd>", stdout);
    put_credential(o);
    fputs("</dd></div><div><dt>Limiter</dt><dd>", stdout);
    if (limiter == NULL)
        fputs("none", stdout);
    else
        html_code(limiter);
    puts("</dd></div></dl>");
}

void operation_parameter_each(const struct operation *o, parameter_fn *call, void *of)
{
    json *lists[] = {doc_member(o->item, "parameters"), doc_member(o->row, "parameters")};
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (size_t i = 0; i < doc_length(lists[l]); i++)
            call(doc_resolve(doc_element(lists[l], i)), of);
}

static void parameter_row(json *p, void *of)
{
    (void)of;
    schema_row(doc_string(p, "name"), doc_member(p, "schema"), doc_string(p, "in"),
               json_object_get_boolean(doc_member(p, "required")), doc_string(p, "description"));
}

static void put_body(const struct operation *o)
{
    const char *type;
    json *body = doc_resolve(doc_member(o->row, "requestBody")), *found = doc_media(body, &type);
    if (found == NULL)
        return;
    if (!schema_has_rows(doc_member(found, "schema"))) {
        puts("<h4>Body</h4>\n<p>None, or an empty object.</p>");
        return;
    }
    html_table_begin("Body");
    schema_rows(doc_member(found, "schema"), "", true, 0);
    html_table_end();
    html_prose(doc_string(body, "description"));
    if (doc_member(doc_member(body, "content"), "application/x-www-form-urlencoded") != NULL)
        puts("<p>As JSON or as a form (<code>application/x-www-form-urlencoded</code>).</p>");
}

static void put_response(const char *status, json *response)
{
    const char *type;
    json *schema = doc_member(doc_media(response, &type), "schema");
    printf("<p class=\"answer\"><span class=\"status\">%s</span> ", status);
    html_inline(doc_string(response, "description"));
    puts("</p>");
    if (!schema_has_rows(schema))
        return;
    printf("<details>\n<summary>Response fields</summary>\n");
    html_table_begin("Fields");
    schema_rows(schema, "", false, 0);
    html_table_end();
    puts("</details>");
}

json *operation_codes(json *response)
{
    const char *type;
    json *both = doc_member(doc_member(doc_media(response, &type), "schema"), "allOf");
    json *error = doc_member(doc_member(doc_element(both, 1), "properties"), "error");
    return doc_member(doc_member(doc_member(error, "properties"), "code"), "enum");
}

void operation_codes_put(json *response)
{
    json *codes = operation_codes(response);
    for (size_t i = 0; i < doc_length(codes); i++) {
        fputs(i == 0 ? " " : ", ", stdout);
        html_code(json_object_get_string(doc_element(codes, i)));
    }
}

static void put_responses(json *responses)
{
    puts("<h4>Responses</h4>");
    json_object_object_foreach(responses, status, response)
    {
        if (atoi(status) < 400)
            put_response(status, doc_resolve(response));
    }
}

static void put_errors(json *responses)
{
    puts("<h4>Errors</h4>\n<ul class=\"errors\">");
    json_object_object_foreach(responses, status, response)
    {
        if (atoi(status) < 400)
            continue;
        if (doc_component(response) == NULL)
            doc_fail("an error response is not a $ref to a component", status);
        printf("<li><a href=\"#error-%s\" class=\"status\">%s</a>", doc_component(response),
               status);
        operation_codes_put(doc_resolve(response));
        puts("</li>");
    }
    puts("</ul>");
}

static void alias_line(const struct operation *o, const void *of)
{
    const struct operation *base = of;
    if (!operation_is_alias(o) || strlen(base->id) != base_length(o->id) ||
        strncmp(o->id, base->id, base_length(o->id)) != 0)
        return;
    printf("<p class=\"endpoint also\" id=\"%s\">also ", o->id);
    html_method(o->method);
    html_code(o->path);
    puts("</p>");
}

void operation_put(const struct operation *o, const void *tag)
{
    if (!operation_has_tag(o, tag) || operation_is_alias(o))
        return;
    printf("<article class=\"operation\" id=\"%s\" aria-labelledby=\"%s-title\">\n<div "
           "class=\"about\">\n<h3 id=\"%s-title\"><a href=\"#%s\">",
           o->id, o->id, o->id, o->id);
    html_put(doc_string(o->row, "summary"));
    fputs("</a></h3>\n<p class=\"endpoint\">", stdout);
    html_method(o->method);
    html_code(o->path);
    puts("</p>");
    doc_operation_each(alias_line, o);
    html_prose(doc_string(o->row, "description"));
    put_facts(o);
    html_table_begin("Parameters");
    operation_parameter_each(o, parameter_row, NULL);
    html_table_end();
    put_body(o);
    put_responses(doc_member(o->row, "responses"));
    put_errors(doc_member(o->row, "responses"));
    puts("</div>\n<div class=\"samples\">");
    samples_request_put(o);
    samples_responses_put(o);
    puts("</div>\n</article>");
}
