/* What tests of report pages share: a server, an origin, and requests as a browser sends them. */
#ifndef ASSAY_T_KIT_REPORT_PAGES_H
#define ASSAY_T_KIT_REPORT_PAGES_H

#include "t/kit/page_tree.h"

#define BROWSER "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
#define PROGRAM "Accept: */*"

/* Set by report_pages_setup, an unchecked fixture; ${good}: a public report of "/good". */
extern struct origin *origin;
extern struct server *server;
extern int64_t good;
void report_pages_setup(void);
void report_pages_teardown(void);

/* page_path(id, rest): "/reports/7" and ${rest}, such as "?lang=de". */
char *page_path(int64_t id, const char *rest);

/*
 * ask(path, accept, more): a GET without a key; NULL: as a browser, and no more headers. page: the
 * page of a report, whose status must be 200.
 */
struct response *ask(const char *path, const char *accept, const char *more);
struct response *page(int64_t id, const char *rest);

/*
 * report_of(path, html): a report of ${html}, which the origin serves at ${path}. change: PUTs a
 * form to a report. regrade: grades it again and waits.
 */
int64_t report_of(const char *path, const char *html);
void change(int64_t id, const char *form);
void regrade(int64_t id);

/* varies(r, names): one of the Vary headers is ${names}. */
bool varies(const struct response *r, const char *names);
void expect_header(const struct response *r, const char *name, const char *want);
/* The page has these words somewhere, or an element with exactly this text. */
void expect_words(const struct response *r, const char *words);
void expect_text(const struct response *r, const char *element, const char *words);

/* A small page that fails some checks; an attribute of its image and more elements may follow. */
#define TITLED "<!doctype html><html lang=en><title>Pots</title><h1>All pots</h1><img src=/pot.png "

#endif
