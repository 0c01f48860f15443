/* The results of a grading, JSON by core/audit, as lists of checks. Pure functions. */
#ifndef ASSAY_WEB_RESULTS_VIEW_H
#define ASSAY_WEB_RESULTS_VIEW_H

#include "core/web/report_view.h"

/* results_view_fill(view, results, l, memory): categories, findings, passed and skipped checks. */
void results_view_fill(struct report_view *view, struct str results, enum language l,
                       const struct view_memory *memory);

/* results_check_name(l, id, memory): the name of a check; its id, if the check is unknown. */
struct html results_check_name(enum language l, struct str id, const struct view_memory *memory);

#endif
