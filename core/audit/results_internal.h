/*
 * Findings from facts: every check run, the score, and the results as JSON. Pure but for the facts' arena.
 */
#ifndef ASSAY_RESULTS_INTERNAL_H
#define ASSAY_RESULTS_INTERNAL_H

#include "core/audit/audit.h"
#include "core/audit/checks_internal.h"

#define RESULTS_MAX_BYTES ((size_t)32 * 1024)

/*
 * results_make(facts, conf, out, json): run all checks; fill score (by the weights of ${conf}), issues and results of ${out} (borrowed from
 * ${json}, which the caller frees). False when memory is short.
 */
bool results_make(struct facts *facts, const struct conf *conf, struct audit_findings *out, struct buf *json);

/*
 * results_add_text(out, s, points): ${s} as a JSON string, cut after ${points} code points; controls become spaces, invalid UTF-8 U+FFFD.
 */
void results_add_text(struct buf *out, struct str s, size_t points);

#endif
