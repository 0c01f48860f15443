/* Runs the checks over the facts, computes the score and writes the results as JSON. */
#ifndef ASSAY_RESULTS_INTERNAL_H
#define ASSAY_RESULTS_INTERNAL_H

#include "core/audit/audit.h"
#include "core/audit/checks_internal.h"

#define RESULTS_MAX_BYTES ((size_t)32 * 1024)

/*
 * results_make(facts, conf, out, json): run all checks; fill score (with the weights of ${conf}),
 * issues, results, facts and failed of ${out}. The results borrow from ${json}, which the caller
 * frees, the other texts from ${facts}. False when memory is short.
 */
bool results_make(struct facts *facts, const struct conf *conf, struct audit_findings *out,
                  struct buf *json);

#endif
