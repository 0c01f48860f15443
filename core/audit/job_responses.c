#include "core/audit/clock_internal.h"
#include "core/audit/job_internal.h"
#include "core/audit/robots_internal.h"
#include "core/audit/text.h"

#include <sys/random.h>

#define RETRY_RESERVE_MS 1000 /* left of the deadline for the page that is requested again */
#define PROBE_MAX_REDIRECTS 5
#define PARSE_DEADLINE_MS 1000

/* ---- probes ---- */

static struct fact_probe *probe_of(struct job *job, enum request_kind kind)
{
    struct fact_probe *const probes[REQUEST_KINDS] = {[REQUEST_ROBOTS] = &job->facts.robots,
                                                      [REQUEST_MISSING] = &job->facts.missing,
                                                      [REQUEST_FAVICON] = &job->facts.favicon,
                                                      [REQUEST_HTTP_FORM] = &job->facts.http_form};
    return probes[kind];
}

static void probe_add(struct audit *audit, struct job *job, enum request_kind kind, const char *url)
{
    struct transfer *t = &job->transfers[kind];
    const char *why;
    struct fact_probe *probe = probe_of(job, kind);
    probe->state = PROBE_FAILED;
    url_free(&t->url);
    if (!url_judge(str_of(url), NULL, audit->conf, &t->url, &why))
        return;
    probe->url = arena_copy(&job->facts.arena, str_of(t->url.text));
    t->state = TRANSFER_WAITING;
}

static void probe_end(struct job *job, struct transfer *t, enum fetch_error error)
{
    struct fact_probe *probe = probe_of(job, t->kind);
    t->state = TRANSFER_ENDED;
    probe->state = error == FETCH_OK        ? PROBE_DONE
                   : error == FETCH_REFUSED ? PROBE_CLOSED
                                            : PROBE_FAILED;
    probe->status = fetch_status(t->fetch);
    probe->final_url = arena_copy(&job->facts.arena, str_of(t->url.text));
    if (error != FETCH_OK || t->kind != REQUEST_ROBOTS)
        return;
    probe->body = charset_copy_utf8(&job->facts.arena, fetch_body(t->fetch));
}

static void impossible_path(char out[48])
{
    unsigned char random[16] = {0};
    if (getrandom(random, sizeof(random), 0) < 0)
        memset(random, 'x', sizeof(random)); /* just as good: no site has this page */
    int n = snprintf(out, 48, "/assay-");
    for (size_t i = 0; i < sizeof(random); i++)
        n += snprintf(out + n, 48 - (size_t)n, "%02x", random[i]);
}

void job_probe(struct audit *audit, struct job *job)
{
    const struct url *final = &job->transfers[REQUEST_PAGE].url;
    char path[48], url[URL_MAX_BYTES + 64];
    job->probing = true;
    snprintf(url, sizeof(url), "%s/robots.txt", final->origin);
    probe_add(audit, job, REQUEST_ROBOTS, url);
    impossible_path(path);
    snprintf(url, sizeof(url), "%s%s", final->origin, path);
    probe_add(audit, job, REQUEST_MISSING, url);
    if (final->https && final->port == 443) {
        bool v6 = strchr(final->host, ':') != NULL;
        snprintf(url, sizeof(url), "http://%s%s%s%s", v6 ? "[" : "", final->host, v6 ? "]" : "",
                 final->target);
        probe_add(audit, job, REQUEST_HTTP_FORM, url);
    }
}

/* ---- the page ---- */

void job_head_received(void *arg)
{
    struct transfer *t = arg;
    t->job->head_received = true;
}

/* Obey a Retry-After once, if the deadline allows it. */
static bool page_retry(struct job *job, struct transfer *t)
{
    int64_t seconds = fetch_retry_after(t->fetch), now = monotonic_ms();
    if (seconds < 0 || t->retried || seconds > (job->deadline_ms - now - RETRY_RESERVE_MS) / 1000)
        return false;
    t->retried = true;
    t->not_before_ms = now + seconds * 1000;
    t->state = TRANSFER_WAITING;
    return true;
}

static bool page_parse(struct audit *audit, struct job *job, struct str body)
{
    int64_t began_ms = monotonic_ms(), left_ms = job->deadline_ms - began_ms;
    unsigned limit_ms = left_ms < 0                   ? 0
                        : left_ms < PARSE_DEADLINE_MS ? (unsigned)left_ms
                                                      : PARSE_DEADLINE_MS;
    parse_alarm_start(job);
    enum page_status status = facts_read(&job->facts, body, limit_ms);
    parse_alarm_stop();
    jobs_extend_deadlines(audit, job, began_ms);
    if (status == PAGE_OK)
        return true;
    if (status == PAGE_TOO_COMPLEX && monotonic_ms() >= job->deadline_ms)
        job_fail_as(audit, job, FETCH_TIMEOUT);
    else
        job_fail(audit, job, "too_complex",
                 "Parsing the page's HTML takes too much time or memory. Simplify the page.");
    return false;
}

