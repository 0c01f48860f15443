#include "t/kit/harness_internal.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <strings.h>

enum { CALL_MS = 20000 };

struct client {
    const struct server *server;
    CURL *curl;
};

void bytes_add(struct bytes *b, const char *data, size_t size)
{
    b->data = realloc(b->data, b->size + size + 1);
    if (!b->data)
        abort();
    memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = '\0';
}

/* ---- responses ---- */

static void add_header(struct response *r, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    if (!colon)
        return;
    const char *value = colon + 1, *end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    r->headers = realloc(r->headers, (r->header_count + 1) * sizeof(*r->headers));
    if (!r->headers)
        abort();
    r->headers[r->header_count++] = (struct header){text("%.*s", (int)(colon - line), line),
                                                    text("%.*s", (int)(end - value), value)};
}

void response_head(struct response *r, const char *head)
{
    if (sscanf(head, "HTTP/1.%*d %d", &r->status) != 1)
        r->status = 0;
    const char *line = strchr(head, '\n');
    while (line && line[1]) {
        const char *start = line + 1;
        line = strchr(start, '\n');
        add_header(r, start, line ? (size_t)(line - start) : strlen(start));
    }
}

void response_json(struct response *r)
{
    struct json_tokener *tokener;
    if (!r->body_size || r->body[0] != '{')
        return;
    tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    r->json = json_tokener_parse_ex(tokener, r->body, (int)r->body_size);
    if (r->json && json_tokener_get_parse_end(tokener) != r->body_size) {
        json_object_put(r->json);
        r->json = NULL;
    }
    json_tokener_free(tokener);
}

void response_free(struct response *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->header_count; i++) {
        free(r->headers[i].name);
        free(r->headers[i].value);
    }
    json_object_put(r->json);
    free(r->headers);
    free(r->request);
    free(r->head);
    free(r->body);
    free(r);
}

const char *header(const struct response *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (!strcasecmp(r->headers[i].name, name))
            return r->headers[i].value;
    return NULL;
}

size_t header_times(const struct response *r, const char *name)
{
    size_t times = 0;
    for (size_t i = 0; i < r->header_count; i++)
        times += !strcasecmp(r->headers[i].name, name);
    return times;
}

long header_number(const struct response *r, const char *name)
{
    const char *value = header(r, name);
    char *end = NULL;
    expect(r, value != NULL && header_times(r, name) == 1);
    long number = strtol(value, &end, 10);
    expect(r, end != value && *end == '\0');
    return number;
}

char *bytes_shown(const char *data, size_t size)
{
    struct bytes out = {0};
    const size_t max = 3000;
    bytes_add(&out, "", 0);
    for (size_t i = 0; i < size && i < max; i++) {
        unsigned char c = (unsigned char)data[i];
        char shown[8];
        int length = (c >= 0x20 && c != 0x7f) || c == '\n' ? snprintf(shown, sizeof(shown), "%c", c)
                     : c == '\r'                           ? snprintf(shown, sizeof(shown), "\\r")
                                 : snprintf(shown, sizeof(shown), "\\x%02x", c);
        bytes_add(&out, shown, (size_t)length);
    }
    if (size > max) {
        char rest[64];
        bytes_add(&out, rest, (size_t)snprintf(rest, sizeof(rest), "\n(… %zu bytes in all)", size));
    }
    return out.data;
}

const char *response_text(const struct response *r)
{
    char *request = bytes_shown(r->request ? r->request : "", r->request ? strlen(r->request) : 0);
    char *head = bytes_shown(r->head ? r->head : "", r->head ? strlen(r->head) : 0);
    char *body = bytes_shown(r->body ? r->body : "", r->body_size);
    char *out = text(">>> %s\n<<< %s%s%s\n", request, r->failure ? r->failure : "", head, body);
    free(request);
    free(head);
    free(body);
    return out;
}

/* ---- looking into JSON ---- */

static bool look(const struct response *r, const char *path, struct json_object **out)
{
    struct json_object *here = r->json;
    char *copy = text("%s", path), *rest = copy;
    bool found = here != NULL;
    for (char *step; found && (step = strsep(&rest, ".")) != NULL;) {
        if (json_object_is_type(here, json_type_array)) {
            size_t index = (size_t)strtoul(step, NULL, 10);
            found = index < json_object_array_length(here);
            here = found ? json_object_array_get_idx(here, index) : NULL;
        } else {
            found = json_object_is_type(here, json_type_object) &&
                    json_object_object_get_ex(here, step, &here);
        }
    }
    free(copy);
    *out = found ? here : NULL;
    return found;
}

