/*
 * Records as JSON, rendered once when they are written and served as they are: what core gives to store_open. Pure functions: same record,
 * same bytes. api.md §3 and §4.
 */
#ifndef ASSAY_API_RENDER_H
#define ASSAY_API_RENDER_H

#include "../../store/store.h"

/* Part of every ETag. One more whenever the same record comes out as other bytes, so that the store renders its records again. */
#ifndef RENDER_VERSION
#define RENDER_VERSION 1
#endif

extern const struct store_renderer render_records;

/*
 * render_report(r, out, link_at, results_at): a report's list item. Up to *link_at it ends in `"link":"`, where base_url goes; at
 * *results_at `,"results":…` may go. Offsets count from where ${out} stood.
 * render_project(p, out): a project's list item; `score` is the mean of its reports' scores, rounded to the nearest whole number.
 */
void render_report(const struct store_report *r, struct buf *out, size_t *link_at, size_t *results_at);
void render_project(const struct store_project *p, struct buf *out);

#endif
