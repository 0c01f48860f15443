#include "audit.h"
#include "fetch.h"
#include "last_words.h"
#include "places.h"
#include "results.h"
#include "robots.h"
#include "sandbox.h"
#include "stall.h"
#include "text.h"

#include <libxml/parser.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define PER_HOST PLACES_PER_HOST /* pages of one host at once */
#define PLACE_POLL_MS 20         /* other auditors do not say when they give a place back */
#define RETRY_ROOM_MS 1000       /* of the deadline, left for the page that is asked for again */
#define PROBE_TIMEOUT_MS 5000
#define PROBE_MAX_REDIRECTS 5
#define PARSE_DEADLINE_MS 1000
#define WATCHDOG_SECONDS 10

/* The requests a page is made of. */
enum part { PART_PAGE, PART_ROBOTS, PART_MISSING, PART_FAVICON, PART_HTTP_FORM, PARTS };

enum part_state { PART_IDLE, PART_WAITING, PART_RUNNING, PART_ENDED };

struct job;

struct transfer {
    struct job *job;
    enum part part;
    enum part_state state;
    struct fetch *fetch;
    struct url url;
    unsigned hops;
    bool unverified;       /* go on without verification */
    bool retried;          /* as a Retry-After asked for */
    bool placed;           /* holds a place at its url's host */
    int64_t not_before_ms; /* while it waits: a Retry-After */
    int64_t refused_at_ms; /* while it waits: since when for a place; 0: for none */
    int64_t until_ms;      /* while a probe runs */
};

struct job {
    struct job *next;
    uint64_t id;
    audit_done_fn *done;
    void *arg;
    struct url url; /* as added */
    const char *refusal;
    struct transfer parts[PARTS];
    struct facts facts;
    char reason[160]; /* why the certificate of the page did not verify */
    bool head_came, probing, read;
    int64_t deadline_ms; /* of all: fetch, probes and parsing. Moved on by what the page waits for others */
    int64_t waited_ms;   /* so far: for places, and while other pages were read */
    const char *error_code;
    char error_message[256];
};

struct queue {
    struct job *first, **last;
    size_t count;
};

struct audit {
    const struct conf *conf;
    CURLM *multi;
    struct guard *guard;
    struct places *places, *own_places; /* the latter: NULL where they are shared */
    pid_t pid;
    struct queue waiting, running, finished;
    bool more; /* transfers have ended that were left for the next turn */
};

/* pages are read for so long at a stretch; then the caller has its turn, whose heartbeat others watch */
#define TURN_MS 200

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void queue_init(struct queue *q)
{
    *q = (struct queue){.last = &q->first};
}

static void queue_add(struct queue *q, struct job *job)
{
    job->next = NULL;
    *q->last = job;
    q->last = &job->next;
    q->count++;
}

/* Take *at, which is a link of ${q}, out of it. */
static struct job *queue_take(struct queue *q, struct job **at)
{
    struct job *job = *at;
    *at = job->next;
    if (q->last == &job->next)
        q->last = at;
    q->count--;
    return job;
}

struct audit *audit_new(const struct conf *conf)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    xmlInitParser();
    struct audit *audit = calloc(1, sizeof(*audit));
    if (audit == NULL)
        return NULL;
    audit->conf = conf;
    queue_init(&audit->waiting);
    queue_init(&audit->running);
    queue_init(&audit->finished);
    audit->multi = curl_multi_init();
    audit->guard = guard_new(conf);
    audit->places = audit->own_places = calloc(1, sizeof(*audit->places));
    audit->pid = getpid();
    if (audit->multi == NULL || audit->guard == NULL || audit->places == NULL || !stall_start()) {
        audit_free(audit);
        return NULL;
    }
    places_init(audit->places);
    return audit;
}

void audit_share(struct audit *audit, struct places *places)
{
    free(audit->own_places);
    audit->own_places = NULL;
    audit->places = places;
}

/* Its connection is closed, or will never be: let another have the place. */
static void transfer_stop(struct audit *audit, struct transfer *t)
{
    fetch_cancel(t->fetch, audit->multi);
    if (t->placed)
        places_give(audit->places, t->url.host, audit->pid);
    t->placed = false;
}

static void job_free(struct audit *audit, struct job *job)
{
    for (unsigned i = 0; i < PARTS; i++) {
        transfer_stop(audit, &job->parts[i]);
        fetch_free(job->parts[i].fetch);
        url_free(&job->parts[i].url);
    }
    facts_free(&job->facts);
    url_free(&job->url);
    free(job);
}