static void page_end(struct audit *audit, struct job *job, struct transfer *t)
{
    struct fact_response *r = &job->facts.response;
    struct arena *arena = &job->facts.arena;
    fetch_describe(t->fetch, arena, r);
    r->url = arena_copy(arena, str_of(t->url.text));
    r->origin = arena_copy(arena, str_of(t->url.origin));
    r->host = arena_copy(arena, str_of(t->url.host));
    r->target = arena_copy(arena, str_of(t->url.target));
    r->https = t->url.https;
    r->certificate.reason = arena_copy(arena, str_of(job->reason));
    if (r->status >= 400 && page_retry(job, t))
        return;
    if (r->status >= 400) {
        char message[128];
        snprintf(message, sizeof(message),
                 "The page answers with status %ld. Grade a URL that answers 200.", r->status);
        job_fail(audit, job, "http_error", message);
        return;
    }
    if (!page_parse(audit, job, fetch_body(t->fetch)))
        return;
    fetch_free(t->fetch);
    t->fetch = NULL;
    t->state = TRANSFER_ENDED;
    job->parsed = true;
    if (!job->probing)
        job_probe(audit, job);
    if (facts_wants_favicon(&job->facts)) {
        char url[URL_MAX_BYTES + 64];
        snprintf(url, sizeof(url), "%s/favicon.ico", t->url.origin);
        probe_add(audit, job, REQUEST_FAVICON, url);
    }
}

/* Follow a redirect, after judging it. False: ${why} not, and whether the guard refused it. */
static bool follow(struct audit *audit, struct transfer *t, const char **why, bool *forbidden)
{
    struct url next;
    bool ok = url_judge(fetch_location(t->fetch), t->url.text, audit->conf, &next, why);
    *forbidden = next.forbidden;
    if (!ok) {
        url_free(&next);
        return false;
    }
    url_free(&t->url);
    t->url = next;
    t->hops++;
    t->unverified = false;
    t->not_before_ms = 0;
    t->state = TRANSFER_WAITING;
    return true;
}

static void page_redirect(struct audit *audit, struct job *job, struct transfer *t)
{
    struct fact_response *r = &job->facts.response;
    const char *why;
    bool forbidden;
    if (t->hops >= audit->conf->audit_max_redirects) {
        job_fail(audit, job, "too_many_redirects",
                 "The page redirects too many times. Grade the URL that the redirects lead to.");
        return;
    }
    if (r->hop_count < FACT_HOPS_MAX)
        r->hops[r->hop_count++] = arena_copy(&job->facts.arena, str_of(t->url.text));
    job->reason[0] = '\0';
    if (!follow(audit, t, &why, &forbidden)) {
        char message[256];
        snprintf(message, sizeof(message), "The page redirects to a URL that cannot be graded. %s",
                 why);
        job_fail(audit, job, forbidden ? "address_forbidden" : "http_error", message);
    }
}

static void page_response(struct audit *audit, struct job *job, struct transfer *t,
                          enum fetch_error error)
{
    if (error == FETCH_UNVERIFIED && !t->unverified) {
        snprintf(job->reason, sizeof(job->reason), "%s", fetch_reason(t->fetch));
        t->unverified = true;
        t->state = TRANSFER_WAITING;
    } else if (error != FETCH_OK) {
        job_fail_as(audit, job, error);
    } else if (fetch_location(t->fetch).n > 0) {
        page_redirect(audit, job, t);
    } else {
        page_end(audit, job, t);
    }
}

static void probe_response(struct audit *audit, struct job *job, struct transfer *t,
                           enum fetch_error error)
{
    const char *why;
    bool forbidden;
    if (error == FETCH_OK && fetch_location(t->fetch).n > 0) {
        if (t->hops < PROBE_MAX_REDIRECTS && follow(audit, t, &why, &forbidden))
            return;
        error = FETCH_BROKEN;
    }
    probe_end(job, t, error);
}

void transfer_ended(struct audit *audit, struct transfer *t, CURLcode code)
{
    struct job *job = t->job;
    enum fetch_error error = fetch_end(t->fetch, audit->multi, code);
    transfer_stop(audit, t);
    t->state = TRANSFER_ENDED;
    if (job->withdrawn)
        return;
    if (t->kind == REQUEST_PAGE)
        page_response(audit, job, t, error);
    else
        probe_response(audit, job, t, error);
    job_finish_if_done(audit, job);
}
