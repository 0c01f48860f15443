/*
 * The history of a report: its last gradings that ended with a score. Part of store.h, whose rules
 * about snapshots, borrowed values, callbacks and changes apply.
 */
#ifndef ASSAY_STORE_GRADING_H
#define ASSAY_STORE_GRADING_H

#include "store/bytes.h"

#define STORE_GRADINGS_MAX 100 /* kept per report; older ones are deleted */

/* Bytes of the texts of a grading. All texts are printable ASCII. */
#define STORE_PROTOCOL_MAX 16
#define STORE_ASSAY_VERSION_MAX 64
#define STORE_FAILED_MAX 4096

enum report_result { RESULT_NONE, RESULT_GOOD, RESULT_DECENT, RESULT_BAD };

/*
 * What the auditor noted about the transfer of the page. ${http_status} 0: nothing is known. The
 * numbers come before the texts: change.c depends on it.
 */
struct grading_facts {
    unsigned http_status;      /* of the final response */
    unsigned ttfb_ms, load_ms; /* of the page */
    uint64_t page_bytes;       /* of the page as transferred */
    struct str protocol;       /* "HTTP/1.1", "HTTP/2" */
    struct str final_url;      /* after redirects; empty: the report's URL */
    struct str version;        /* of Assay */
};

/* A grading that ended with a score. */
struct store_grading {
    uint32_t number; /* the attempt; increases, not always by one */
    int score;
    enum report_result result; /* by the thresholds of that time */
    unsigned issues_high, issues_medium, issues_low, issues_passed;
    int64_t generated_at;
    struct grading_facts facts;
    /* ids of the failed checks, separated by one space, in the order of the results */
    struct str failed;
};

#endif
