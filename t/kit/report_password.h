/* For tests of reports with a password: a server, reports, attempts, and cookies. */
#ifndef ASSAY_T_REPORT_PASSWORD_KIT_H
#define ASSAY_T_REPORT_PASSWORD_KIT_H

#include "t/kit/harness.h"

#define BROWSER "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

/* configuration: attempts at a report are not limited */
#define UNLIMITED                                                                                  \
    "limits: { limiters: { report-password: { windows: [ "                                         \
    "{ limit: 1000000, seconds: 60, key: report } ] } } }\n"

extern struct server *server;

/*
 * setup(): a shared server with two workers that does not limit attempts. setup_own(): a server of
 * the test, which the test starts. teardown, teardown_own: end it.
 */
void setup(void);
void teardown(void);
void setup_own(void);
void teardown_own(void);

/* report_new_with(privacy, password): a report in grading. change(id, fields): PUT of the form. */
int64_t report_new_with(const char *privacy, const char *password);
void change(int64_t id, const char *fields);
char *page_path(int64_t id);

/*
 * post_form, attempt: a form of the page; ${accept} is a header or NULL. cookie_of(r): the cookie
 * of a successful attempt, as a request sends it. cookie_for: attempts and returns it.
 *
 * get_page: the page for a browser with that cookie. is_form(r): the page asks for the password.
 * is_open(r): the page shows the report.
 */
struct response *post_form(const char *path, const char *body, const char *accept);
struct response *attempt(int64_t id, const char *password, const char *accept);
char *cookie_of(const struct response *r);
char *cookie_for(int64_t id, const char *password);
struct response *get_page(int64_t id, const char *cookie);
bool is_form(const struct response *r);
bool is_open(const struct response *r);

#endif
