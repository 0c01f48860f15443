#include "core/audit/job_internal.h"
#include "core/audit/clock_internal.h"
#include "core/audit/crash_note_internal.h"
#include "core/audit/results_internal.h"
#include "core/audit/sandbox_internal.h"
#include "core/audit/url.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PARSE_ALARM_SECONDS 10
#define WITHDRAWN_MS 1000 /* a withdrawn page counts against its host for this long */
#define LOOKUP_POLL_MS 100

void jobs_init(struct jobs *q)
{
    *q = (struct jobs){.last = &q->first};
}

void jobs_add(struct jobs *q, struct job *job)
{
    job->next = NULL;
    *q->last = job;
    q->last = &job->next;
    q->count++;
}

struct job *jobs_take(struct jobs *q, struct job **at)
{
    struct job *job = *at;
    *at = job->next;
    if (q->last == &job->next)
        q->last = at;
    q->count--;
    return job;
}

void transfer_stop(struct audit *audit, struct transfer *t)
{
    fetch_cancel(t->fetch, audit->multi);
    transfer_free_slot(audit, t);
}

void job_free(struct audit *audit, struct job *job)
{
    for (unsigned i = 0; i < REQUEST_KINDS; i++) {
        transfer_stop(audit, &job->transfers[i]);
        fetch_free(job->transfers[i].fetch);
        url_free(&job->transfers[i].url);
    }
    facts_free(&job->facts);
    url_free(&job->url);
    free(job);
}

static void move_to_finished(struct audit *audit, struct job *job)
{
    for (struct job **at = &audit->running.first; *at != NULL; at = &(*at)->next) {
        if (*at == job) {
            jobs_add(&audit->finished, jobs_take(&audit->running, at));
            return;
        }
    }
}

void job_fail(struct audit *audit, struct job *job, const char *code, const char *message)
{
    for (unsigned i = 0; i < REQUEST_KINDS; i++)
        transfer_stop(audit, &job->transfers[i]);
    job->error_code = code;
    snprintf(job->error_message, sizeof(job->error_message), "%s", message);
    move_to_finished(audit, job);
}

/*
 * Stop all transfers except those that resolve a name; false if there is one. libcurl's resolver
 * thread outlives a transfer that is removed: pages added and withdrawn in a loop would leave
 * threads without bound.
 */
static bool stop_transfers(struct audit *audit, struct job *job)
{
    bool all = true;
    for (unsigned i = 0; i < REQUEST_KINDS; i++) {
        if (fetch_is_resolving(job->transfers[i].fetch)) {
            all = false;
            continue;
        }
        transfer_stop(audit, &job->transfers[i]);
        job->transfers[i].state = TRANSFER_ENDED;
    }
    return all;
}

void job_withdraw(struct audit *audit, struct job *job)
{
    job->withdrawn = true;
    job->deadline_ms = job->began_ms + WITHDRAWN_MS;
    stop_transfers(audit, job);
}

void job_end_withdrawn(struct audit *audit, struct job *job)
{
    if (stop_transfers(audit, job))
        move_to_finished(audit, job);
    else
        job->deadline_ms = monotonic_ms() + LOOKUP_POLL_MS;
}

