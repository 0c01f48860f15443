/*
 * The OpenAPI document against the program, in both directions: routes, and the fields, scopes and
 * errors of each.
 */
#include "config.h"
#include "t/kit/api_doubles.h"
#include "t/kit/suite.h"

#include "core/api/openapi_internal.h"

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>

typedef struct json_object json;

static json *doc;

static void begin(void)
{
    struct json_tokener *tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    doc = json_tokener_parse_ex(tokener, (const char *)openapi_text, (int)openapi_size);
    ck_assert_msg(doc != NULL, "openapi.json: %s at byte %zu",
                  json_tokener_error_desc(json_tokener_get_error(tokener)),
                  json_tokener_get_parse_end(tokener));
    json_tokener_free(tokener);
    played_begin();
}

static void end(void)
{
    played_end();
    json_object_put(doc);
}

static json *member(json *object, const char *name)
{
    json *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return value;
}

static const char *text(json *object, const char *name)
{
    json *value = member(object, name);
    return value == NULL ? NULL : json_object_get_string(value);
}

/* "#/components/…" → its target */
static json *resolve(json *value)
{
    const char *ref = text(value, "$ref");
    if (ref == NULL)
        return value;
    char path[200];
    json *at = doc;
    ck_assert_int_eq(strncmp(ref, "#/", 2), 0);
    snprintf(path, sizeof(path), "%s", ref + 2);
    for (char *save, *name = strtok_r(path, "/", &save); name != NULL && at != NULL;
         name = strtok_r(NULL, "/", &save))
        at = member(at, name);
    ck_assert_msg(at != NULL, "%s does not resolve", ref);
    return at;
}

static json *operation(const struct route *route)
{
    char method[16] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && route->method[i] != '\0'; ++i)
        method[i] = (char)tolower((unsigned char)route->method[i]);
    return member(member(member(doc, "paths"), route->path), method);
}

static const struct route *route_of(const char *path, const char *method)
{
    for (size_t i = 0; i < routes_count; ++i)
        if (strcmp(routes[i].path, path) == 0 && strcasecmp(routes[i].method, method) == 0)
            return &routes[i];
    return NULL;
}

static bool is_method(const char *name)
{
    return strcmp(name, "parameters") != 0;
}

START_TEST(every_route_is_described)
{
    ck_assert_msg(operation(&routes[_i]) != NULL, "%s %s", routes[_i].method, routes[_i].path);
}
END_TEST

START_TEST(every_described_operation_is_a_route)
{
    size_t operations = 0;
    json_object_object_foreach(member(doc, "paths"), path, item)
    {
        json_object_object_foreach(item, method, ignored)
        {
            (void)ignored;
            if (!is_method(method))
                continue;
            ck_assert_msg(route_of(path, method) != NULL, "%s %s", method, path);
            ++operations;
        }
    }
    ck_assert_uint_eq(operations, routes_count);
}
END_TEST

static void resolve_all(json *value)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); ++i)
            resolve_all(json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_object)) {
        resolve(value);
        json_object_object_foreach(value, name, inner)
        {
            (void)name;
            resolve_all(inner);
        }
    }
}

START_TEST(every_reference_resolves)
{
    resolve_all(doc);
}
END_TEST

/* The introduction names the project and report answers without `data`. */
START_TEST(project_and_report_answers_have_data_except_delete)
{
    const struct route *route = &routes[_i];
    if (strncmp(route->path, "/api/v1/reports", 15) != 0 &&
        strncmp(route->path, "/api/v1/projects", 16) != 0)
        return;
    bool deletes = strcmp(route->method, "DELETE") == 0;
    json *answer = member(member(operation(route), "responses"), "200");
    json *schema =
        answer == NULL
            ? NULL
            : resolve(
                  member(member(member(resolve(answer), "content"), "application/json"), "schema"));
    if (answer != NULL)
        ck_assert_msg((member(member(schema, "properties"), "data") == NULL) == deletes, "%s %s",
                      route->method, route->path);
    const char *text_has = strstr(text(member(doc, "info"), "description"),
                                  "except that of DELETE, which has no `data`");
    ck_assert(text_has != NULL);
}
END_TEST

