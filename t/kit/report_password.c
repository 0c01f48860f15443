#include "t/kit/report_password.h"

struct server *server;

void setup(void)
{
    server = server_shared(&(struct server_options){.workers = 2, .yaml = UNLIMITED});
}

void teardown(void)
{
    server_shared_stop(server);
}

void setup_own(void)
{
    server = server_new(&(struct server_options){.workers = 1});
}

void teardown_own(void)
{
    server_discard(server);
}

int64_t report_new_with(const char *privacy, const char *password)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .body = form("url", "http://a.test/", "privacy", privacy,
                                           password == NULL ? NULL : "password", password, NULL),
                              .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    return int_at(r, "data.id");
}

void change(int64_t id, const char *fields)
{
    expect_status(http_put(server, report_path(id), fields), 200);
}

char *page_path(int64_t id)
{
    return text("/reports/%lld", (long long)id);
}

struct response *post_form(const char *path, const char *body, const char *accept)
{
    return http(server, .method = "POST", .path = path, .key = "", .body = body,
                .headers = {"X-Request-Id: an-attempt", accept});
}

struct response *attempt(int64_t id, const char *password, const char *accept)
{
    return post_form(text("%s/password", page_path(id)), form("password", password, NULL), accept);
}

char *cookie_of(const struct response *r)
{
    const char *set = header(r, "Set-Cookie");
    expect(r, r->status == 303 && set != NULL);
    return text("Cookie: %.*s", (int)strcspn(set, ";"), set);
}

char *cookie_for(int64_t id, const char *password)
{
    return cookie_of(attempt(id, password, BROWSER));
}

struct response *get_page(int64_t id, const char *cookie)
{
    return http(server, .path = page_path(id), .key = "",
                .headers = {BROWSER, "X-Request-Id: an-attempt", cookie});
}

bool is_form(const struct response *r)
{
    return r->status == 200 && strstr(r->body, "type=\"password\"") != NULL;
}

bool is_open(const struct response *r)
{
    return r->status == 200 && strstr(r->body, "type=\"password\"") == NULL;
}
