/*
 * For tests of the checks: facts made of a URL, headers and HTML, and assertions on a check's
 * verdict.
 */
#ifndef ASSAY_T_AUDIT_KIT_H
#define ASSAY_T_AUDIT_KIT_H

#include "core/audit/checks_internal.h"

enum expected { PASS = OUTCOME_PASS, FAIL = OUTCOME_FAIL, NA = OUTCOME_NOT_APPLICABLE };

/*
 * audit_kit_facts(f, url, headers, html): a page that came well over HTTP/2, with a valid
 * certificate where ${url} is https, in January 2027. ${headers}: lines of "Name: value". No probe
 * was made. facts_free gives it back.
 */
void audit_kit_facts(struct facts *f, const char *url, const char *headers, const char *html);

/*
 * audit_kit_expect(f, id, outcome, says): the check ${id} comes to ${outcome}, and its value,
 * message or details hold ${says} (NULL: anything).
 */
void audit_kit_expect(struct facts *f, const char *id, enum expected outcome, const char *says);

/* A page and what a check says of it. audit_kit_judge(c): it does. */
struct audit_case {
    const char *id; /* the check */
    enum expected outcome;
    const char *says; /* what value, message or details must hold; NULL: anything */
    const char *url, *headers, *html;
};

void audit_kit_judge(const struct audit_case *c);

#endif