static bool mentions(json *value, const char *ref)
{
    const char *own = text(value, "$ref");
    bool found = own != NULL && strcmp(own, ref) == 0;
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); ++i)
            found |= mentions(json_object_array_get_idx(value, i), ref);
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, name, inner)
        {
            (void)name;
            found |= mentions(inner, ref);
        }
    }
    return found;
}

START_TEST(every_component_is_used)
{
    json_object_object_foreach(member(doc, "components"), kind, items)
    {
        if (strcmp(kind, "securitySchemes") == 0)
            continue;
        json_object_object_foreach(items, name, ignored)
        {
            char ref[200];
            (void)ignored;
            snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name);
            ck_assert_msg(mentions(doc, ref), "nothing uses %s", ref);
        }
    }
}
END_TEST

/* ---- fields ---- */

/* The parameter of that name and location, of the operation or its path; NULL if there is none. */
static json *parameter(const struct route *route, const char *in, const char *name)
{
    json *lists[] = {member(operation(route), "parameters"),
                     member(member(member(doc, "paths"), route->path), "parameters")};
    for (int l = 0; l < 2; ++l) {
        for (size_t i = 0; lists[l] != NULL && i < json_object_array_length(lists[l]); ++i) {
            json *p = resolve(json_object_array_get_idx(lists[l], i));
            if (strcmp(text(p, "in"), in) == 0 && strcmp(text(p, "name"), name) == 0)
                return p;
        }
    }
    return NULL;
}

static json *form_schema(const struct route *route)
{
    json *content = member(resolve(member(operation(route), "requestBody")), "content");
    json *schema = resolve(member(member(content, "application/json"), "schema"));
    json *form = member(content, "application/x-www-form-urlencoded");
    ck_assert(content == NULL || json_object_object_length(content) == 1 + (form != NULL));
    ck_assert(form == NULL || resolve(member(form, "schema")) == schema);
    return schema;
}

static void text_agrees(const struct field *f, json *schema)
{
    json *least = member(schema, "minLength"), *most = member(schema, "maxLength");
    ck_assert_str_eq(text(schema, "type"), "string");
    ck_assert_uint_eq(least == NULL ? 0 : json_object_get_uint64(least), f->min);
    ck_assert_uint_eq(json_object_get_uint64(most), f->max == 0 ? 2048 : f->max);
    ck_assert_ptr_null(member(schema, "enum"));
}

static void choice_agrees(const struct field *f, json *schema)
{
    json *choices = member(schema, "enum");
    size_t i = 0;
    ck_assert_ptr_nonnull(choices);
    for (; f->choices[i] != NULL; ++i)
        ck_assert_pstr_eq(json_object_get_string(json_object_array_get_idx(choices, i)),
                          f->choices[i]);
    ck_assert_uint_eq(json_object_array_length(choices), i);
}

static void number_agrees(const struct field *f, json *schema)
{
    ck_assert_str_eq(text(schema, "type"), "integer");
    ck_assert_uint_eq(json_object_get_uint64(member(schema, "minimum")), f->min);
    ck_assert_uint_eq(json_object_get_uint64(member(schema, "maximum")), f->max);
}

static void bool_agrees(const struct field *f, json *schema)
{
    ck_assert_str_eq(text(schema, "type"), "boolean");
    ck_assert_ptr_null(f->initial);
}

/* any value, but not a text with a length */
static void json_agrees(const struct field *f, json *schema)
{
    ck_assert_ptr_null(f->initial);
    ck_assert_ptr_null(member(schema, "maxLength"));
}

static void field_agrees(const struct field *f, json *schema)
{
    static void (*const agrees[])(const struct field *, json *) = {
        [FIELD_TEXT] = text_agrees,  [FIELD_CHOICE] = choice_agrees, [FIELD_NUMBER] = number_agrees,
        [FIELD_CHARS] = text_agrees, [FIELD_JSON] = json_agrees,     [FIELD_TREE] = json_agrees,
        [FIELD_BOOL] = bool_agrees};
    ck_assert_msg(schema != NULL, "%s is not described", f->name);
    agrees[f->type](f, schema);
    ck_assert_pstr_eq(text(schema, "default"), f->initial);
}

START_TEST(every_field_is_described_with_its_choices_and_default)
{
    const struct route *route = &routes[_i];
    json *form = form_schema(route);
    ck_assert_int_eq(form != NULL, route->body != BODY_NONE);
    for (const struct field *f = route->fields; f != NULL && f->name != NULL; ++f)
        field_agrees(f, form != NULL ? member(member(form, "properties"), f->name)
                                     : member(parameter(route, "query", f->name), "schema"));
}
END_TEST