void audit_free(struct audit *audit)
{
    if (audit == NULL)
        return;
    stall_stop();
    struct queue *const queues[] = {&audit->waiting, &audit->running, &audit->finished};
    for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
        while (queues[i]->first != NULL)
            job_free(audit, queue_take(queues[i], &queues[i]->first));
    guard_free(audit->guard);
    curl_multi_cleanup(audit->multi);
    free(audit->own_places);
    free(audit);
}

size_t audit_pending(const struct audit *audit)
{
    return audit->waiting.count + audit->running.count + audit->finished.count;
}

void audit_add(struct audit *audit, uint64_t id, struct str url, audit_done_fn *done, void *arg)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        abort(); /* nothing is left to say so with: the job is run again by a fresh auditor */
    job->id = id;
    job->done = done;
    job->arg = arg;
    facts_init(&job->facts);
    for (unsigned i = 0; i < PARTS; i++) {
        job->parts[i].job = job;
        job->parts[i].part = (enum part)i;
    }
    if (url_judge(url, NULL, audit->conf, &job->url, &job->refusal)) {
        queue_add(&audit->waiting, job);
        return;
    }
    job->error_code = "address_forbidden";
    snprintf(job->error_message, sizeof(job->error_message), "%s", job->refusal);
    queue_add(&audit->finished, job);
}

/* ---- ending ---- */

static void move_to_finished(struct audit *audit, struct job *job)
{
    for (struct job **at = &audit->running.first; *at != NULL; at = &(*at)->next) {
        if (*at == job) {
            queue_add(&audit->finished, queue_take(&audit->running, at));
            return;
        }
    }
}

static void job_fail(struct audit *audit, struct job *job, const char *code, const char *message)
{
    for (unsigned i = 0; i < PARTS; i++)
        transfer_stop(audit, &job->parts[i]);
    job->error_code = code;
    snprintf(job->error_message, sizeof(job->error_message), "%s", message);
    move_to_finished(audit, job);
}

/* What a request's end means for the report (api.md §4). */
static const struct {
    const char *code, *message;
} failures[] = {
    [FETCH_OK] = {NULL, NULL},
    [FETCH_DNS] = {"dns_failed", "The host name could not be found. Check its spelling and its DNS records."},
    [FETCH_CONNECT] = {"connect_failed", "No connection to the host could be made. Check that it is up and open to the public."},
    [FETCH_REFUSED] = {"connect_failed", "The host refused the connection. Check that its web server runs."},
    [FETCH_BROKEN] = {"connect_failed", "The host broke the connection off or gave an answer that is not HTTP."},
    [FETCH_CUT] = {"interrupted",
                   "The connection ended before the whole page had come. Check the host's web server and what stands before it."},
    [FETCH_CODING] = {"http_error",
                      "The page's Content-Encoding is unknown, or not the one its body has. Check how the server compresses it."},
    [FETCH_TLS] = {"tls_failed", "No encrypted connection could be made. Check the host's TLS settings and certificate."},
    [FETCH_UNVERIFIED] = {"tls_failed", "The host's certificate does not verify, and no connection could be made without it."},
    [FETCH_TIMEOUT] = {"timeout", "The page did not come in time."},
    [FETCH_TOO_LARGE] = {"too_large", "The page, or its header, is larger than can be graded."},
    [FETCH_FORBIDDEN] = {"address_forbidden", "The host's address is private or reserved, and may not be graded."},
    [FETCH_NOT_HTML] = {"not_html", "The URL leads to something that is not an HTML page."},
    [FETCH_MEMORY] = {"too_complex", "The page needs more memory to grade than it may have."},
};

/* ${job} waited for others, which its report's time is not to pay for: but for audit.timeout at most. */
static void job_waited(const struct audit *audit, struct job *job, int64_t ms)
{
    int64_t room = (int64_t)audit->conf->audit_timeout_ms - job->waited_ms;
    ms = ms < room ? ms : room;
    job->waited_ms += ms;
    job->deadline_ms += ms;
    for (unsigned i = 0; i < PARTS; i++)
        job->parts[i].until_ms += ms;
}

/* One page was read or judged, and all others waited. */
static void others_waited(struct audit *audit, const struct job *but, int64_t since_ms)
{
    int64_t ms = mono_ms() - since_ms;
    for (struct job *job = audit->running.first; job != NULL && ms > 0; job = job->next)
        if (job != but)
            job_waited(audit, job, ms);
}

