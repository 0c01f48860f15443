/* A report as what its page shows: the results, read and sorted. Pure functions. */
#ifndef ASSAY_WEB_REPORT_VIEW_H
#define ASSAY_WEB_REPORT_VIEW_H

#include "core/web/texts.h"
#include "core/web/views.h"
#include "store/store.h"

/* Memory that lives as long as the view. ${alloc} never returns NULL. */
struct view_memory {
    void *(*alloc)(void *of, size_t size);
    void *of;
};

struct report_source {
    const struct store_report *report;    /* with its results */
    const struct store_grading *gradings; /* newest first */
    size_t count;
    const struct store_grading *against; /* to compare with; NULL: none */
    struct str address; /* of the page, for links to comparisons: "/reports/7?" or …?lang=de& */
    enum language language;
};

/*
 * report_view_make(view, source, memory): fill all of ${view} but ${page} and ${member}.
 * The texts are borrowed from ${source} and ${memory}.
 */
void report_view_make(struct report_view *view, const struct report_source *source,
                      const struct view_memory *memory);

/* view_time(memory, ms, iso): "2026-11-27 04:12 UTC", and for machines *iso. */
struct str view_time(const struct view_memory *memory, int64_t ms, struct str *iso);

/* VIEW_JOIN(memory, part, …): texts (struct str) as one. */
#define VIEW_JOIN(memory, ...)                                                                     \
    view_join(memory, (const struct str[]){__VA_ARGS__},                                           \
              sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))
struct str view_join(const struct view_memory *memory, const struct str *parts, size_t count);

#endif