static bool has_field(const struct route *route, const char *name)
{
    for (const struct field *f = route->fields; f != NULL && f->name != NULL; ++f)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

static bool has_argument(const struct route *route, const char *name)
{
    char braces[64];
    snprintf(braces, sizeof(braces), "/{%s}", name);
    return strstr(route->path, braces) != NULL;
}

START_TEST(every_described_parameter_is_accepted)
{
    const struct route *route = &routes[_i];
    json *parameters = member(operation(route), "parameters");
    for (size_t i = 0; parameters != NULL && i < json_object_array_length(parameters); ++i) {
        json *p = resolve(json_object_array_get_idx(parameters, i));
        if (strcmp(text(p, "in"), "query") == 0)
            ck_assert_msg(route->body == BODY_NONE && has_field(route, text(p, "name")), "%s",
                          text(p, "name"));
        if (strcmp(text(p, "in"), "path") == 0)
            ck_assert_msg(has_argument(route, text(p, "name")), "%s", text(p, "name"));
    }
    json *form = form_schema(route);
    if (form == NULL)
        return;
    json_object_object_foreach(member(form, "properties"), name, ignored)
    {
        (void)ignored;
        ck_assert_msg(has_field(route, name), "%s", name);
    }
}
END_TEST

START_TEST(every_path_argument_is_described)
{
    const struct route *route = &routes[_i];
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        json *p = parameter(route, "path", name);
        ck_assert_msg(p != NULL, "%s", name);
        ck_assert(json_object_get_boolean(member(p, "required")));
    }
}
END_TEST

/* ---- credentials, headers, answers ---- */

static const struct {
    uint32_t scope;
    const char *name;
} scopes[] = {
    {SCOPE_REPORTS_READ, "reports:read"},
    {SCOPE_REPORTS_WRITE, "reports:write"},
    {SCOPE_PROJECTS_READ, "projects:read"},
    {SCOPE_PROJECTS_WRITE, "projects:write"},
    {SCOPE_CONVERSATIONS_READ, "conversations:read"},
    {SCOPE_CONVERSATIONS_WRITE, "conversations:write"},
    {SCOPE_WP_SYNC, "wp:sync"},
};

START_TEST(credential_and_scope_are_described)
{
    const struct route *route = &routes[_i];
    json *security = member(operation(route), "security");
    ck_assert_ptr_nonnull(security);
    if (route->auth == AUTH_NONE) {
        ck_assert_uint_eq(json_object_array_length(security), 0);
        return;
    }
    if (route->auth == AUTH_JWT) {
        ck_assert_ptr_nonnull(member(json_object_array_get_idx(security, 0), "visitor"));
        ck_assert_uint_eq(route->scope, 0);
        return;
    }
    uint32_t described = 0;
    json *names = member(json_object_array_get_idx(security, 0),
                         route->auth == AUTH_WP_TOKEN ? "workspaceToken" : "apiKey");
    for (size_t i = 0; i < json_object_array_length(names); ++i)
        for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); ++s)
            if (strcmp(json_object_get_string(json_object_array_get_idx(names, i)),
                       scopes[s].name) == 0)
                described |= scopes[s].scope;
    ck_assert_uint_eq(described, route->scope);
}
END_TEST

START_TEST(conditional_and_idempotent_requests_are_described)
{
    const struct route *route = &routes[_i];
    /* a visitor's records have no version to match */
    bool changes_a_record = route->auth == AUTH_API_KEY && (strcmp(route->method, "PUT") == 0 ||
                                                            strcmp(route->method, "DELETE") == 0);
    bool tagged =
        strcmp(route->method, "GET") == 0 && ((route->flags & (ROUTE_INTERNAL | ROUTE_TEXT)) == 0 ||
                                              (route->flags & (ROUTE_PUBLIC | ROUTE_PAGE)) != 0);
    ck_assert_int_eq(parameter(route, "header", "Idempotency-Key") != NULL,
                     (route->flags & ROUTE_IDEMPOTENT) != 0);
    ck_assert_int_eq(parameter(route, "header", "If-Match") != NULL, changes_a_record);
    ck_assert_int_eq(parameter(route, "header", "If-None-Match") != NULL, tagged);
    ck_assert_int_eq(member(member(operation(route), "responses"), "304") != NULL, tagged);
    ck_assert_int_eq(member(member(operation(route), "responses"), "412") != NULL,
                     changes_a_record);
}
END_TEST

