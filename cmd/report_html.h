/* A graded page as the page of its report: one HTML file without links to a server's files. */
#ifndef ASSAY_REPORT_HTML_H
#define ASSAY_REPORT_HTML_H

#include "core/audit/audit.h"
#include "core/web/texts.h"

struct report_html {
    struct str url;
    enum report_result result;
    int64_t generated_at; /* ms since the epoch */
    const struct audit_findings *findings;
    enum language language;
};

/*
 * report_html(out, report): append the page. It is UTF-8. Control characters and bidirectional
 * controls are replaced or escaped, so it can be printed on a terminal. ${out} is failed: out of
 * memory.
 */
void report_html(struct buf *out, const struct report_html *report);

#endif
