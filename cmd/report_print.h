/*
 * A graded page for people to read: score and verdict, then a section a category with what to mend, the important first. `assay audit`
 * and the demo print by it.
 */
#ifndef ASSAY_REPORT_PRINT_H
#define ASSAY_REPORT_PRINT_H

#include "json_in.h"

#include <stdbool.h>
#include <stdio.h>

struct report_print {
    const char *url;
    const char *final_url; /* where redirects led; may be NULL */
    const char *verdict;   /* good, decent, bad; NULL when the page could not be graded */
    int score;
    const struct json *results;             /* an object, a member a check, as api.md §4 has it */
    const char *error_code, *error_message; /* of a page that could not be graded */
};

struct report_look {
    bool colour;
    unsigned width; /* columns */
};

/* report_look_of(out): colour on a terminal unless NO_COLOR is set, and its width. */
struct report_look report_look_of(FILE *out);

/* report_print(out, look, report): the whole report. Nothing in it that came from the page can steer the terminal. */
void report_print(FILE *out, const struct report_look *look, const struct report_print *report);

/* report_print_line(out, look, report): score, verdict and URL on one line, to stand under others. */
void report_print_line(FILE *out, const struct report_look *look,
                       const struct report_print *report);

#endif