/* Error code and message of the report, by how the request ended. */
/* clang-format off */
static const struct {
    const char *code, *message;
} failures[] = {
    [FETCH_OK] = {NULL, NULL},
    [FETCH_DNS] = {"dns_failed",
        "The host name could not be found. Check its spelling and its DNS records."},
    [FETCH_CONNECT] = {"connect_failed",
        "Connecting to the host failed. Check that it is running and reachable from the "
        "Internet."},
    [FETCH_REFUSED] = {"connect_failed",
        "The host refused the connection. Check that its web server is running."},
    [FETCH_BROKEN] = {"connect_failed",
        "The host closed the connection or sent a response that is not HTTP. Check its web "
        "server."},
    [FETCH_CUT] = {"interrupted",
        "The connection ended before the page was complete. Check the web server and the "
        "proxies in front of it."},
    [FETCH_CODING] = {"http_error",
        "The page's Content-Encoding is unknown or does not match its body. Check the server's "
        "compression settings."},
    [FETCH_TLS] = {"tls_failed",
        "The TLS handshake failed. Check the host's TLS settings and certificate."},
    [FETCH_UNVERIFIED] = {"tls_failed",
        "The host's certificate is not valid, and connecting without verification failed too. "
        "Check its TLS settings."},
    [FETCH_TIMEOUT] = {"timeout",
        "The page did not load in time. Try again later, or make the page faster."},
    [FETCH_TOO_LARGE] = {"too_large",
        "The page is larger than the server grades, or its header exceeds 64 KiB. Make it "
        "smaller, or ask the server's operator to raise the option audit.max_bytes."},
    [FETCH_FORBIDDEN] = {"address_forbidden",
        "The host's address is private or reserved. Use a public host, or ask the server's "
        "operator to allow the address with the option audit.allow_private."},
    [FETCH_NOT_HTML] = {"not_html",
        "The URL does not lead to an HTML page. Grade the URL of a page."},
    [FETCH_MEMORY] = {"too_complex",
        "The page needs more memory than grading allows. Simplify the page."},
};
/* clang-format on */

void job_fail_as(struct audit *audit, struct job *job, enum fetch_error error)
{
    job_fail(audit, job, failures[error].code, failures[error].message);
}

void job_extend_deadline(const struct audit *audit, struct job *job, int64_t ms)
{
    int64_t left_ms = (int64_t)audit->conf->audit_timeout_ms - job->waited_ms;
    ms = ms < left_ms ? ms : left_ms;
    job->waited_ms += ms;
    job->deadline_ms += ms;
    for (unsigned i = 0; i < REQUEST_KINDS; i++)
        job->transfers[i].until_ms += ms;
}

void jobs_extend_deadlines(struct audit *audit, const struct job *but, int64_t since_ms)
{
    int64_t ms = monotonic_ms() - since_ms;
    for (struct job *job = audit->running.first; job != NULL && ms > 0; job = job->next)
        if (job != but)
            job_extend_deadline(audit, job, ms);
}

void parse_alarm_start(const struct job *job)
{
    crash_note_set_page(job->id);
    if (sandbox_is_on())
        alarm(PARSE_ALARM_SECONDS);
}

void parse_alarm_stop(void)
{
    if (sandbox_is_on())
        alarm(0);
    crash_note_set_page(0);
}

static void job_grade(struct audit *audit, struct job *job)
{
    struct audit_findings findings = {.id = job->id, .final_url = job->facts.response.url.p};
    struct buf json = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    job->facts.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    int64_t began_ms = monotonic_ms();
    parse_alarm_start(job);
    bool made = results_make(&job->facts, audit->conf, &findings, &json);
    parse_alarm_stop();
    jobs_extend_deadlines(audit, job, began_ms);
    if (made) {
        job->done(job->arg, &findings);
    } else {
        findings.error_code = failures[FETCH_MEMORY].code;
        findings.error_message = failures[FETCH_MEMORY].message;
        job->done(job->arg, &findings);
    }
    buf_free(&json);
}

void job_call_finished(struct audit *audit)
{
    while (audit->finished.first != NULL) {
        struct job *job = jobs_take(&audit->finished, &audit->finished.first);
        if (job->withdrawn) {
            job->done(job->arg, &(struct audit_findings){.id = job->id, .withdrawn = true});
        } else if (job->error_code == NULL) {
            job_grade(audit, job);
        } else {
            struct audit_findings findings = {.id = job->id,
                                              .error_code = job->error_code,
                                              .error_message = job->error_message,
                                              .final_url = job->transfers[REQUEST_PAGE].url.text};
            job->done(job->arg, &findings);
        }
        job_free(audit, job);
    }
}

void job_finish_if_done(struct audit *audit, struct job *job)
{
    if (job->error_code != NULL || !job->parsed || job->withdrawn)
        return;
    for (unsigned i = 0; i < REQUEST_KINDS; i++)
        if (job->transfers[i].state == TRANSFER_WAITING ||
            job->transfers[i].state == TRANSFER_RUNNING)
            return;
    move_to_finished(audit, job);
}