START_TEST(every_possible_error_is_described)
{
    const struct route *route = &routes[_i];
    json *responses = member(operation(route), "responses");
    /* an origin can be refused, an agent unpublished */
    bool widget = strncmp(route->path, "/api/v1/widget/", 15) == 0;
    /* a page of another site may send it */
    bool form = (route->flags & ROUTE_PAGE) != 0 && route->body == BODY_FIELDS;
    /* another workspace's */
    bool of_agent = route->auth == AUTH_WP_TOKEN &&
                    (has_field(route, "agent_id") || has_field(route, "conversation_id"));
    const struct {
        const char *status;
        bool possible;
    } cases[] = {
        {"400", true},
        {"401", route->auth != AUTH_NONE},
        {"403", route->scope != 0 || widget || form},
        /* a created record can be deleted before it is read back */
        {"404", widget || of_agent || strchr(route->path, '{') != NULL ||
                    (route->flags & ROUTE_IDEMPOTENT) != 0},
        {"406", (route->flags & ROUTE_TEXT) == 0},
        {"413", route->body != BODY_NONE},
        {"415", route->body != BODY_NONE},
        {"422", route->fields != NULL || route->auth != AUTH_NONE}, /* handling=strict */
        {"429", route->limiter != LIMITER_NONE},
        {"500", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        ck_assert_msg((member(responses, cases[i].status) != NULL) == cases[i].possible,
                      "%s %s: %s", route->method, route->path, cases[i].status);
}
END_TEST

static const char *text_type(const struct route *route)
{
    if ((route->flags & ROUTE_PUBLIC) != 0)
        return "text/javascript";
    if ((route->flags & ROUTE_PAGE) != 0)
        return strstr(route->path, ".css") != NULL   ? "text/css"
               : strstr(route->path, ".js") != NULL  ? "text/javascript"
               : strstr(route->path, ".svg") != NULL ? "image/svg+xml"
                                                     : "text/html";
    return route->auth == AUTH_JWT ? "text/event-stream" : "text/plain";
}

/*
 * Every answer but 303 and 304 has a body. An error's body has the documented shape and names the
 * codes of its status.
 */
START_TEST(answers_have_the_documented_shape)
{
    json_object_object_foreach(member(operation(&routes[_i]), "responses"), status, response)
    {
        json *found = resolve(response);
        bool is_text = (routes[_i].flags & ROUTE_TEXT) != 0 && atoi(status) == 200;
        json *schema = member(
            member(member(found, "content"), is_text ? text_type(&routes[_i]) : "application/json"),
            "schema");
        ck_assert_ptr_nonnull(member(member(found, "headers"), "X-Request-Id"));
        ck_assert_int_eq(schema == NULL, atoi(status) == 303 || atoi(status) == 304);
        if (atoi(status) < 400)
            continue;
        json *both = member(schema, "allOf");
        const char *base = text(json_object_array_get_idx(both, 0), "$ref");
        ck_assert_str_eq(base, strcmp(status, "422") == 0 ? "#/components/schemas/ValidationError"
                                                          : "#/components/schemas/Error");
        json *codes = member(
            member(member(member(member(json_object_array_get_idx(both, 1), "properties"), "error"),
                          "properties"),
                   "code"),
            "enum");
        size_t of_status = 0;
        for (int e = 0; e < ERRS; ++e)
            of_status += err_row((enum err)e)->status == atoi(status);
        ck_assert_uint_eq(json_object_array_length(codes), of_status);
        for (size_t i = 0; i < of_status; ++i) {
            bool known = false;
            for (int e = 0; e < ERRS; ++e)
                known |= err_row((enum err)e)->status == atoi(status) &&
                         strcmp(err_row((enum err)e)->code,
                                json_object_get_string(json_object_array_get_idx(codes, i))) == 0;
            ck_assert_msg(known, "%s: %s", status,
                          json_object_get_string(json_object_array_get_idx(codes, i)));
        }
    }
}
END_TEST

START_TEST(the_limiter_of_a_route_is_named)
{
    static struct limiters limits;
    limiters_defaults(&limits);
    const char *limiter = text(operation(&routes[_i]), "x-limiter");
    ck_assert_uint_lt(routes[_i].limiter, LIMITERS_BUILT_IN);
    ck_assert_pstr_eq(
        limiter, routes[_i].limiter == LIMITER_NONE ? NULL : limits.rows[routes[_i].limiter].name);
}
END_TEST

/*
 * Projects and reports, passwords of reports, the widget's routes and bulk sync are limited
 * surfaces: every row there must name a limiter.
 */
START_TEST(every_route_of_a_limited_surface_has_a_limiter)
{
    static const char *const surfaces[] = {
        "/api/v1/projects", "/api/v1/reports",       "/api/v1/conversations", "/api/v1/leads",
        "/api/v1/events",   "/api/v1/ratings",       "/api/v1/widget/",       "/v1/wp/",
        "/api/v1/wp/",      "/reports/{id}/password"};
    bool limited = false;
    for (size_t i = 0; i < sizeof(surfaces) / sizeof(surfaces[0]); ++i)
        limited |= strncmp(routes[_i].path, surfaces[i], strlen(surfaces[i])) == 0;
    ck_assert_msg(limited == (routes[_i].limiter != LIMITER_NONE), "%s %s", routes[_i].method,
                  routes[_i].path);
}
END_TEST

START_TEST(every_error_code_is_listed)
{
    json *error =
        member(member(member(member(doc, "components"), "schemas"), "Error"), "properties");
    json *codes = member(member(member(member(error, "error"), "properties"), "code"), "enum");
    ck_assert_uint_eq(json_object_array_length(codes), ERRS);
    ck_assert_str_eq(json_object_get_string(json_object_array_get_idx(codes, (size_t)_i)),
                     err_row((enum err)_i)->code);
}
END_TEST

START_TEST(operation_ids_are_unique)
{
    const char *own = text(operation(&routes[_i]), "operationId");
    ck_assert_ptr_nonnull(own);
    for (int i = 0; i < _i; ++i)
        ck_assert_str_ne(text(operation(&routes[i]), "operationId"), own);
}
END_TEST

START_TEST(the_document_is_served_with_its_etag)
{
    char at_hand[64];
    const char *const headers[] = {"if-none-match", at_hand, NULL};
    ck_assert_str_eq(text(doc, "openapi"), "3.1.0");
    played_send("GET", "/api/v1/openapi.json", NULL, "", NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.body.n, openapi_size + 1);
    ck_assert_mem_eq(played.body.p, openapi_text, openapi_size);
    snprintf(at_hand, sizeof(at_hand), "\"%" PRIu64 "-" PACKAGE_VERSION "\"", openapi_version);
    ck_assert_uint_gt(openapi_version, 0);
    played_send("GET", "/api/v1/openapi.json", NULL, "", headers);
    ck_assert_int_eq(played.status, 304);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("openapi");
    TCase *tc = tcase_create("openapi");
    const int n = (int)routes_count;
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, every_route_is_described, 0, n);
    tcase_add_loop_test(tc, project_and_report_answers_have_data_except_delete, 0, n);
    tcase_add_test(tc, every_described_operation_is_a_route);
    tcase_add_test(tc, every_reference_resolves);
    tcase_add_test(tc, every_component_is_used);
    tcase_add_loop_test(tc, every_field_is_described_with_its_choices_and_default, 0, n);
    tcase_add_loop_test(tc, every_described_parameter_is_accepted, 0, n);
    tcase_add_loop_test(tc, every_path_argument_is_described, 0, n);
    tcase_add_loop_test(tc, credential_and_scope_are_described, 0, n);
    tcase_add_loop_test(tc, conditional_and_idempotent_requests_are_described, 0, n);
    tcase_add_loop_test(tc, every_possible_error_is_described, 0, n);
    tcase_add_loop_test(tc, answers_have_the_documented_shape, 0, n);
    tcase_add_loop_test(tc, the_limiter_of_a_route_is_named, 0, n);
    tcase_add_loop_test(tc, every_route_of_a_limited_surface_has_a_limiter, 0, n);
    tcase_add_loop_test(tc, every_error_code_is_listed, 0, ERRS);
    tcase_add_loop_test(tc, operation_ids_are_unique, 0, n);
    tcase_add_test(tc, the_document_is_served_with_its_etag);
    return suite_run(suite);
}