struct json_object *at(const struct response *r, const char *path)
{
    struct json_object *value;
    look(r, path, &value);
    return value;
}

bool has(const struct response *r, const char *path)
{
    struct json_object *value;
    return look(r, path, &value);
}

static struct json_object *at_of(const struct response *r, const char *path, enum json_type type)
{
    struct json_object *value = at(r, path);
    ck_assert_msg(json_object_is_type(value, type), "%s is not of type %s\n%s", path,
                  json_type_to_name(type), response_text(r));
    return value;
}

int64_t int_at(const struct response *r, const char *path)
{
    return json_object_get_int64(at_of(r, path, json_type_int));
}

const char *str_at(const struct response *r, const char *path)
{
    return json_object_get_string(at_of(r, path, json_type_string));
}

bool bool_at(const struct response *r, const char *path)
{
    return json_object_get_boolean(at_of(r, path, json_type_boolean));
}

size_t len_at(const struct response *r, const char *path)
{
    return json_object_array_length(at_of(r, path, json_type_array));
}

bool has_exactly(const struct response *r, const char *path, const char *names)
{
    struct json_object *object = *path ? at(r, path) : r->json, *member;
    char *copy = text("%s", names), *rest = copy;
    int count = 0;
    bool all = json_object_is_type(object, json_type_object);
    for (char *name; all && (name = strsep(&rest, " ")) != NULL; count++)
        all = json_object_object_get_ex(object, name, &member);
    free(copy);
    return all && json_object_object_length(object) == count;
}

static bool listed(const char *code, const char *codes)
{
    size_t size = strlen(code);
    for (const char *here = codes; here; here = strchr(here, '|') ? strchr(here, '|') + 1 : NULL)
        if (!strncmp(here, code, size) && (here[size] == '|' || !here[size]))
            return true;
    return false;
}

const char *error_mistake(const struct response *r, int status, const char *code)
{
    const char *type = header(r, "Content-Type");
    struct json_object *value;
    if (r->status != status)
        return text("status %d, not %d", r->status, status);
    if (!type || strcmp(type, "application/json") != 0)
        return text("Content-Type %s", type ? type : "(none)");
    if (!header(r, "X-Request-Id"))
        return "no X-Request-Id";
    if (!r->json)
        return "the body is not JSON";
    if (!has_exactly(r, "", "error"))
        return "the body's only member must be error";
    if (!json_object_is_type(value = at(r, "error.code"), json_type_string) ||
        !listed(json_object_get_string(value), code))
        return text("code is not %s", code);
    if (!json_object_is_type(value = at(r, "error.message"), json_type_string) ||
        !json_object_get_string_len(value))
        return "no message";
    if (!has_exactly(r, "error", "code message") && !has_exactly(r, "error", "code message errors"))
        return "unknown members in error";
    if (!strcmp(str_at(r, "error.code"), "validation_failed") &&
        !json_object_is_type(at(r, "error.errors"), json_type_object))
        return "validation_failed without errors";
    return NULL;
}

/* ---- libcurl ---- */

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    bytes_add(arg, data, size * count);
    return size * count;
}

static size_t on_head(char *data, size_t size, size_t count, void *arg)
{
    struct bytes *head = arg;
    if (size * count > 5 && !memcmp(data, "HTTP/", 5))
        head->size = 0; /* what came before was an interim response */
    bytes_add(head, data, size * count);
    return size * count;
}

struct client *client_new(const struct server *s)
{
    struct client *client = calloc(1, sizeof(*client));
    if (!client || !(client->curl = curl_easy_init()))
        abort();
    client->server = s;
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

static struct curl_slist *call_headers(const struct server *s, const struct call *call,
                                       struct bytes *shown)
{
    const char *key = call->key ? call->key : s->key;
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    char *line = key && *key ? text("Authorization: Bearer %s", key) : NULL;
    bool typed = false;
    if (line)
        list = curl_slist_append(list, line);
    for (size_t i = 0; i < COUNT(call->headers) && call->headers[i]; i++) {
        list = curl_slist_append(list, call->headers[i]);
        typed |= !strncasecmp(call->headers[i], "Content-Type", 12);
    }
    if (!call->body && !typed)
        list = curl_slist_append(list, "Content-Type:");
    for (struct curl_slist *item = list->next; item; item = item->next) {
        bytes_add(shown, item->data, strlen(item->data));
        bytes_add(shown, "\n", 1);
    }
    free(line);
    return list;
}

static void set_body(CURL *curl, const struct call *call, const char *method)
{
    size_t size = call->body_size ? call->body_size : call->body ? strlen(call->body) : 0;
    if (!call->body && strcmp(method, "POST") != 0 && strcmp(method, "PUT") != 0)
        return;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body ? call->body : "");
}

