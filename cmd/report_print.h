/* Prints a graded page: score and result, then the issues of each category by importance. */
#ifndef ASSAY_REPORT_PRINT_H
#define ASSAY_REPORT_PRINT_H

#include "core/text/json_in.h"

#include <stdbool.h>
#include <stdio.h>

struct report_print {
    const char *url;
    const char *final_url; /* after redirects; may be NULL */
    const char *verdict;   /* good, decent, bad; NULL: not graded */
    int score;
    const struct json *results;             /* an object with a member per check, as in the API */
    const char *error_code, *error_message; /* if not graded */
};

struct report_look {
    bool colour;
    unsigned width; /* columns */
};

/* report_look_of(out): the width, and colour on a terminal unless NO_COLOR is set. */
struct report_look report_look_of(FILE *out);

/* report_print(out, look, report): print the report. Text of the page is escaped. */
void report_print(FILE *out, const struct report_look *look, const struct report_print *report);

/* report_print_line(out, look, report): print score, result and URL on one line. */
void report_print_line(FILE *out, const struct report_look *look,
                       const struct report_print *report);

#endif
