/*
 * Grading: URL in, findings out. Used by the auditor process and by `assay audit`. It knows no
 * store, no keys and no channel. Single-threaded, one engine per process; it fetches many pages at
 * once with libcurl's multi interface.
 */
#ifndef ASSAY_AUDIT_H
#define ASSAY_AUDIT_H

#include "core/conf/conf.h"
#include "store/bytes.h"
#include "store/grading.h"

#include <curl/curl.h>

struct audit;

struct audit_issues {
    unsigned high, medium, low, passed;
};

/* The outcome of one grading. Borrowed for the duration of the callback. */
struct audit_findings {
    uint64_t id; /* as given to audit_add */
    /*
     * NULL: graded. Otherwise one of the API's codes: dns_failed, connect_failed, tls_failed,
     * timeout, too_large, too_complex, too_many_redirects, address_forbidden, not_html, http_error,
     * interrupted.
     */
    const char *error_code;
    const char *error_message; /* for people: what is wrong and what to do */
    int score;                 /* 0–100 */
    struct audit_issues issues;
    /*
     * JSON object of at most 32 KiB, one member per check:
     * {"title":{"category","importance","passed":true|false|null,"value","message","details":[]},…}
     */
    struct str results;
    struct grading_facts facts; /* of a graded page */
    struct str failed;          /* ids of the failed checks, as in a store_grading */
    const char *final_url;
    bool withdrawn; /* ended by audit_withdraw; apart from ${id}, nothing else is set */
};

typedef void audit_done_fn(void *arg, const struct audit_findings *findings);

/*
 * audit_new(conf): an engine with the guard, limits and concurrency of ${conf}, which is borrowed.
 * NULL when libcurl cannot start. Calls setlocale(LC_CTYPE, "C.UTF-8").
 */
struct audit *audit_new(const struct conf *conf);
void audit_free(struct audit *audit);

/*
 * audit_share_host_slots(audit, slots): take per-host slots from the shared table ${slots},
 * borrowed, instead of the engine's own. Call before the first page.
 */
struct host_slots;
void audit_share_host_slots(struct audit *audit, struct host_slots *slots);

/*
 * audit_ask_for_host_slots(audit, by): in a cluster: ask another process for a slot too before each
 * connection. ${by} is borrowed; its functions get ${arg}. ${ask} sends a question that has a
 * number. ${free} gives a slot back.
 * audit_host_slot_answered(audit, number, taken, host): the answer.
 */
struct audit_slot_asker {
    void (*ask)(void *arg, uint64_t number, bool redirected, const char *host);
    void (*free)(void *arg, struct str host);
    void *arg;
};
void audit_ask_for_host_slots(struct audit *audit, const struct audit_slot_asker *by);
void audit_host_slot_answered(struct audit *audit, uint64_t number, bool taken, struct str host);

/*
 * audit_add(audit, id, url, done, arg): queue a page. The engine calls ${done} exactly once, never
 * from within audit_add. At most conf->audit_concurrency pages run at once, two of them per host;
 * the others wait in the engine. A running page ends within conf->audit_timeout_ms, plus at most
 * the same time spent waiting for a busy host.
 */
void audit_add(struct audit *audit, uint64_t id, struct str url, audit_done_fn *done, void *arg);

/*
 * audit_withdraw(audit, arg): cancel the page that was added with ${arg}. Its transfers end at
 * once; a transfer that is resolving its host name ends when the name is resolved. ${done} is
 * called with withdrawn set, at least one second after the page began, so that a caller who adds
 * and withdraws pages in a loop cannot flood their host. A page that has already finished reports
 * its findings as usual.
 */
void audit_withdraw(struct audit *audit, const void *arg);

/* audit_pending(audit): number of pages queued or running. */
size_t audit_pending(const struct audit *audit);

/*
 * audit_wait(audit, extra, count, timeout_ms): run transfers until one of them or one of the
 * ${extra} descriptors is ready (revents filled in), at most ${timeout_ms}. Calls the callbacks of
 * pages that are finished. Returns 0, or -1 when libcurl itself failed.
 */
int audit_wait(struct audit *audit, struct curl_waitfd *extra, unsigned count, int timeout_ms);

/*
 * audit_result(score, conf): good, decent or bad by the configured thresholds, as a number of enum
 * report_result.
 */
int audit_result(int score, const struct conf *conf);

#endif