/* Reading and judging give up by themselves; should a step of them never end, the process does. */
static void watch(const struct job *job)
{
    last_words_page(job->id);
    if (sandbox_is_on())
        alarm(WATCHDOG_SECONDS);
}

static void watch_end(void)
{
    if (sandbox_is_on())
        alarm(0);
    last_words_page(0);
}

static void job_grade(struct audit *audit, struct job *job)
{
    struct audit_findings findings = {.id = job->id, .final_url = job->facts.response.url.p};
    struct buf json = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    job->facts.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    int64_t began_ms = mono_ms();
    watch(job);
    bool made = results_make(&job->facts, audit->conf, &findings, &json);
    watch_end();
    others_waited(audit, job, began_ms);
    if (made) {
        job->done(job->arg, &findings);
    } else {
        findings.error_code = failures[FETCH_MEMORY].code;
        findings.error_message = failures[FETCH_MEMORY].message;
        job->done(job->arg, &findings);
    }
    buf_free(&json);
}

static void call_finished(struct audit *audit)
{
    while (audit->finished.first != NULL) {
        struct job *job = queue_take(&audit->finished, &audit->finished.first);
        if (job->error_code == NULL) {
            job_grade(audit, job);
        } else {
            struct audit_findings findings = {.id = job->id,
                                              .error_code = job->error_code,
                                              .error_message = job->error_message,
                                              .final_url = job->parts[PART_PAGE].url.text};
            job->done(job->arg, &findings);
        }
        job_free(audit, job);
    }
}

/* ---- probes ---- */

static const struct {
    enum fetch_body body;
    uint64_t max_body;
} probe_bodies[PARTS] = {
    [PART_ROBOTS] = {FETCH_BODY_HEAD, ROBOTS_MAX_BYTES},
    [PART_MISSING] = {FETCH_BODY_NONE, 0},
    [PART_FAVICON] = {FETCH_BODY_NONE, 0},
    [PART_HTTP_FORM] = {FETCH_BODY_NONE, 0},
};

static struct fact_probe *probe_of(struct job *job, enum part part)
{
    struct fact_probe *const probes[PARTS] = {[PART_ROBOTS] = &job->facts.robots,
                                              [PART_MISSING] = &job->facts.missing,
                                              [PART_FAVICON] = &job->facts.favicon,
                                              [PART_HTTP_FORM] = &job->facts.http_form};
    return probes[part];
}

static void probe_add(struct audit *audit, struct job *job, enum part part, const char *url)
{
    struct transfer *t = &job->parts[part];
    const char *why;
    struct fact_probe *probe = probe_of(job, part);
    probe->state = PROBE_FAILED;
    url_free(&t->url);
    if (!url_judge(str_of(url), NULL, audit->conf, &t->url, &why))
        return;
    probe->url = arena_copy(&job->facts.arena, str_of(t->url.text));
    t->state = PART_WAITING;
}

static void probe_end(struct job *job, struct transfer *t, enum fetch_error error)
{
    struct fact_probe *probe = probe_of(job, t->part);
    t->state = PART_ENDED;
    probe->state = error == FETCH_OK ? PROBE_DONE : error == FETCH_REFUSED ? PROBE_CLOSED : PROBE_FAILED;
    probe->status = fetch_status(t->fetch);
    probe->final_url = arena_copy(&job->facts.arena, str_of(t->url.text));
    if (error != FETCH_OK || t->part != PART_ROBOTS)
        return;
    static const struct charset utf8 = {.name = "utf-8", .known = true};
    struct buf clean = {0};
    if (charset_to_utf8(&utf8, fetch_body(t->fetch), &clean))
        probe->body = arena_copy(&job->facts.arena, buf_view(&clean));
    buf_free(&clean);
}

static void impossible_path(char out[48])
{
    unsigned char random[16] = {0};
    if (getrandom(random, sizeof(random), 0) < 0)
        memset(random, 'x', sizeof(random)); /* as good: no site has this page either */
    int n = snprintf(out, 48, "/assay-");
    for (size_t i = 0; i < sizeof(random); i++)
        n += snprintf(out + n, 48 - (size_t)n, "%02x", random[i]);
}

