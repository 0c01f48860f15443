/*
 * Reports for the browser tests of report pages, written to the store of a stopped server: the
 * states of a report, hostile and long texts, many scripts of the world. Their texts come from the
 * grading of a real page.
 */
#ifndef ASSAY_T_REPORT_SEEDS_H
#define ASSAY_T_REPORT_SEEDS_H

#include "t/kit/harness.h"

/*
 * report_seeds(s, graded): writes the reports to the workspace "main" of ${s}, which is stopped.
 * ${graded}: the answer to a GET of a report with many failed checks. Returns their names and ids;
 * the caller frees it.
 */
struct json_object *report_seeds(const struct server *s, const struct response *graded);

#endif
