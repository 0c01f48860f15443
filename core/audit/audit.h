/*
 * Grading: URL in, findings out. The auditor process and `assay audit` run it; it knows no store, no keys, no channel. Single-threaded, one
 * engine per process; many pages are fetched at once on libcurl's multi interface.
 */
#ifndef ASSAY_AUDIT_H
#define ASSAY_AUDIT_H

#include "core/conf/conf.h"
#include "store/bytes.h"

#include <curl/curl.h>

struct audit;

struct audit_issues {
    unsigned high, medium, low, passed;
};

/* What a page came to. Borrowed for the callback only. */
struct audit_findings {
    uint64_t id;             /* the caller's, as given to audit_add */
    const char *error_code;  /* NULL: graded. Else api.md §4: dns_failed, connect_failed, tls_failed, timeout, too_large, too_complex, too_many_redirects, address_forbidden, not_html, http_error, interrupted */
    const char *error_message; /* a sentence for people */
    int score;               /* 0–100 */
    struct audit_issues issues;
    struct str results;      /* JSON object, member per check: {"title":{"category","importance","passed":true|false|null,"value","message","details":[]},…}; at most 32 KiB */
    const char *final_url;
    bool withdrawn; /* by audit_withdraw: only ${id} is set besides */
};

typedef void audit_done_fn(void *arg, const struct audit_findings *findings);

/*
 * audit_new(conf): an engine with the guard, limits and concurrency of ${conf} (borrowed). NULL when libcurl cannot start. Calls
 * setlocale(LC_CTYPE, "C.UTF-8").
 */
struct audit *audit_new(const struct conf *conf);
void audit_free(struct audit *audit);

/* audit_share(audit, places): its places at hosts are those of ${places}, borrowed, which other engines have too. Before the first page. */
struct host_slots;
void audit_share(struct audit *audit, struct host_slots *places);

/*
 * audit_add(audit, id, url, done, arg): queue a page. Ends in exactly one call of ${done}, never from within audit_add. At most
 * conf->audit_concurrency pages run at once and at most two of one host; the others wait here. A page that runs ends within
 * conf->audit_timeout_ms, in which it may wait as long again for a connection to a host that others keep busy.
 */
void audit_add(struct audit *audit, uint64_t id, struct str url, audit_done_fn *done, void *arg);

/*
 * audit_withdraw(audit, arg): cancel the page with this ${arg}. Its transfers end now; a transfer
 * that is resolving its host's name ends when the name is resolved. ${done} is called with
 * withdrawn set, at least one second after the page began, so that a caller who adds and withdraws
 * pages in a loop does not flood their host. A page that is already finished reports its findings
 * as usual.
 */
void audit_withdraw(struct audit *audit, const void *arg);

/* audit_pending(audit): pages queued or running. */
size_t audit_pending(const struct audit *audit);

/*
 * audit_wait(audit, extra, count, timeout_ms): let the transfers go on until something happened on one of them or on the ${extra}
 * descriptors (revents filled in), at most ${timeout_ms}. Calls the callbacks that became due. Return 0, or -1 when libcurl itself failed.
 */
int audit_wait(struct audit *audit, struct curl_waitfd *extra, unsigned count, int timeout_ms);

/*
 * audit_url_normalise(url, conf, out, host, why):
 * Judge and normalise a page's URL as api.md §4 and audits.md "before any look-up" say, by libcurl's URL API: the normalised URL into
 * ${out} (≤ 2048 characters), its canonical project name (lower case, punycode, without `www.` and port) into ${host}. False: not
 * acceptable, with ${why} a static sentence. Used by the API on POST, so no look-up happens here.
 *
 * audit_url_plain(url, conf, host): is ${url} already what that makes of it, as nearly all are? Then ${host}, within it, is the project's
 * name. False says nothing: it has to be normalised.
 */
bool audit_url_normalise(struct str url, const struct conf *conf, struct buf *out, struct buf *host, const char **why);
bool audit_url_plain(struct str url, const struct conf *conf, struct str *host);

/* audit_result(score, conf): good, decent or bad by the thresholds; the numbers of enum report_result. */
int audit_result(int score, const struct conf *conf);

/*
 * audit_sandbox(conf, why):
 * Give up what grading does not need: no new privileges, no capabilities, seccomp, Landlock, RLIMITs. Call once, after audit_new, when
 * every descriptor the process will ever be given is open: afterwards it can open no file for writing and none but those of resolver, TLS
 * and charsets for reading, make no Unix, only internet sockets (pairs of streams go on working), start no process, and signal nobody. A page
 * that hangs the parser then ends the process by SIGALRM. Return 0, or -1 with a static ${why}. Kernels without Landlock or seccomp are
 * fine.
 */
int audit_sandbox(const struct conf *conf, const char **why);

#endif