static void set_call(CURL *curl, const struct call *call, const char *method, const char *url)
{
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     (long)(call->timeout_ms ? call->timeout_ms : CALL_MS));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
    set_body(curl, call, method);
    if (!strcmp(method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

struct response *client_call(struct client *client, const struct call *call)
{
    struct response *r = calloc(1, sizeof(*r));
    struct bytes shown = {0}, head = {0}, body = {0};
    const char *method = call->method ? call->method : "GET";
    char *url = text("%s%s", client->server->url, call->path);
    if (!r)
        abort();
    set_call(client->curl, call, method, url);
    struct curl_slist *headers = call_headers(client->server, call, &shown);
    bytes_add(&head, "", 0);
    bytes_add(&body, "", 0);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, &head);
    CURLcode code = curl_easy_perform(client->curl);
    r->request = text("%s %s\n%s\n%s", method, url, shown.data ? shown.data : "",
                      call->body ? call->body : "");
    r->head = head.data;
    r->body = body.data;
    r->body_size = body.size;
    if (code == CURLE_OK) {
        response_head(r, r->head);
        response_json(r);
    } else {
        r->failure = curl_easy_strerror(code);
    }
    curl_slist_free_all(headers);
    free(shown.data);
    free(url);
    ck_assert_msg(code == CURLE_OK || call->may_fail, "no response: %s\n%s\nserver:\n%s",
                  r->failure, response_text(r), server_log(client->server));
    return r;
}

struct response *http_call(const struct server *s, const struct call *call)
{
    struct client *client = client_new(s);
    struct response *r = client_call(client, call);
    client_free(client);
    return r;
}

struct response *http_get(const struct server *s, const char *path)
{
    return http(s, .path = path);
}

struct response *http_post(const struct server *s, const char *path, const char *body)
{
    return http(s, .method = "POST", .path = path, .body = body);
}

struct response *http_put(const struct server *s, const char *path, const char *body)
{
    return http(s, .method = "PUT", .path = path, .body = body);
}

struct response *http_delete(const struct server *s, const char *path)
{
    return http(s, .method = "DELETE", .path = path);
}

/* ---- /metrics ---- */

struct server server_internal(const struct server *s)
{
    struct server internal = *s;
    char line[256] = "", url[128];
    ck_assert_int_gt(read(s->output, line, sizeof(line) - 1), 0);
    ck_assert_msg(sscanf(line, "ready %100s workers=", url) == 1, "second line: %s", line);
    internal.url = text("%s", url);
    return internal;
}

long metric(const struct server *internal, const char *name)
{
    struct response *r = http(internal, .path = "/metrics", .key = "");
    expect_status(r, 200);
    const char *at = r->body;
    size_t n = strlen(name);
    while (at != NULL && (strncmp(at, name, n) != 0 || at[n] != ' ')) {
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
    long value = at == NULL ? -1 : strtol(at + n, NULL, 10);
    response_free(r);
    return value;
}

/* ---- forms ---- */

char *encode(const char *value)
{
    struct bytes out = {0};
    bytes_add(&out, "", 0);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        char shown[4];
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-._~", *c);
        bytes_add(&out, shown, (size_t)snprintf(shown, sizeof(shown), plain ? "%c" : "%%%02X", *c));
    }
    return out.data;
}

char *form(const char *name, ...)
{
    struct bytes out = {0};
    va_list args;
    bytes_add(&out, "", 0);
    va_start(args, name);
    for (const char *here = name; here; here = va_arg(args, const char *)) {
        char *value = encode(va_arg(args, const char *));
        char *pair = text("%s%s=%s", out.size ? "&" : "", here, value);
        bytes_add(&out, pair, strlen(pair));
        free(pair);
        free(value);
    }
    va_end(args);
    return out.data;
}