/* The final URL is known: ask its origin for what the checks need. */
static void begin_probes(struct audit *audit, struct job *job)
{
    const struct url *final = &job->parts[PART_PAGE].url;
    char path[48], url[URL_MAX_BYTES + 64];
    job->probing = true;
    snprintf(url, sizeof(url), "%s/robots.txt", final->origin);
    probe_add(audit, job, PART_ROBOTS, url);
    impossible_path(path);
    snprintf(url, sizeof(url), "%s%s", final->origin, path);
    probe_add(audit, job, PART_MISSING, url);
    if (final->https && final->port == 443) {
        bool v6 = strchr(final->host, ':') != NULL;
        snprintf(url, sizeof(url), "http://%s%s%s%s", v6 ? "[" : "", final->host, v6 ? "]" : "", final->target);
        probe_add(audit, job, PART_HTTP_FORM, url);
    }
}

/* ---- the page ---- */

static void on_head(void *arg)
{
    struct transfer *t = arg;
    t->job->head_came = true;
}

/* A server that asks to come again later is obeyed once, where the report can wait so long. */
static bool page_retry(struct job *job, struct transfer *t)
{
    int64_t seconds = fetch_retry_after(t->fetch), now = mono_ms();
    if (seconds < 0 || t->retried || seconds > (job->deadline_ms - now - RETRY_ROOM_MS) / 1000)
        return false;
    t->retried = true;
    t->not_before_ms = now + seconds * 1000;
    t->state = PART_WAITING;
    return true;
}

static bool page_read_in_time(struct audit *audit, struct job *job, struct str body)
{
    int64_t began_ms = mono_ms(), left_ms = job->deadline_ms - began_ms;
    unsigned limit_ms = left_ms < 0 ? 0 : left_ms < PARSE_DEADLINE_MS ? (unsigned)left_ms : PARSE_DEADLINE_MS;
    watch(job);
    enum page_status status = facts_read(&job->facts, body, limit_ms);
    watch_end();
    others_waited(audit, job, began_ms);
    if (status == PAGE_OK)
        return true;
    if (status == PAGE_TOO_COMPLEX && mono_ms() >= job->deadline_ms)
        job_fail(audit, job, failures[FETCH_TIMEOUT].code, failures[FETCH_TIMEOUT].message);
    else
        job_fail(audit, job, "too_complex", "The page's HTML takes too long or too much memory to read. Make it simpler.");
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
        snprintf(message, sizeof(message), "The page answers with status %ld. Grade a URL that answers 200.", r->status);
        job_fail(audit, job, "http_error", message);
        return;
    }
    if (!page_read_in_time(audit, job, fetch_body(t->fetch)))
        return;
    fetch_free(t->fetch);
    t->fetch = NULL;
    t->state = PART_ENDED;
    job->read = true;
    if (!job->probing)
        begin_probes(audit, job);
    if (facts_wants_favicon(&job->facts)) {
        char url[URL_MAX_BYTES + 64];
        snprintf(url, sizeof(url), "%s/favicon.ico", t->url.origin);
        probe_add(audit, job, PART_FAVICON, url);
    }
}

/* A redirect, judged anew. ${error} tells why not to follow. */
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
    t->state = PART_WAITING;
    return true;
}

static void page_redirect(struct audit *audit, struct job *job, struct transfer *t)
{
    struct fact_response *r = &job->facts.response;
    const char *why;
    bool forbidden;
    if (t->hops >= audit->conf->audit_max_redirects) {
        job_fail(audit, job, "too_many_redirects", "The page redirects too many times.");
        return;
    }
    if (r->hop_count < FACT_HOPS_MAX)
        r->hops[r->hop_count++] = arena_copy(&job->facts.arena, str_of(t->url.text));
    job->reason[0] = '\0';
    if (!follow(audit, t, &why, &forbidden)) {
        char message[256];
        snprintf(message, sizeof(message), "The page redirects to a URL that cannot be graded. %s", why);
        job_fail(audit, job, forbidden ? "address_forbidden" : "http_error", message);
    }
}

static void page_answered(struct audit *audit, struct job *job, struct transfer *t, enum fetch_error error)
{
    if (error == FETCH_UNVERIFIED && !t->unverified) {
        snprintf(job->reason, sizeof(job->reason), "%s", fetch_reason(t->fetch));
        t->unverified = true;
        t->state = PART_WAITING;
    } else if (error != FETCH_OK) {
        job_fail(audit, job, failures[error].code, failures[error].message);
    } else if (fetch_location(t->fetch).n > 0) {
        page_redirect(audit, job, t);
    } else {
        page_end(audit, job, t);
    }
}

