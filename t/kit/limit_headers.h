/* For tests of limits over HTTP: configurations, and the headers of responses. */
#ifndef ASSAY_T_LIMIT_HEADERS_KIT_H
#define ASSAY_T_LIMIT_HEADERS_KIT_H

#include "t/kit/harness.h"

#define MONTH 2678400 /* seconds of the windows; they do not end during a test */
#define WINDOW(limit, key) "{ limit: " limit ", seconds: 2678400, key: " key " }"
#define API(limit) "api: { windows: [ " WINDOW(limit, "api_key") " ] }"

extern struct server *server;

/* setup(): a server that the test starts. teardown(): ends it. */
void setup(void);
void teardown(void);

/* limiters(rows): the configuration of these limiters. list(key): a list of reports. */
char *limiters(const char *rows);
struct response *list(const char *key);

/*
 * expect_headers_of(r, limit, remaining, seconds): the limit and the remaining requests. The reset
 * is the end of a current window of that length. Retry-After is present only with 429.
 * expect_headers: with windows of a month. expect_refused: 429 with its body.
 */
void expect_headers_of(const struct response *r, long limit, long remaining, long seconds);
void expect_headers(const struct response *r, long limit, long remaining);
void expect_no_headers(const struct response *r);
void expect_refused(const struct response *r, long limit);

#endif
