#include "core/audit/clock_internal.h"
#include "core/audit/job_internal.h"
#include "core/audit/robots_internal.h"

#include <string.h>

#define PER_HOST HOST_SLOTS_PER_HOST /* pages of one host that run at once */
#define HOST_SLOT_POLL_MS 20         /* other auditors do not announce free slots */
#define PROBE_TIMEOUT_MS 5000

static const struct {
    enum fetch_body body;
    uint64_t max_body;
} probe_bodies[REQUEST_KINDS] = {
    [REQUEST_ROBOTS] = {FETCH_BODY_HEAD, ROBOTS_MAX_BYTES},
    [REQUEST_MISSING] = {FETCH_BODY_NONE, 0},
    [REQUEST_FAVICON] = {FETCH_BODY_NONE, 0},
    [REQUEST_HTTP_FORM] = {FETCH_BODY_NONE, 0},
};

static bool host_has_page_room(const struct audit *audit, const char *host)
{
    unsigned busy = 0;
    for (const struct job *job = audit->running.first; job != NULL; job = job->next)
        busy += strcmp(job->url.host, host) == 0;
    return busy < PER_HOST;
}

static bool transfer_start(struct audit *audit, struct transfer *t, int64_t now)
{
    bool page = t->kind == REQUEST_PAGE;
    struct fetch_request request = {
        .url = &t->url,
        .body = page ? FETCH_BODY_HTML : probe_bodies[t->kind].body,
        .max_body = page ? audit->conf->audit_max_bytes : probe_bodies[t->kind].max_body,
        /*
         * Last resort. The deadlines here are stricter; they know how long a page waited for
         * others.
         */
        .timeout_ms = (unsigned)(t->job->deadline_ms - now) + 2 * audit->conf->audit_timeout_ms,
        /*
         * A probe goes to the server that the page's own request accepted, so it need not verify
         * the certificate either.
         */
        .verify = page ? !t->unverified : t->job->reason[0] == '\0',
        .head = page ? job_head_received : NULL,
        .head_arg = t,
        .owner = t,
    };
    if (t->fetch == NULL)
        t->fetch = fetch_new(audit->conf, audit->guard);
    if (t->fetch == NULL || !fetch_start(t->fetch, audit->multi, &request))
        return false;
    t->state = TRANSFER_RUNNING;
    t->until_ms = now + PROBE_TIMEOUT_MS;
    return true;
}

/*
 * Take a slot of the host. If the page waited for it, its deadline is extended by that time, at
 * most by audit.timeout; a page that waits longer fails. False: no slot is free.
 */
static bool take_host_slot(struct audit *audit, struct transfer *t, int64_t now)
{
    const bool taken = transfer_take_slot(audit, t, now);
    if (taken && t->kind == REQUEST_PAGE && t->slot_wanted_at_ms != 0)
        job_extend_deadline(audit, t->job, now - t->slot_wanted_at_ms);
    if (taken)
        t->slot_wanted_at_ms = 0;
    else if (t->slot_wanted_at_ms == 0)
        t->slot_wanted_at_ms = now;
    return taken;
}

/* Start waiting transfers, pages before probes. */
static void start_transfers(struct audit *audit)
{
    int64_t now = monotonic_ms();
    for (unsigned kind = 0; kind < REQUEST_KINDS; kind++) {
        for (struct job *job = audit->running.first, *next; job != NULL; job = next) {
            next = job->next;
            struct transfer *t = &job->transfers[kind];
            if (t->state != TRANSFER_WAITING || now < t->not_before_ms ||
                !take_host_slot(audit, t, now) || transfer_start(audit, t, now))
                continue;
            transfer_stop(audit, t);
            t->state = TRANSFER_ENDED;
            if (kind != REQUEST_PAGE)
                job_finish_if_done(audit, job);
            else
                job_fail_as(audit, job, FETCH_MEMORY);
        }
    }
}

