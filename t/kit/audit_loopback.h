/*
 * For tests of grading: an origin on loopback, an engine that fetches from it, and its findings.
 * There is one of each. Functions that fail fail the running test.
 */
#ifndef ASSAY_T_AUDIT_LOOPBACK_H
#define ASSAY_T_AUDIT_LOOPBACK_H

#include "core/audit/audit.h"
#include "t/kit/audit_origin.h"

extern struct conf conf; /* of ${audit}, which reads the timeout when a page begins */
extern struct origin *origin;
extern struct audit *audit;

/* A copy of the latest findings. ${calls}, ${failed} and ${withdrawn} count the findings of all. */
extern struct latest_findings {
    unsigned calls, failed, withdrawn;
    const void *arg; /* as given to audit_add */
    uint64_t id;
    char code[32], message[256], url[512]; /* "": graded, none, none */
    int score;
    struct grading_facts facts; /* its texts are not valid: the following members have them */
    char protocol[32], final_url[512], version[32], failed_checks[STORE_FAILED_MAX];
    struct buf results; /* ends with NUL */
} got;

/* keep(arg, f): for audit_add: fills ${got}. */
void keep(void *arg, const struct audit_findings *f);

/*
 * open_all(answer, tls): starts an origin, as origin_open does, and an engine whose pages time out
 * after 20 s. open_with_timeout: an origin without TLS and another timeout. close_all: frees all.
 */
void open_all(origin_fn *answer, bool tls);
void open_with_timeout(origin_fn *answer, unsigned timeout_ms);
void close_all(void);

/*
 * run: runs the engine until no page is pending. grade(url): grades the first page of a test.
 * grade_path(path): the same for a page of the origin.
 */
void run(void);
void grade(const char *url);
void grade_path(const char *path);

/*
 * go_on_until(holds, ms): runs the engine until ${holds}; false: not within ${ms}. is_over: a page
 * has ended.
 */
bool go_on_until(bool (*holds)(void), uint64_t ms);
bool is_over(void);

/* shared_slots(): an empty table of host slots, in memory that forked processes share. */
struct host_slots *shared_slots(void);

#define HTML "Content-Type: text/html; charset=utf-8\r\n"
#define GOOD_PAGE "<!DOCTYPE html><html lang=en><title>Good</title><h1>A page</h1><p>Text."

/* Answers of the origin. */
void good_page(struct origin_answer *a);
void not_found(struct origin_answer *a);

#endif
