/*
 * The examples of core/api/openapi.json against a real server. Every operation has an example of
 * its body and of its answer. The body is sent, and the answer has the documented status, schema
 * and shape.
 */
#include "t/kit/schema.h"
#include "t/kit/widget.h"

#include <ctype.h>

typedef struct json_object json;

#define OPERATIONS_MAX 127

static json *document;
static struct operation {
    const char *path, *method, *id;
    json *item, *row;
} operations[OPERATIONS_MAX];
static int operations_count;

static struct origin *origin;
static char *token, *version, *stylesheet, *script;

static void read_document(void)
{
    document = json_object_from_file(SRCDIR "/core/api/openapi.json");
    if (document == NULL)
        abort();
    json_object_object_foreach(member(document, "paths"), path, item)
    {
        json_object_object_foreach(item, method, row)
        {
            if (strcmp(method, "parameters") == 0)
                continue;
            if (operations_count == OPERATIONS_MAX)
                abort();
            operations[operations_count++] = (struct operation){
                path, method, json_object_get_string(member(row, "operationId")), item, row};
        }
    }
}

/* ---- values for the placeholders of the examples ---- */

struct stand_in {
    const char *example;
    const char *real;
};

static char *replaced(const char *from, const struct stand_in *rows, size_t count)
{
    char *out = text("%s", from);
    for (size_t i = 0; i < count; i++)
        for (char *at = out; rows[i].real != NULL && (at = strstr(at, rows[i].example)) != NULL;) {
            size_t before = (size_t)(at - out);
            out = text("%.*s%s%s", (int)before, out, rows[i].real, at + strlen(rows[i].example));
            at = out + before + strlen(rows[i].real);
        }
    return out;
}

#define EXAMPLE_AGENT "01J9Z3NDEKTSV4RRFFQ69G5FAV"
#define EXAMPLE_CONVERSATION "01J9Z4B8Q0CR3PZQ0V6B3M9K7E"
#define EXAMPLE_PAGE "https://www.example.com/pricing"

/*
 * What each operation needs: a visitor with a question, an address, an event, a rating and a
 * coupon, and a finished report.
 */
static struct visitor visitor;
static char *report;

static char *real(const char *from)
{
    const struct stand_in rows[] = {{EXAMPLE_AGENT, agent},
                                    {EXAMPLE_CONVERSATION, visitor.conversation},
                                    {EXAMPLE_PAGE, origin_url(origin, "/good")}};
    return replaced(from, rows, COUNT(rows));
}

/* ---- examples ---- */

static json *media_of(json *holder, const char *type)
{
    return member(member(schema_resolve(document, holder), "content"), type);
}

static const struct operation *operation_of(const char *id)
{
    for (int i = 0; i < operations_count; i++)
        if (strcmp(operations[i].id, id) == 0)
            return &operations[i];
    ck_abort_msg("there is no operation %s", id);
}

static char *body_of(const struct operation *o)
{
    json *body = member(o->row, "requestBody");
    if (body == NULL)
        return NULL;
    json *media = media_of(body, "application/json"), *example = member(media, "example");
    ck_assert_msg(example != NULL, "%s: its body has no example", o->id);
    char *mistake = schema_mistake(document, member(media, "schema"), example);
    ck_assert_msg(mistake == NULL, "%s: its body's example: %s", o->id, mistake);
    return real(json_object_to_json_string_ext(example, JSON_C_TO_STRING_PLAIN |
                                                            JSON_C_TO_STRING_NOSLASHESCAPE));
}

#define FORM "application/x-www-form-urlencoded"

static bool takes_forms(const struct operation *o)
{
    return media_of(member(o->row, "requestBody"), FORM) != NULL;
}

/* a form example, encoded */
static char *form_of(const struct operation *o)
{
    json *example = member(media_of(member(o->row, "requestBody"), FORM), "example");
    char *out = text("%s", "");
    ck_assert_msg(example != NULL, "%s: its form has no example", o->id);
    json_object_object_foreach(example, name, value)
    {
        const char *mark = *out == '\0' ? "" : "&";
        out = text("%s%s%s=%s", out, mark, name, encode(real(json_object_get_string(value))));
    }
    return out;
}