/* When the page's time is up. While it waits for a host slot, its waiting time runs instead. */
static int64_t due_ms(const struct audit *audit, const struct job *job)
{
    const struct transfer *page = &job->transfers[REQUEST_PAGE];
    if (job_is_asking(job))
        return INT64_MAX;
    if (page->state == TRANSFER_WAITING && page->slot_wanted_at_ms != 0)
        return page->slot_wanted_at_ms + (int64_t)audit->conf->audit_timeout_ms - job->waited_ms;
    return job->deadline_ms;
}

static void job_overdue(struct audit *audit, struct job *job)
{
    if (job->withdrawn) {
        job_end_withdrawn(audit, job);
        return;
    }
    if (!job->parsed) {
        if (job->transfers[REQUEST_PAGE].slot_wanted_at_ms != 0)
            job_fail(audit, job, "timeout",
                     "The host was busy with other pages the whole time. Try again later.");
        else
            job_fail_as(audit, job, FETCH_TIMEOUT);
        return;
    }
    /* the outcome of unfinished probes stays unknown */
    for (unsigned i = REQUEST_PAGE + 1; i < REQUEST_KINDS; i++) {
        transfer_stop(audit, &job->transfers[i]);
        job->transfers[i].state = TRANSFER_ENDED;
    }
    job_finish_if_done(audit, job);
}

/* End probes that take too long; their outcome stays unknown. */
static void end_slow_probes(struct audit *audit, struct job *job, int64_t now)
{
    bool ended = false;
    for (unsigned i = REQUEST_PAGE + 1; i < REQUEST_KINDS; i++) {
        struct transfer *t = &job->transfers[i];
        if (t->state != TRANSFER_RUNNING || now < t->until_ms)
            continue;
        transfer_stop(audit, t);
        t->state = TRANSFER_ENDED;
        ended = true;
    }
    if (ended)
        job_finish_if_done(audit, job);
}

static void end_overdue(struct audit *audit)
{
    int64_t now = monotonic_ms();
    for (struct job *job = audit->running.first, *next; job != NULL; job = next) {
        next = job->next;
        if (now >= due_ms(audit, job))
            job_overdue(audit, job);
        else
            end_slow_probes(audit, job, now);
    }
}

int schedule_idle_ms(const struct audit *audit, int most)
{
    int64_t now = monotonic_ms(), until = now + most;
    for (const struct job *job = audit->running.first; job != NULL; job = job->next) {
        int64_t due = due_ms(audit, job);
        for (unsigned i = 0; i < REQUEST_KINDS; i++) {
            const struct transfer *t = &job->transfers[i];
            int64_t ready = t->slot_wanted_at_ms != 0 ? now + HOST_SLOT_POLL_MS : t->not_before_ms;
            if (t->state == TRANSFER_WAITING && ready < due)
                due = ready;
            if (t->state == TRANSFER_RUNNING && i != REQUEST_PAGE && t->until_ms < due)
                due = t->until_ms;
        }
        until = due < until ? due : until;
    }
    return until > now ? (int)(until - now) : 0;
}

static bool job_admit(struct audit *audit, struct job *job)
{
    struct transfer *t = &job->transfers[REQUEST_PAGE];
    const char *why;
    if (!url_judge(str_of(job->url.text), NULL, audit->conf, &t->url, &why))
        return false;
    t->state = TRANSFER_WAITING;
    job->began_ms = monotonic_ms();
    job->deadline_ms = job->began_ms + (int64_t)audit->conf->audit_timeout_ms;
    return true;
}

static void admit_jobs(struct audit *audit)
{
    for (struct job **at = &audit->waiting.first;
         *at != NULL && audit->running.count < audit->conf->audit_concurrency;) {
        if (!host_has_page_room(audit, (*at)->url.host)) {
            at = &(*at)->next;
            continue;
        }
        struct job *job = jobs_take(&audit->waiting, at);
        jobs_add(&audit->running, job);
        if (!job_admit(audit, job))
            job_fail_as(audit, job, FETCH_MEMORY);
    }
}

static void start_probes(struct audit *audit)
{
    for (struct job *job = audit->running.first; job != NULL; job = job->next)
        if (job->head_received && !job->probing && !job->withdrawn)
            job_probe(audit, job);
}

void schedule(struct audit *audit)
{
    end_overdue(audit);
    start_probes(audit);
    admit_jobs(audit);
    start_transfers(audit);
}
