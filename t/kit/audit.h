/*
 * For tests of the checks: facts made of a URL, headers and HTML, and assertions on a check's
 * verdict.
 */
#ifndef ASSAY_T_AUDIT_KIT_H
#define ASSAY_T_AUDIT_KIT_H

#include "core/audit/checks_internal.h"

enum expected { PASS = OUTCOME_PASS, FAIL = OUTCOME_FAIL, NA = OUTCOME_NOT_APPLICABLE };

/*
 * audit_kit_facts(f, url, headers, html): facts of a page that was fetched over HTTP/2 in January
 * 2027, with a valid certificate when ${url} is https. ${headers}: lines of "Name: value". No probe
 * was made. facts_free frees them.
 */
void audit_kit_facts(struct facts *f, const char *url, const char *headers, const char *html);

/*
 * audit_kit_expect(f, id, outcome, says): the check ${id} must have ${outcome}, and its value,
 * message or details must contain ${says} (NULL: anything).
 */
void audit_kit_expect(struct facts *f, const char *id, enum expected outcome, const char *says);

/* A page and the verdict of a check. audit_kit_judge(c): fails when the verdict differs. */
struct audit_case {
    const char *id; /* the check */
    enum expected outcome;
    const char *says; /* text in value, message or details; NULL: anything */
    const char *url, *headers, *html;
};

void audit_kit_judge(const struct audit_case *c);

#endif