/* ---- setup for each operation ---- */

static void visitor_begin(void)
{
    static const char *const steps[] = {"postMessage", "postLead", "postEvents", "postRating"};
    visitor = visitor_new();
    for (size_t i = 0; i < COUNT(steps); i++) {
        const struct operation *o = operation_of(steps[i]);
        struct response *r = post(&visitor, o->path + strlen("/api/v1/widget/"), body_of(o));
        expect(r, r->status < 300);
    }
    expect_status(post(&visitor, "coupon/apply", "{\"code\":\"SUMMER10\"}"), 200);
}

static void sync_content(void)
{
    static const char *const steps[] = {"syncPosts", "syncProducts", "syncCoupons"};
    for (size_t i = 0; i < COUNT(steps); i++) {
        const struct operation *o = operation_of(steps[i]);
        struct response *r = http(server, .method = "POST", .path = o->path, .key = token,
                                  .headers = {JSON}, .body = body_of(o));
        expect_status(r, 200);
        expect_int(r, "data.failed", 0);
    }
}

static bool is_answered(void *arg)
{
    (void)arg;
    visitor = visitor_new();
    return len_at(post(&visitor, "messages", body_of(operation_of("postMessage"))),
                  "data.citations") > 0;
}

/* the part of ${text} between ${before} and ${end} */
static char *between(const char *from, const char *before, char end)
{
    const char *at = strstr(from, before);
    ck_assert_msg(at != NULL, "%s is not in %s", before, from);
    at += strlen(before);
    return text("%.*s", (int)(strchr(at, end) - at), at);
}

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){
        .origin = origin,
        .yaml = "internal_listen: 127.0.0.1:0\n"
                "limits: { limiters: { bulk-sync: { windows: [ { limit: 100000, seconds: 60, key: "
                "token } ] }, "
                "widget-satisfaction: { windows: [ { limit: 100000, seconds: 60, key: ip } ] }, "
                "widget-coupon: { windows: [ { limit: 100000, seconds: 60, key: ip } ] } } }\n"});
    widget_make(SHOP);
    token = assay_ok(server, "token", "create", "--workspace", "main", "--name", "shop", NULL);
    version = between(assay_ok(server, "agent", "embed", agent, NULL), "/widget/", '/');
    stylesheet = between(http(server, .path = "/", .key = "")->body, "href=\"assets/", '/');
    script = between(
        http(server, .path = "/reports/0/nothing", .key = "", .headers = {"Accept: text/html"})
            ->body,
        "src=\"/assets/", '/');
    sync_content();
    ck_assert(wait_until(is_answered, NULL, 5000));
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

/* ---- the request ---- */

static const char *argument(const struct operation *o, const char *name)
{
    if (strcmp(name, "project") == 0)
        return "127.0.0.1";
    if (strcmp(name, "version") == 0)
        return strstr(o->path, "/widget/") != NULL ? version
               : strstr(o->path, ".js") != NULL    ? script
                                                   : stylesheet;
    return strstr(o->path, "/conversations/") != NULL ? visitor.conversation : report;
}

static char *with_arguments(const struct operation *o)
{
    char *out = text("%s", o->path);
    for (char *at; (at = strchr(out, '{')) != NULL;) {
        char *name = between(out, "{", '}');
        out = text("%.*s%s%s", (int)(at - out), out, argument(o, name), at + strlen(name) + 2);
    }
    return out;
}

/*
 * The path with those query parameters that have an example. A required or path parameter must have
 * one.
 */
