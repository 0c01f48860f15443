#include "t/kit/report_pages.h"

#include <strings.h>

struct origin *origin;
struct server *server;
int64_t good;

void report_pages_setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    good = report_new(server, origin_url(origin, "/good"));
}

void report_pages_teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

char *page_path(int64_t id, const char *rest)
{
    return text("/reports/%lld%s", (long long)id, rest);
}

struct response *ask(const char *path, const char *accept, const char *more)
{
    return http(server, .path = path, .key = "",
                .headers = {accept == NULL ? BROWSER : accept, more});
}

struct response *page(int64_t id, const char *rest)
{
    struct response *r = ask(page_path(id, rest), NULL, NULL);
    expect_status(r, 200);
    return r;
}

void expect_header(const struct response *r, const char *name, const char *want)
{
    ck_assert_msg(header_times(r, name) == 1 && strcmp(header(r, name), want) == 0,
                  "%s is not %s\n%s", name, want, r->head);
}

bool varies(const struct response *r, const char *names)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, "Vary") == 0 && strcmp(r->headers[i].value, names) == 0)
            return true;
    return false;
}

void expect_words(const struct response *r, const char *words)
{
    ck_assert_msg(strstr(tree_text(tree_of(r)), words) != NULL, "%s is missing\n%s", words,
                  response_text(r));
}

void expect_text(const struct response *r, const char *element, const char *words)
{
    ck_assert_msg(tree_has_text(tree_of(r), element, words), "no <%s> %s\n%s", element, words,
                  response_text(r));
}

int64_t report_of(const char *path, const char *html)
{
    origin_page(origin, path, 200, "", html);
    return report_new(server, origin_url(origin, path));
}

void change(int64_t id, const char *form)
{
    expect_status(http(server, .method = "PUT", .path = report_path(id), .body = form,
                       .headers = {"Prefer: wait=15"}),
                  200);
}

void regrade(int64_t id)
{
    change(id, "update=1");
}
