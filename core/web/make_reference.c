/*
 * make_reference PART FILE: writes a part of the page /docs as HTML: navigation, introduction,
 * credentials, operations or errors. FILE is the OpenAPI document. The build runs it. It fails if a
 * $ref is broken or an operation has no example.
 */
#include "core/web/reference_html.h"
#include "core/web/reference_operation.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_link(const struct operation *o, const void *tag)
{
    if (!operation_has_tag(o, tag) || operation_is_alias(o))
        return;
    printf("<li><a href=\"#%s\">", o->id);
    html_put(doc_string(o->row, "summary"));
    putchar(' ');
    html_method(o->method);
    puts("</a></li>");
}

static void put_endpoint(const struct operation *o, const void *tag)
{
    if (!operation_has_tag(o, tag) || operation_is_alias(o))
        return;
    printf("<li><a href=\"#%s\">", o->id);
    html_method(o->method);
    html_code(o->path);
    puts("</a></li>");
}

static void put_title(const char *tag)
{
    putchar(toupper((unsigned char)*tag));
    html_put(tag + 1);
}

typedef void tag_fn(const char *name, json *tag);

static void each_tag(tag_fn *call)
{
    json *tags = doc_member(doc_root(), "tags");
    for (size_t i = 0; i < doc_length(tags); i++)
        call(doc_string(doc_element(tags, i), "name"), doc_element(tags, i));
}

static void tag_links(const char *name, json *tag)
{
    (void)tag;
    printf("<li><a class=\"tag\" href=\"#tag-%s\">", name);
    put_title(name);
    puts("</a>\n<ul>");
    doc_operation_each(put_link, name);
    puts("</ul></li>");
}

static void tag_section(const char *name, json *tag)
{
    printf("<section class=\"tag\" aria-labelledby=\"tag-%s\">\n<div class=\"lead\">\n<div "
           "class=\"about\">\n<h2 id=\"tag-%s\">",
           name, name);
    put_title(name);
    puts("</h2>");
    html_prose(doc_string(tag, "description"));
    puts("</div>\n<div class=\"samples\">\n<ul class=\"endpoints\">");
    doc_operation_each(put_endpoint, name);
    puts("</ul>\n</div>\n</div>");
    doc_operation_each(operation_put, name);
    puts("</section>");
}

static void navigation(void)
{
    each_tag(tag_links);
}

static void operations(void)
{
    each_tag(tag_section);
}

static void introduction(void)
{
    html_prose(doc_string(doc_member(doc_root(), "info"), "description"));
}

static void put_credentials(void)
{
    json *schemes = doc_member(doc_member(doc_root(), "components"), "securitySchemes");
    for (size_t i = 0; i < CREDENTIALS; i++) {
        json *scheme = doc_member(schemes, credentials[i].scheme);
        printf("<dt id=\"credential-%s\">%s <code>", credentials[i].scheme, credentials[i].name);
        html_put(doc_string(scheme, "bearerFormat"));
        fputs("</code></dt>\n<dd>", stdout);
        html_inline(doc_string(scheme, "description"));
        puts("</dd>");
    }
}

/* The status of a component, in the first operation that uses it. */
static const char *status_in(json *responses, const char *name)
{
    json_object_object_foreach(responses, status, response)
    {
        if (doc_component(response) != NULL && strcmp(doc_component(response), name) == 0)
            return status;
    }
    return NULL;
}

static const char *status_of(const char *name)
{
    const char *status = NULL;
    json_object_object_foreach(doc_member(doc_root(), "paths"), path, item)
    {
        (void)path;
        json_object_object_foreach(item, method, row)
        {
            (void)method;
            if (status == NULL && doc_member(row, "responses") != NULL)
                status = status_in(doc_member(row, "responses"), name);
        }
    }
    return status;
}

static void errors(void)
{
    json_object_object_foreach(doc_member(doc_member(doc_root(), "components"), "responses"), name,
                               response)
    {
        if (operation_codes(response) == NULL)
            continue;
        printf("<tr id=\"error-%s\"><th scope=\"row\"><span class=\"status\">%s</span></th><td>",
               name, status_of(name));
        operation_codes_put(response);
        fputs("<br>", stdout);
        html_inline(doc_string(response, "description"));
        puts("</td></tr>");
    }
}

static const struct {
    const char *name;
    void (*write)(void);
} parts[] = {
    {"navigation", navigation},
    {"introduction", introduction},
    {"credentials", put_credentials},
    {"operations", operations},
    {"errors", errors},
};

int main(int argc, char **argv)
{
    const char *name = argc == 3 ? argv[1] : "";
    if (argc != 3 || !doc_open(argv[2]))
        doc_fail("usage: make_reference PART FILE; the file must be JSON", name);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(parts[i].name, name) == 0)
            parts[i].write();
    doc_close();
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}