static char *address_of(const struct operation *o)
{
    json *lists[] = {member(o->item, "parameters"), member(o->row, "parameters")};
    char *out = with_arguments(o), mark = '?';
    for (size_t l = 0; l < COUNT(lists); l++)
        for (size_t i = 0; lists[l] != NULL && i < json_object_array_length(lists[l]); i++) {
            json *p = schema_resolve(document, json_object_array_get_idx(lists[l], i)),
                 *example = member(p, "example");
            const char *name = json_object_get_string(member(p, "name"));
            ck_assert_msg(example != NULL || !json_object_get_boolean(member(p, "required")),
                          "%s: %s has no example", o->id, name);
            if (example == NULL || strcmp(json_object_get_string(member(p, "in")), "query") != 0)
                continue;
            out = text("%s%c%s=%s", out, mark, name, encode(real(json_object_get_string(example))));
            mark = '&';
        }
    return out;
}

static const char *credential_of(const struct operation *o)
{
    json *first = json_object_array_length(member(o->row, "security")) == 0
                      ? NULL
                      : json_object_array_get_idx(member(o->row, "security"), 0);
    if (member(first, "apiKey") != NULL)
        return strncmp(o->path, "/api/v1/re", 10) == 0 || strncmp(o->path, "/api/v1/pr", 10) == 0
                   ? server->key
                   : operators;
    return member(first, "workspaceToken") != NULL ? token
           : member(first, "visitor") != NULL      ? visitor.jwt
                                                   : "";
}

