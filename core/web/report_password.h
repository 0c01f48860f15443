/*
 * POST /reports/{id}/password: whoever knows the password of a report gets the cookie that opens
 * its page. For other reports the answer is the 404 of an unknown one, after the same time.
 */
#ifndef ASSAY_WEB_REPORT_PASSWORD_H
#define ASSAY_WEB_REPORT_PASSWORD_H

#include "core/web/page.h"

/* Index into r->values. */
enum { REPORT_PASSWORD };

request_fn report_password;

#endif
