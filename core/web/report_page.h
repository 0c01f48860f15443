/*
 * The page of a report (GET /reports/{id}) and its badge. The privacy of the report decides who
 * sees them: for others the page is the 404 of an unknown report.
 */
#ifndef ASSAY_WEB_REPORT_PAGE_H
#define ASSAY_WEB_REPORT_PAGE_H

#include "core/web/page.h"

/* Index into r->values, behind PAGE_LANG. */
enum { REPORT_PAGE_AGAINST = PAGE_LANG + 1 };

request_fn report_page, report_badge;

/* report_page_id(r): the id in the path; 0: it is none. An id has no zeros before it. */
uint64_t report_page_id(struct request *r);

/*
 * report_page_form(r, report, wrong): the form that asks for the password of ${report}. ${wrong}:
 * the password that was sent is wrong.
 */
void report_page_form(struct request *r, const struct store_report *report, bool wrong);

#endif