static struct response *send_example(const struct operation *o, const char *type, const char *body)
{
    struct server inside = strcmp(o->path, "/metrics") == 0 ? server_internal(server) : *server;
    bool of_page = strncmp(o->path, "/reports/", 9) == 0; /* it refuses those of other sites */
    char *method = text("%s", o->method);
    for (char *c = method; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    return http(&inside, .method = method, .path = address_of(o), .key = credential_of(o),
                .headers = {of_page ? "Accept: */*" : FROM_SHOP,
                            body == NULL ? NULL : text("Content-Type: %s", type)},
                .body = body);
}

/* a stream does not end by itself: its text up to an operator's answer is compared as a response */
static struct response *send_stream(const struct operation *o)
{
    struct raw *raw = raw_open(server);
    static char seen[16384];
    size_t n = 0;
    raw_text(raw, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" FROM_SHOP "\r\n\r\n",
             o->path, visitor.jwt);
    for (ssize_t got; strstr(seen, "\r\n\r\n") == NULL &&
                      (got = read(raw->fd, seen + n, sizeof(seen) - 1 - n)) > 0;
         n += (size_t)got)
        ;
    expect_status(operate("POST", text("conversations/%s/messages", visitor.conversation),
                          body_of(operation_of("replyToVisitor"))),
                  201);
    for (ssize_t got; strstr(seen, "event: message") == NULL &&
                      (got = read(raw->fd, seen + n, sizeof(seen) - 1 - n)) > 0;
         n += (size_t)got)
        ;
    raw_close(raw);
    struct response *r = calloc(1, sizeof(*r));
    static struct header type = {"Content-Type", "text/event-stream"};
    ck_assert_msg(strstr(seen, "content-type: text/event-stream") != NULL, "%s", seen);
    *r = (struct response){.request = "",
                           .status = atoi(seen + strlen("HTTP/1.1 ")),
                           .headers = &type,
                           .header_count = 1,
                           .head = seen,
                           .body = seen,
                           .body_size = n};
    return r;
}

/* ---- the answer ---- */

/*
 * For text: each line of the example must be the start of a line of the answer. For events, their
 * names are compared; otherwise only the first line.
 */
static void expect_text(const struct operation *o, const struct response *r, const char *example)
{
    bool events = strncmp(header(r, "Content-Type"), "text/event-stream", 17) == 0;
    char *lines = text("%s", example), *line = strsep(&lines, "\n");
    for (; line != NULL; line = events ? strsep(&lines, "\n") : NULL)
        if (!events || strncmp(line, "event: ", 7) == 0)
            ck_assert_msg(strstr(r->body, line) != NULL, "%s: \"%s\" is not in the answer\n%s",
                          o->id, line, response_text(r));
}

static void expect_json(const struct operation *o, const struct response *r, json *media,
                        json *example)
{
    char *mistake = schema_mistake(document, member(media, "schema"), r->json);
    ck_assert_msg(mistake == NULL, "%s: the answer: %s\n%s", o->id, mistake, response_text(r));
    mistake = schema_differs(example, r->json);
    ck_assert_msg(mistake == NULL, "%s: the answer and its example: %s\n%s", o->id, mistake,
                  response_text(r));
}

static void expect_documented(const struct operation *o, const struct response *r)
{
    json *response = member(member(o->row, "responses"), text("%d", r->status));
    expect(r, r->status < 400 && response != NULL);
    if (r->status == 303)
        return;
    const char *sent = header(r, "Content-Type");
    const char *type = text("%.*s", (int)strcspn(sent, ";"), sent);
    json *media = media_of(response, type), *example = member(media, "example");
    ck_assert_msg(media != NULL, "%s: %s is not documented", o->id, type);
    if (json_object_is_type(example, json_type_string))
        expect_text(o, r, json_object_get_string(example));
    else
        expect_json(o, r, media, example);
}

static void prepare(const struct operation *o)
{
    report = text("%lld", (long long)report_new(server, origin_url(origin, "/good")));
    if (strcmp(o->id, "postReportPassword") == 0)
        expect_status(http(server, .method = "PUT", .path = text("/api/v1/reports/%s", report),
                           .headers = {JSON}, .body = body_of(operation_of("updateReport"))),
                      200);
    visitor_begin();
}

START_TEST(the_example_of_an_operation_is_answered_as_documented)
{
    const struct operation *o = &operations[_i];
    prepare(o);
    expect_documented(o, strcmp(o->id, "streamConversation") == 0
                             ? send_stream(o)
                             : send_example(o, "application/json", body_of(o)));
    if (!takes_forms(o))
        return;
    prepare(o);
    expect_documented(o, send_example(o, FORM, form_of(o)));
}
END_TEST

/* also for answers that were not compared above, such as 202 */
START_TEST(every_success_response_has_an_example_of_its_schema)
{
    json_object_object_foreach(member(operations[_i].row, "responses"), status, response)
    {
        if (atoi(status) >= 300)
            continue;
        json_object_object_foreach(member(schema_resolve(document, response), "content"), type,
                                   media)
        {
            ck_assert_msg(member(media, "example") != NULL, "%s: %s %s has no example",
                          operations[_i].id, status, type);
            char *mistake =
                schema_mistake(document, member(media, "schema"), member(media, "example"));
            ck_assert_msg(mistake == NULL, "%s: the example of %s: %s", operations[_i].id, status,
                          mistake);
        }
    }
}
END_TEST

/* a validator that accepts everything is useless */
START_TEST(the_schema_validator_finds_errors)
{
    const struct operation *o = operation_of("getReport");
    json *media = media_of(member(member(o->row, "responses"), "200"), "application/json"),
         *copy = NULL;
    json_object_deep_copy(member(media, "example"), &copy, NULL);
    ck_assert_ptr_null(schema_mistake(document, member(media, "schema"), copy));
    json_object_object_del(member(copy, "data"), "url");
    ck_assert_pstr_eq(schema_mistake(document, member(media, "schema"), copy), "data: has no url");
    ck_assert_pstr_eq(schema_differs(member(media, "example"), copy), "data: url is not there");
    json_object_object_add(member(copy, "data"), "url", json_object_new_int(1));
    ck_assert_pstr_eq(schema_mistake(document, member(media, "schema"), copy),
                      "data: url: is not of type string");
    ck_assert_pstr_eq(schema_differs(member(media, "example"), copy),
                      "data: url: is 1, not string");
}
END_TEST

int main(void)
{
    read_document();
    Suite *suite = suite_create("openapi_examples");
    TCase *tcase = harness_case(suite, "examples");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_example_of_an_operation_is_answered_as_documented, 0,
                        operations_count);
    tcase_add_loop_test(tcase, every_success_response_has_an_example_of_its_schema, 0,
                        operations_count);
    tcase_add_test(tcase, the_schema_validator_finds_errors);
    return harness_main(suite);
}
