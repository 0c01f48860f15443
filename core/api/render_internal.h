/*
 * Reports and projects as JSON, rendered when they are read. Pure functions: same record, same
 * bytes.
 */
#ifndef ASSAY_API_RENDER_H
#define ASSAY_API_RENDER_H

#include "store/store.h"

/*
 * render_report(r, base_url, with_results, out): a report, as lists and its own address show it.
 * ${with_results}: `results` too.
 * render_grading(g, url, out): a grading of the report with that URL. What is unknown is null.
 * render_project(p, out): a project; `score` is the mean of its reports' scores, rounded to the
 * nearest whole number.
 */
void render_report(const struct store_report *r, struct str base_url, bool with_results,
                   struct buf *out);
void render_grading(const struct store_grading *g, struct str url, struct buf *out);
void render_project(const struct store_project *p, struct buf *out);

#endif