static void probe_answered(struct audit *audit, struct job *job, struct transfer *t, enum fetch_error error)
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

static void finish_if_done(struct audit *audit, struct job *job)
{
    if (job->error_code != NULL || !job->read)
        return;
    for (unsigned i = 0; i < PARTS; i++)
        if (job->parts[i].state == PART_WAITING || job->parts[i].state == PART_RUNNING)
            return;
    move_to_finished(audit, job);
}

static void transfer_ended(struct audit *audit, struct transfer *t, CURLcode code)
{
    struct job *job = t->job;
    enum fetch_error error = fetch_end(t->fetch, audit->multi, code);
    transfer_stop(audit, t);
    t->state = PART_ENDED;
    if (t->part == PART_PAGE)
        page_answered(audit, job, t, error);
    else
        probe_answered(audit, job, t, error);
    finish_if_done(audit, job);
}

/* ---- who may start ---- */

static bool host_has_page_room(const struct audit *audit, const char *host)
{
    unsigned busy = 0;
    for (const struct job *job = audit->running.first; job != NULL; job = job->next)
        busy += strcmp(job->url.host, host) == 0;
    return busy < PER_HOST;
}

static bool transfer_start(struct audit *audit, struct transfer *t, int64_t now)
{
    bool page = t->part == PART_PAGE;
    struct fetch_request request = {
        .url = &t->url,
        .body = page ? FETCH_BODY_HTML : probe_bodies[t->part].body,
        .max_body = page ? audit->conf->audit_max_bytes : probe_bodies[t->part].max_body,
        /* the last resort: deadlines are kept here, where it is known who waited for whom */
        .timeout_ms = (unsigned)(t->job->deadline_ms - now) + 2 * audit->conf->audit_timeout_ms,
        /* A probe asks what a server says, not who it is; it goes where the page's own request was accepted. */
        .verify = page ? !t->unverified : t->job->reason[0] == '\0',
        .head = page ? on_head : NULL,
        .head_arg = t,
        .owner = t,
    };
    if (t->fetch == NULL)
        t->fetch = fetch_new(audit->conf, audit->guard);
    if (t->fetch == NULL || !fetch_start(t->fetch, audit->multi, &request))
        return false;
    t->state = PART_RUNNING;
    t->until_ms = now + PROBE_TIMEOUT_MS;
    return true;
}

/*
 * A place at its host, and the time its page waited for one given back to the report. False: there is none yet. The time that can be given
 * back is audit.timeout: a page that waits longer fails.
 */
static bool take_place(struct audit *audit, struct transfer *t, int64_t now)
{
    t->placed = places_take(audit->places, t->url.host, audit->pid);
    if (t->placed && t->part == PART_PAGE && t->refused_at_ms != 0)
        job_waited(audit, t->job, now - t->refused_at_ms);
    if (t->placed)
        t->refused_at_ms = 0;
    else if (t->refused_at_ms == 0)
        t->refused_at_ms = now;
    return t->placed;
}

/* Start what waits for its host, pages before probes. */
static void start_transfers(struct audit *audit)
{
    int64_t now = mono_ms();
    for (unsigned part = 0; part < PARTS; part++) {
        for (struct job *job = audit->running.first, *next; job != NULL; job = next) {
            next = job->next;
            struct transfer *t = &job->parts[part];
            if (t->state != PART_WAITING || now < t->not_before_ms || !take_place(audit, t, now) || transfer_start(audit, t, now))
                continue;
            transfer_stop(audit, t);
            t->state = PART_ENDED;
            if (part != PART_PAGE)
                finish_if_done(audit, job);
            else
                job_fail(audit, job, failures[FETCH_MEMORY].code, failures[FETCH_MEMORY].message);
        }
    }
}

/* When the report's time is over; a page that waits for a place has its waiting time before that. */
static int64_t due_ms(const struct audit *audit, const struct job *job)
{
    const struct transfer *page = &job->parts[PART_PAGE];
    if (page->state == PART_WAITING && page->refused_at_ms != 0)
        return page->refused_at_ms + (int64_t)audit->conf->audit_timeout_ms - job->waited_ms;
    return job->deadline_ms;
}

static void job_overdue(struct audit *audit, struct job *job)
{
    bool placeless = job->parts[PART_PAGE].refused_at_ms != 0;
    if (!job->read) {
        job_fail(audit, job, failures[FETCH_TIMEOUT].code,
                 placeless ? "The host was busy with other pages all the time. Try again later." : failures[FETCH_TIMEOUT].message);
        return;
    }
    for (unsigned i = PART_PAGE + 1; i < PARTS; i++) { /* what did not answer is not known */
        transfer_stop(audit, &job->parts[i]);
        job->parts[i].state = PART_ENDED;
    }
    finish_if_done(audit, job);
}

