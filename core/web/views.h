/*
 * What the templates show: one struct for each template in templates/. Texts are borrowed.
 * Templates escape a struct str, and show a struct html as it is. An empty text is not shown.
 */
#ifndef ASSAY_WEB_VIEWS_H
#define ASSAY_WEB_VIEWS_H

#include "core/web/put.h"

#include <stdint.h>

/* The page in another language. */
struct language_view {
    struct str code, name, address;
};
struct language_list {
    const struct language_view *at;
    size_t n;
};

/* Of every page. */
struct page_view {
    struct str language;            /* "en" */
    struct str base;                /* path of base_url, "" or "/prefix" */
    struct str stylesheet, script;  /* their addresses; empty: the page is self-contained */
    struct str version;             /* of Assay */
    struct language_list languages; /* the other languages of this page */
    struct str link;                /* its absolute address; empty: it has none */
};

struct html_list {
    const struct html *at;
    size_t n;
};

/* A check. */
struct finding_view {
    struct html name;
    struct str category; /* its name */
    struct html wrong, found, why, mend;
    bool high, medium, low;          /* its importance */
    struct html_list elements, more; /* the first elements, and those that are folded */
    unsigned more_count;
};
struct finding_list {
    const struct finding_view *at;
    size_t n;
};

struct category_view {
    struct str name;
    unsigned passed, applied, percent;
};
struct category_list {
    const struct category_view *at;
    size_t n;
};

/* A grading in the history. */
struct grading_view {
    unsigned score, issues;
    struct str iso, date, result, against; /* ${against}: the address of the comparison, or empty */
    bool current, compared;
    unsigned x, y; /* in the chart */
};
struct grading_list {
    const struct grading_view *at;
    size_t n;
};

struct comparison_view {
    struct str date;
    struct str end; /* the address of the page without a comparison */
    unsigned score;
    struct finding_list gone, new, still;
    unsigned gone_count, new_count, still_count;
    bool known; /* which checks failed then and now; else the lists are empty */
};

struct report_view {
    struct page_view page;
    uint64_t id;
    struct str url, final_url;
    struct str name;              /* the URL without its scheme, cut */
    bool pending, failed, graded; /* failed and graded: the last grading failed */
    bool member;                  /* a member of the workspace reads it */
    bool public;
    /* of the last grading, if ${graded} */
    unsigned score, high, medium, low, failed_count;
    struct str result;
    bool good, decent, bad;
    struct category_list categories;
    struct finding_list findings, passed, skipped;
    unsigned passed_count, skipped_count;
    /* facts; 0 or empty: unknown */
    unsigned http_status, ttfb_ms, load_ms;
    struct str size, protocol, grader, iso, date;
    /* the history, newest first; the chart oldest first */
    struct grading_list history, points;
    unsigned history_count;
    bool chart;
    bool comparing;
    struct comparison_view comparison;
    /* of a grading that failed */
    struct str error_name, error_why, error_mend;
};

struct password_view {
    struct page_view page;
    struct str action; /* where the form goes */
    bool wrong;
};

struct error_view {
    struct page_view page;
    unsigned status;
    struct str name, message;
    struct str message_language; /* "en" for a message that has no translation */
    unsigned wait_s;
    struct str request_id;
};

struct badge_view {
    unsigned score;
    unsigned label_width, score_width, width; /* px */
    unsigned label_x, score_x;                /* the middle of the texts */
    bool good, decent, bad;
};

#endif
