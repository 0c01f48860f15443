/*
 * make_reference PART FILE: a part of the page /docs, as HTML, of the OpenAPI document FILE:
 * navigation, introduction, credentials, operations or errors. The build runs it. A reference in
 * the document that leads nowhere, or an operation without an example, is a failure.
 */
#include <ctype.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct json_object json;

#define DEPTH_MAX 6

static json *document;

/* ---- the document ---- */

static json *member(json *object, const char *name)
{
    json *value = NULL;
    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &value)
               ? value
               : NULL;
}

static json *element(json *array, size_t i)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_get_idx(array, i) : NULL;
}

static size_t length(json *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static const char *string(json *object, const char *name)
{
    json *value = member(object, name);
    return value == NULL ? NULL : json_object_get_string(value);
}

static _Noreturn void fail(const char *what, const char *of)
{
    fprintf(stderr, "make_reference: %s: %s\n", of, what);
    exit(EXIT_FAILURE);
}

/* "#/components/…" → what it points at; anything else is itself */
static json *resolve(json *value)
{
    const char *reference = string(value, "$ref");
    if (reference == NULL)
        return value;
    char *path = strdup(reference), *save = NULL;
    json *at = document;
    strtok_r(path, "/", &save);
    for (char *name; at != NULL && (name = strtok_r(NULL, "/", &save)) != NULL;)
        at = member(at, name);
    free(path);
    if (at == NULL)
        fail("leads nowhere", reference);
    return at;
}

/* "#/components/responses/NotFound" → "NotFound" */
static const char *component(json *value)
{
    const char *reference = string(value, "$ref");
    return reference == NULL ? NULL : strrchr(reference, '/') + 1;
}

struct operation {
    const char *method, *path, *id;
    json *item, *row;
};

/* the operation that this one is another path of, by its id: syncPostsAlias → syncPosts */
static size_t base_length(const char *id)
{
    static const char suffix[] = "Alias";
    size_t n = strlen(id), tail = sizeof(suffix) - 1;
    return n > tail && strcmp(id + n - tail, suffix) == 0 ? n - tail : n;
}

static bool is_alias(const struct operation *o)
{
    return o->id[base_length(o->id)] != '\0';
}

typedef void operation_fn(const struct operation *o, const void *of);

static void each_operation(operation_fn *call, const void *of)
{
    json_object_object_foreach(member(document, "paths"), path, item)
    {
        json_object_object_foreach(item, method, row)
        {
            struct operation o = {method, path, string(row, "operationId"), item, row};
            if (strcmp(method, "parameters") == 0)
                continue;
            if (o.id == NULL)
                fail("an operation has no operationId", path);
            call(&o, of);
        }
    }
}

static bool has_tag(const struct operation *o, const char *tag)
{
    return strcmp(json_object_get_string(element(member(o->row, "tags"), 0)), tag) == 0;
}

/* ---- text ---- */

static void put_char(char c)
{
    const char *entity = c == '&'   ? "&amp;"
                         : c == '<' ? "&lt;"
                         : c == '>' ? "&gt;"
                         : c == '"' ? "&quot;"
                                    : NULL;
    if (entity == NULL)
        putchar(c);
    else
        fputs(entity, stdout);
}

static void put(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        put_char(*text);
}

static void code(const char *text)
{
    fputs("<code>", stdout);
    put(text);
    fputs("</code>", stdout);
}

/* `code` and the rest; to the end or to an empty line, where the next paragraph begins */
static const char *paragraph(const char *text)
{
    bool in_code = false;
    for (; *text != '\0' && strncmp(text, "\n\n", 2) != 0; text++)
        if (*text == '`')
            fputs((in_code = !in_code) ? "<code>" : "</code>", stdout);
        else
            put_char(*text);
    return *text == '\0' ? text : text + 2;
}

static void inline_prose(const char *text)
{
    if (text != NULL)
        paragraph(text);
}

static void prose(const char *text)
{
    while (text != NULL && *text != '\0') {
        fputs("<p>", stdout);
        text = paragraph(text);
        puts("</p>");
    }
}

static void method_badge(const char *method)
{
    printf("<span class=\"method %s\">", method);
    for (; *method != '\0'; method++)
        putchar(toupper((unsigned char)*method));
    fputs("</span>", stdout);
}

/* ---- examples ---- */

static const char *token_class(const char *at, size_t n)
{
    if (*at != '"')
        return strchr("tfn", *at) != NULL ? "literal" : "number";
    return at[n] == ':' ? "key" : "string";
}

static size_t token_length(const char *at)
{
    const char *p = at + 1;
    if (*at != '"')
        return strcspn(at, ",\n ]}");
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    return (size_t)(p + 1 - at);
}

static void put_json(json *value)
{
    const char *p = json_object_to_json_string_ext(
        value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
    while (*p != '\0') {
        if (strchr("{}[],: \n", *p) != NULL) {
            put_char(*p++);
            continue;
        }
        size_t n = token_length(p);
        printf("<span class=\"%s\">", token_class(p, n));
        for (const char *end = p + n; p < end; p++)
            put_char(*p);
        fputs("</span>", stdout);
    }
}

static void put_example(json *value)
{
    if (json_object_is_type(value, json_type_string))
        put(json_object_get_string(value));
    else
        put_json(value);
}

static void sample_begin(const char *title, const char *detail)
{
    printf("<figure class=\"sample\">\n<figcaption>%s", title);
    if (detail != NULL) {
        fputs(" <span>", stdout);
        put(detail);
        fputs("</span>", stdout);
    }
    printf("</figcaption>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"%s\"><code>", title);
}

static void sample_end(void)
{
    puts("</code></pre>\n</figure>");
}

/* the JSON media type, or the only one; *type: its name */
static json *media(json *holder, const char **type)
{
    json *content = member(resolve(holder), "content"), *first = NULL;
    *type = "application/json";
    if (content == NULL || (first = member(content, *type)) != NULL)
        return first;
    json_object_object_foreach(content, name, value)
    {
        *type = name;
        first = value;
    }
    return first;
}

/* ---- schemas ---- */

static json *variants(json *schema)
{
    static const char *const words[] = {"oneOf", "anyOf", "allOf"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (member(schema, words[i]) != NULL)
            return member(schema, words[i]);
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
    json *schema = resolve(given), *type = member(schema, "type"),
         *all = type == NULL ? variants(schema) : type;
    if (json_object_is_type(type, json_type_string)) {
        put(json_object_get_string(type));
        if (string(schema, "format") != NULL)
            printf(" (%s)", string(schema, "format"));
    } else if (all == NULL) {
        put_type_of(member(schema, "const") != NULL ? member(schema, "const")
                                                    : element(member(schema, "enum"), 0));
    } else {
        for (size_t i = 0; i < length(all); i++) {
            json *one = element(all, i);
            fputs(i == 0 ? "" : " or ", stdout);
            if (type == NULL)
                put_type(one);
            else
                put(json_object_get_string(one));
        }
    }
    if (member(schema, "items") != NULL) {
        fputs(" of ", stdout);
        put_type(member(schema, "items"));
    }
}

static void put_values(json *schema)
{
    json *values = member(schema, "enum");
    for (size_t i = 0; i < length(values); i++) {
        fputs(i == 0 ? " <span class=\"rule\">One of " : ", ", stdout);
        json *one = element(values, i);
        code(one == NULL ? "null" : json_object_get_string(one));
    }
    fputs(values == NULL ? "" : ".</span>", stdout);
}

static void put_rule(const char *before, json *value, const char *after)
{
    if (value == NULL)
        return;
    printf(" <span class=\"rule\">%s", before);
    code(json_object_get_string(value));
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
        code(json_object_get_string(least));
    fputs(least != NULL && most != NULL ? " to " : "", stdout);
    if (most != NULL)
        code(json_object_get_string(most));
    fputs(".</span>", stdout);
}

static void put_rules(json *schema)
{
    put_values(schema);
    put_rule("Always ", member(schema, "const"), "");
    put_rule("Default ", member(schema, "default"), "");
    put_range("Range: ", member(schema, "minimum"), member(schema, "maximum"));
    put_range("Length: ", member(schema, "minLength"), member(schema, "maxLength"));
    put_rule("At most ", member(schema, "maxItems"), " items");
    put_rule("Matches ", member(schema, "pattern"), "");
}

/* data[].url, which may be broken behind each step */
static void put_path(const char *name)
{
    fputs("<code>", stdout);
    for (; *name != '\0'; name++) {
        put_char(*name);
        if (*name == '.')
            fputs("<wbr>", stdout);
    }
    fputs("</code>", stdout);
}

static void field_row(const char *name, json *given, const char *where, bool required,
                      const char *description)
{
    json *schema = resolve(given);
    fputs("<tr><th scope=\"row\">", stdout);
    put_path(name);
    fputs("<span class=\"type\">", stdout);
    put_type(schema);
    printf("%s%s</span>%s</th><td>", where == NULL ? "" : ", ", where == NULL ? "" : where,
           required ? "<span class=\"required\">required</span>" : "");
    inline_prose(description);
    put_rules(schema);
    puts("</td></tr>");
}

static bool requires(json *schema, const char *name)
{
    json *names = member(schema, "required");
    for (size_t i = 0; i < length(names); i++)
        if (strcmp(json_object_get_string(element(names, i)), name) == 0)
            return true;
    return false;
}

static void field_rows(json *given, const char *prefix, bool of_body, unsigned depth);

static void below(json *schema, const char *path, const char *step, bool of_body, unsigned depth)
{
    char *deeper = NULL;
    if (schema == NULL || depth == DEPTH_MAX || asprintf(&deeper, "%s%s", path, step) < 0)
        return;
    field_rows(schema, deeper, of_body, depth + 1);
    free(deeper);
}

static void one_field(json *schema, const char *name, json *given, const char *prefix, bool of_body,
                      unsigned depth)
{
    char *path = NULL;
    const char *own = string(given, "description");
    if (asprintf(&path, "%s%s", prefix, name) < 0)
        return;
    field_row(path, given, NULL, of_body && requires(schema, name),
              own != NULL ? own : string(resolve(given), "description"));
    below(given, path, ".", of_body, depth);
    free(path);
}

/* the members of an object, those of an array's items, and so on; ${prefix} ends with "." where it
 * is not empty */
static void field_rows(json *given, const char *prefix, bool of_body, unsigned depth)
{
    json *schema = resolve(given), *properties = member(schema, "properties"),
         *all = variants(schema);
    if (properties != NULL) {
        json_object_object_foreach(properties, name, property)
        {
            one_field(schema, name, property, prefix, of_body, depth);
        }
    }
    char *items = strndup(prefix, strlen(prefix) - (*prefix != '\0'));
    below(member(schema, "items"), items, "[].", of_body, depth);
    if (json_object_is_type(member(schema, "additionalProperties"), json_type_object))
        below(member(schema, "additionalProperties"), prefix, "{name}.", of_body, depth);
    free(items);
    for (size_t i = 0; i < length(all); i++)
        field_rows(element(all, i), prefix, of_body, depth);
}

/* whether field_rows would write one */
static bool has_fields(json *given)
{
    json *schema = resolve(given), *properties = member(schema, "properties");
    return properties != NULL ? json_object_object_length(properties) > 0
                              : variants(schema) != NULL || member(schema, "items") != NULL;
}

static void table_begin(const char *caption)
{
    printf("<table>\n<caption>%s</caption>\n<tbody>\n", caption);
}

static void table_end(void)
{
    puts("</tbody>\n</table>");
}

/* ---- one operation ---- */

static const struct credential {
    const char *scheme, *name, *variable;
} credentials[] = {
    {"apiKey", "API key", "KEY"},
    {"workspaceToken", "Workspace token", "TOKEN"},
    {"visitor", "Visitor&#39;s token", "JWT"},
};

static const struct credential *credential_of(const struct operation *o)
{
    json *first = element(member(o->row, "security"), 0);
    for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++)
        if (member(first, credentials[i].scheme) != NULL)
            return &credentials[i];
    return NULL;
}

static void put_credential(const struct operation *o)
{
    const struct credential *c = credential_of(o);
    if (c == NULL) {
        fputs("none", stdout);
        return;
    }
    json *scopes = member(element(member(o->row, "security"), 0), c->scheme);
    printf("<a href=\"#credential-%s\">%s</a>", c->scheme, c->name);
    for (size_t i = 0; i < length(scopes); i++) {
        fputs(i == 0 ? " with " : ", ", stdout);
        code(json_object_get_string(element(scopes, i)));
    }
}

static void put_facts(const struct operation *o)
{
    const char *limiter = string(o->row, "x-limiter");
    fputs("<dl class=\"facts\"><div><dt>Credential</dt><dd>", stdout);
    put_credential(o);
    fputs("</dd></div><div><dt>Limiter</dt><dd>", stdout);
    if (limiter == NULL)
        fputs("none", stdout);
    else
        code(limiter);
    puts("</dd></div></dl>");
}

/* Parameters stand with the path and with the operation. */
typedef void parameter_fn(json *parameter, void *of);

static void each_parameter(const struct operation *o, parameter_fn *call, void *of)
{
    json *lists[] = {member(o->item, "parameters"), member(o->row, "parameters")};
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (size_t i = 0; i < length(lists[l]); i++)
            call(resolve(element(lists[l], i)), of);
}

static void parameter_row(json *p, void *of)
{
    (void)of;
    field_row(string(p, "name"), member(p, "schema"), string(p, "in"),
              json_object_get_boolean(member(p, "required")), string(p, "description"));
}

static void put_body(const struct operation *o)
{
    const char *type;
    json *body = resolve(member(o->row, "requestBody")), *found = media(body, &type);
    if (found == NULL)
        return;
    if (!has_fields(member(found, "schema"))) {
        puts("<h4>Body</h4>\n<p>An empty object, or none.</p>");
        return;
    }
    table_begin("Body");
    field_rows(member(found, "schema"), "", true, 0);
    table_end();
    prose(string(body, "description"));
    if (member(member(body, "content"), "application/x-www-form-urlencoded") != NULL)
        puts("<p>As JSON or as a form (<code>application/x-www-form-urlencoded</code>).</p>");
}

static void put_answer(const char *status, json *response)
{
    const char *type;
    json *schema = member(media(response, &type), "schema");
    printf("<p class=\"answer\"><span class=\"status\">%s</span> ", status);
    inline_prose(string(response, "description"));
    puts("</p>");
    if (!has_fields(schema))
        return;
    printf("<details>\n<summary>Fields of the answer</summary>\n");
    table_begin("Fields");
    field_rows(schema, "", false, 0);
    table_end();
    puts("</details>");
}

/* the codes that an error of this status may have */
static json *codes_of(json *response)
{
    const char *type;
    json *both = member(member(media(response, &type), "schema"), "allOf");
    json *error = member(member(element(both, 1), "properties"), "error");
    return member(member(member(error, "properties"), "code"), "enum");
}

static void put_codes(json *response)
{
    json *codes = codes_of(response);
    for (size_t i = 0; i < length(codes); i++) {
        fputs(i == 0 ? " " : ", ", stdout);
        code(json_object_get_string(element(codes, i)));
    }
}

static void put_answers(json *responses)
{
    puts("<h4>Answers</h4>");
    json_object_object_foreach(responses, status, response)
    {
        if (atoi(status) < 400)
            put_answer(status, resolve(response));
    }
}

static void put_errors(json *responses)
{
    puts("<h4>Errors</h4>\n<ul class=\"errors\">");
    json_object_object_foreach(responses, status, response)
    {
        if (atoi(status) < 400)
            continue;
        if (component(response) == NULL)
            fail("an error is no component", status);
        printf("<li><a href=\"#error-%s\" class=\"status\">%s</a>", component(response), status);
        put_codes(resolve(response));
        puts("</li>");
    }
    puts("</ul>");
}

/* ---- the request as a command ---- */

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

static void look(json *p, void *of)
{
    struct search *s = of;
    if (strcmp(string(p, "in"), "path") == 0 && strlen(string(p, "name")) == s->n &&
        strncmp(string(p, "name"), s->name, s->n) == 0)
        s->found = p;
}

static void put_argument(const struct operation *o, const char *name, size_t n)
{
    struct search s = {name, n, NULL};
    each_parameter(o, look, &s);
    if (string(s.found, "example") == NULL)
        fail("an argument of the path has no example", o->id);
    put_escaped(string(s.found, "example"));
}

static void put_query(json *p, void *of)
{
    bool *asked = of; /* there is a query already */
    if (strcmp(string(p, "in"), "query") != 0 || string(p, "example") == NULL)
        return;
    printf("%s%s=", *asked ? "&amp;" : "?", string(p, "name"));
    put_escaped(string(p, "example"));
    *asked = true;
}

static void put_address(const struct operation *o)
{
    bool asked = false;
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
    each_parameter(o, put_query, &asked);
    putchar('"');
}

static void put_data(const struct operation *o)
{
    const char *type;
    json *found = media(member(o->row, "requestBody"), &type), *example = member(found, "example");
    if (found == NULL)
        return;
    if (example == NULL)
        fail("its body has no example", o->id);
    fputs(" \\\n  -H \"Content-Type: application/json\" \\\n  -d '", stdout);
    if (strchr(json_object_to_json_string(example), '\'') != NULL)
        fail("its example has an apostrophe, which ends the argument of -d", o->id);
    put_example(example);
    putchar('\'');
}

static void put_command(const struct operation *o)
{
    const struct credential *c = credential_of(o);
    bool is_post = strcmp(o->method, "post") == 0;
    sample_begin("Request", NULL);
    fputs("curl ", stdout);
    if (strcmp(o->method, "get") != 0 && !is_post)
        printf("-X %s ", strcmp(o->method, "put") == 0 ? "PUT" : "DELETE");
    put_address(o);
    if (c != NULL)
        printf(" \\\n  -H \"Authorization: Bearer $%s\"", c->variable);
    if (strncmp(o->path, "/api/v1/widget/", 15) == 0)
        fputs(" \\\n  -H \"Origin: https://www.example.com\"", stdout);
    put_data(o);
    sample_end();
}

static void put_responses(const struct operation *o)
{
    json_object_object_foreach(member(o->row, "responses"), status, response)
    {
        char detail[80];
        const char *type;
        json *found = media(response, &type);
        if (atoi(status) >= 300)
            continue;
        if (member(found, "example") == NULL)
            fail("an answer has no example", o->id);
        snprintf(detail, sizeof(detail), "%s, %s", status, type);
        sample_begin("Response", detail);
        put_example(member(found, "example"));
        sample_end();
    }
}

/* ---- parts of the page ---- */

static void alias_line(const struct operation *o, const void *of)
{
    const struct operation *base = of;
    if (!is_alias(o) || strlen(base->id) != base_length(o->id) ||
        strncmp(o->id, base->id, base_length(o->id)) != 0)
        return;
    printf("<p class=\"endpoint also\" id=\"%s\">also ", o->id);
    method_badge(o->method);
    code(o->path);
    puts("</p>");
}

static void put_operation(const struct operation *o, const void *tag)
{
    if (!has_tag(o, tag) || is_alias(o))
        return;
    printf("<article class=\"operation\" id=\"%s\" aria-labelledby=\"%s-title\">\n<div "
           "class=\"about\">\n<h3 id=\"%s-title\"><a href=\"#%s\">",
           o->id, o->id, o->id, o->id);
    put(string(o->row, "summary"));
    fputs("</a></h3>\n<p class=\"endpoint\">", stdout);
    method_badge(o->method);
    code(o->path);
    puts("</p>");
    each_operation(alias_line, o);
    prose(string(o->row, "description"));
    put_facts(o);
    table_begin("Parameters");
    each_parameter(o, parameter_row, NULL);
    table_end();
    put_body(o);
    put_answers(member(o->row, "responses"));
    put_errors(member(o->row, "responses"));
    puts("</div>\n<div class=\"samples\">");
    put_command(o);
    put_responses(o);
    puts("</div>\n</article>");
}

static void put_link(const struct operation *o, const void *tag)
{
    if (!has_tag(o, tag) || is_alias(o))
        return;
    printf("<li><a href=\"#%s\">", o->id);
    put(string(o->row, "summary"));
    putchar(' ');
    method_badge(o->method);
    puts("</a></li>");
}

static void put_endpoint(const struct operation *o, const void *tag)
{
    if (!has_tag(o, tag) || is_alias(o))
        return;
    printf("<li><a href=\"#%s\">", o->id);
    method_badge(o->method);
    code(o->path);
    puts("</a></li>");
}

static void put_title(const char *tag)
{
    putchar(toupper((unsigned char)*tag));
    put(tag + 1);
}

typedef void tag_fn(const char *name, json *tag);

static void each_tag(tag_fn *call)
{
    json *tags = member(document, "tags");
    for (size_t i = 0; i < length(tags); i++)
        call(string(element(tags, i), "name"), element(tags, i));
}

static void tag_links(const char *name, json *tag)
{
    (void)tag;
    printf("<li><a class=\"tag\" href=\"#tag-%s\">", name);
    put_title(name);
    puts("</a>\n<ul>");
    each_operation(put_link, name);
    puts("</ul></li>");
}

static void tag_section(const char *name, json *tag)
{
    printf("<section class=\"tag\" aria-labelledby=\"tag-%s\">\n<div class=\"lead\">\n<div "
           "class=\"about\">\n<h2 id=\"tag-%s\">",
           name, name);
    put_title(name);
    puts("</h2>");
    prose(string(tag, "description"));
    puts("</div>\n<div class=\"samples\">\n<ul class=\"endpoints\">");
    each_operation(put_endpoint, name);
    puts("</ul>\n</div>\n</div>");
    each_operation(put_operation, name);
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
    prose(string(member(document, "info"), "description"));
}

static void put_credentials(void)
{
    json *schemes = member(member(document, "components"), "securitySchemes");
    for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++) {
        json *scheme = member(schemes, credentials[i].scheme);
        printf("<dt id=\"credential-%s\">%s <code>", credentials[i].scheme, credentials[i].name);
        put(string(scheme, "bearerFormat"));
        fputs("</code></dt>\n<dd>", stdout);
        inline_prose(string(scheme, "description"));
        puts("</dd>");
    }
}

/* the status that a component's answers have, by the first operation that has it */
static const char *status_in(json *responses, const char *name)
{
    json_object_object_foreach(responses, status, response)
    {
        if (component(response) != NULL && strcmp(component(response), name) == 0)
            return status;
    }
    return NULL;
}

static const char *status_of(const char *name)
{
    const char *status = NULL;
    json_object_object_foreach(member(document, "paths"), path, item)
    {
        (void)path;
        json_object_object_foreach(item, method, row)
        {
            (void)method;
            if (status == NULL && member(row, "responses") != NULL)
                status = status_in(member(row, "responses"), name);
        }
    }
    return status;
}

static void errors(void)
{
    json_object_object_foreach(member(member(document, "components"), "responses"), name, response)
    {
        if (codes_of(response) == NULL)
            continue;
        printf("<tr id=\"error-%s\"><th scope=\"row\"><span class=\"status\">%s</span></th><td>",
               name, status_of(name));
        put_codes(response);
        fputs("<br>", stdout);
        inline_prose(string(response, "description"));
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
    document = argc == 3 ? json_object_from_file(argv[2]) : NULL;
    if (document == NULL)
        fail("usage: make_reference PART FILE; the file must be JSON", name);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(parts[i].name, name) == 0)
            parts[i].write();
    json_object_put(document);
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}
