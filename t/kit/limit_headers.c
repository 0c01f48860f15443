#include "t/kit/limit_headers.h"

#include <time.h>

struct server *server;

void setup(void)
{
    server = server_new(&(struct server_options){0});
}

void teardown(void)
{
    server_discard(server);
}

char *limiters(const char *rows)
{
    return text("limits:\n  limiters:\n    %s\n", rows);
}

void expect_headers_of(const struct response *r, long limit, long remaining, long seconds)
{
    long reset = header_number(r, "X-RateLimit-Reset"), now = (long)time(NULL);
    ck_assert_msg(header_number(r, "X-RateLimit-Limit") == limit &&
                      header_number(r, "X-RateLimit-Remaining") == remaining,
                  "not %ld of %ld\n%s", remaining, limit, response_text(r));
    expect(r, reset % seconds == 0 && reset >= now - 1 && reset <= now + seconds);
    expect(r, (header(r, "Retry-After") != NULL) == (r->status == 429));
    if (r->status == 429)
        expect(r, labs(header_number(r, "Retry-After") - (reset - now)) <= 2);
}

void expect_headers(const struct response *r, long limit, long remaining)
{
    expect_headers_of(r, limit, remaining, MONTH);
}

void expect_no_headers(const struct response *r)
{
    static const char *const names[] = {"X-RateLimit-Limit", "X-RateLimit-Remaining",
                                        "X-RateLimit-Reset", "Retry-After"};
    for (size_t i = 0; i < COUNT(names); i++)
        expect(r, header(r, names[i]) == NULL);
}

void expect_refused(const struct response *r, long limit)
{
    expect_error(r, 429, "rate_limited");
    expect(r, has_exactly(r, "error", "code message"));
    expect(r, !strcmp(header(r, "Content-Type"), "application/json"));
    expect_headers(r, limit, 0);
}

struct response *list(const char *key)
{
    return http(server, .path = "/api/v1/reports", .key = key);
}