/* A probe that takes too long is given up, with what it would have told. */
static void end_slow_probes(struct audit *audit, struct job *job, int64_t now)
{
    bool ended = false;
    for (unsigned i = PART_PAGE + 1; i < PARTS; i++) {
        struct transfer *t = &job->parts[i];
        if (t->state != PART_RUNNING || now < t->until_ms)
            continue;
        transfer_stop(audit, t);
        t->state = PART_ENDED;
        ended = true;
    }
    if (ended)
        finish_if_done(audit, job);
}

static void end_overdue(struct audit *audit)
{
    int64_t now = mono_ms();
    for (struct job *job = audit->running.first, *next; job != NULL; job = next) {
        next = job->next;
        if (now >= due_ms(audit, job))
            job_overdue(audit, job);
        else
            end_slow_probes(audit, job, now);
    }
}

/* How long nothing is to be done unless something happens, at most ${most}. */
static int idle_ms(const struct audit *audit, int most)
{
    int64_t now = mono_ms(), until = now + most;
    for (const struct job *job = audit->running.first; job != NULL; job = job->next) {
        int64_t due = due_ms(audit, job);
        for (unsigned i = 0; i < PARTS; i++) {
            const struct transfer *t = &job->parts[i];
            int64_t ready = t->refused_at_ms != 0 ? now + PLACE_POLL_MS : t->not_before_ms;
            if (t->state == PART_WAITING && ready < due)
                due = ready;
            if (t->state == PART_RUNNING && i != PART_PAGE && t->until_ms < due)
                due = t->until_ms;
        }
        until = due < until ? due : until;
    }
    return until > now ? (int)(until - now) : 0;
}

static bool job_admit(struct audit *audit, struct job *job)
{
    struct transfer *t = &job->parts[PART_PAGE];
    const char *why;
    if (!url_judge(str_of(job->url.text), NULL, audit->conf, &t->url, &why))
        return false;
    t->state = PART_WAITING;
    job->deadline_ms = mono_ms() + (int64_t)audit->conf->audit_timeout_ms;
    return true;
}

static void admit_jobs(struct audit *audit)
{
    for (struct job **at = &audit->waiting.first; *at != NULL && audit->running.count < audit->conf->audit_concurrency;) {
        if (!host_has_page_room(audit, (*at)->url.host)) {
            at = &(*at)->next;
            continue;
        }
        struct job *job = queue_take(&audit->waiting, at);
        queue_add(&audit->running, job);
        if (!job_admit(audit, job))
            job_fail(audit, job, failures[FETCH_MEMORY].code, failures[FETCH_MEMORY].message);
    }
}

static void probe_where_heads_came(struct audit *audit)
{
    for (struct job *job = audit->running.first; job != NULL; job = job->next)
        if (job->head_came && !job->probing)
            begin_probes(audit, job);
}

static void schedule(struct audit *audit)
{
    end_overdue(audit);
    probe_where_heads_came(audit);
    admit_jobs(audit);
    start_transfers(audit);
}

static int perform(struct audit *audit)
{
    int running, left;
    stall_enter();
    CURLMcode code = curl_multi_perform(audit->multi, &running);
    stall_leave();
    if (code != CURLM_OK)
        return -1;
    int64_t until = mono_ms() + TURN_MS;
    audit->more = false;
    for (CURLMsg *m; !audit->more && (m = curl_multi_info_read(audit->multi, &left)) != NULL;) {
        if (m->msg == CURLMSG_DONE)
            transfer_ended(audit, fetch_owner(m->easy_handle), m->data.result);
        audit->more = left > 0 && mono_ms() > until;
    }
    schedule(audit);
    return 0;
}

int audit_wait(struct audit *audit, struct curl_waitfd *extra, unsigned count, int timeout_ms)
{
    schedule(audit);
    if (perform(audit) != 0)
        return -1;
    timeout_ms = audit->finished.first != NULL || audit->more ? 0 : idle_ms(audit, timeout_ms);
    if (curl_multi_poll(audit->multi, extra, count, timeout_ms, NULL) != CURLM_OK || (!audit->more && perform(audit) != 0))
        return -1;
    call_finished(audit);
    return 0;
}
