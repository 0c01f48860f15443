/*
 * The auditor process: it gets jobs from the writer, grades pages, and sends results. It has no
 * store and no keys, and gives up every right that grading does not need before the first page,
 * also the right to create Unix sockets. So it ends when its connection to the writer ends, and the
 * next auditor gets its jobs.
 */
#include "core/audit/auditor.h"

#include "core/ipc/channel.h"
#include "core/base/log.h"
#include "core/process/process.h"
#include "core/audit/audit.h"
#include "core/audit/last_words.h"
#include "store/change.h"

#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct auditor {
    struct process *process;
    struct audit *audit;
    struct channel channel;
    struct running_job *running;
};

struct running_job {
    struct auditor *auditor;
    struct running_job *next;
    uint64_t report, attempt;
};

static struct running_job **find(struct auditor *a, const struct running_job *r)
{
    struct running_job **at = &a->running;
    while (*at != r)
        at = &(*at)->next;
    return at;
}

static void send_result(struct auditor *a, const struct running_job *r,
                        const struct audit_findings *f)
{
    struct buf wire = {0};
    struct store_change change = {.kind = CHANGE_REPORT_FINISH,
                                  .id = r->report,
                                  .score = f->score,
                                  .issues_high = f->issues.high,
                                  .issues_medium = f->issues.medium,
                                  .issues_low = f->issues.low,
                                  .issues_passed = f->issues.passed,
                                  .results = f->results,
                                  .error_code = str_of(f->error_code),
                                  .error_message =
                                      str_of(f->error_code == NULL ? NULL : f->error_message)};
    change_encode(&change, &wire);
    channel_put(&a->channel, FRAME_RESULT, r->report, r->attempt, buf_view(&wire));
    buf_free(&wire);
    score_add(a->process->score->requests, 1);
    if (f->error_code != NULL)
        score_add(a->process->score->batches, 1);
}

static void on_done(void *arg, const struct audit_findings *f)
{
    struct running_job *r = arg;
    struct auditor *a = r->auditor;
    if (f->withdrawn)
        channel_put(&a->channel, FRAME_RETURNED, r->report, r->attempt, (struct str){0});
    else
        send_result(a, r, f);
    *find(a, r) = r->next;
    free(r);
}

static bool on_job(struct auditor *a, const struct frame *f)
{
    struct running_job *r = malloc(sizeof(*r));
    if (r == NULL)
        return false;
    *r = (struct running_job){a, a->running, f->head.a, f->head.b};
    a->running = r;
    audit_add(a->audit, r->report, f->payload, on_done, r);
    return true;
}

/* not found: it has ended, and its result is on the way */
static void on_withdraw(struct auditor *a, const struct frame *f)
{
    for (const struct running_job *r = a->running; r != NULL; r = r->next)
        if (r->report == f->head.a && r->attempt == f->head.b)
            audit_withdraw(a->audit, r);
}

static void drop_jobs(struct auditor *a)
{
    audit_free(a->audit);
    while (a->running != NULL) {
        struct running_job *r = a->running;
        a->running = r->next;
        free(r);
    }
}

/* the master holds the listening socket: while the writer is replaced, this only waits */
static bool connect_writer(struct auditor *a)
{
    int fd = channel_connect(a->process->writer_path);
    if (fd < 0) {
        log_error("%s: %s", a->process->writer_path, strerror(errno));
        return false;
    }
    channel_init(&a->channel, fd);
    channel_put(&a->channel, FRAME_HELLO, 0, a->process->index, (struct str){0});
    return channel_flush(&a->channel) >= 0;
}

static bool read_and_send(struct auditor *a)
{
    struct frame f;
    int got = channel_read(&a->channel), next = 0;
    while (got >= 0 && (next = channel_next(&a->channel, &f)) == 1) {
        if (f.head.type == FRAME_JOB && !on_job(a, &f))
            return false;
        if (f.head.type == FRAME_WITHDRAW)
            on_withdraw(a, &f);
    }
    return got >= 0 && next >= 0 && channel_flush(&a->channel) >= 0;
}

/* one turn of the loop; false: the writer is gone */
static bool serve(struct auditor *a)
{
    struct curl_waitfd fd = {
        .fd = a->channel.fd,
        .events =
            (short)(CURL_WAIT_POLLIN | (channel_pending(&a->channel) > 0 ? CURL_WAIT_POLLOUT : 0))};
    if (audit_wait(a->audit, &fd, 1, 250) != 0) {
        log_error("libcurl failed: restarting the auditor");
        exit(EXIT_START);
    }
    score_set(a->process->score->pending, audit_pending(a->audit));
    return read_and_send(a);
}

/* unfinished jobs go back to the queue */
static void return_jobs(struct auditor *a)
{
    channel_put(&a->channel, FRAME_RETURNED, 0, 0, (struct str){0});
    for (struct running_job *r = a->running; r != NULL; r = r->next)
        channel_put(&a->channel, FRAME_RETURNED, r->report, r->attempt, (struct str){0});
    for (int tries = 0; tries < 20 && channel_flush(&a->channel) == 1; tries++)
        poll(&(struct pollfd){a->channel.fd, POLLOUT, 0}, 1, 100);
}

static struct channel *suspect_channel; /* for the signal handler */

static void send_suspect(uint64_t report)
{
    channel_send_now(suspect_channel, FRAME_SUSPECT, report);
}

/* The guard refuses the host's own addresses, and every address while it cannot list them. */
static void check_own_addresses(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) == 0)
        freeifaddrs(all);
    else
        log_error("cannot list the addresses of this host, so no page is graded: %s",
                  strerror(errno));
}

int auditor_run(struct process *p)
{
    struct auditor a = {.process = p, .audit = audit_new(p->conf), .channel.fd = -1};
    const char *why = NULL;
    score_set(p->scoreboard->auditor_pid[p->score - p->scoreboard->auditor_slot], getpid());
    scoreboard_unmap_private(p->scoreboard);
    if (a.audit != NULL)
        audit_share(a.audit, &p->scoreboard->host_slots);
    p->scoreboard = NULL;
    if (a.audit == NULL || !connect_writer(&a))
        return EXIT_START;
    suspect_channel = &a.channel;
    last_words_hear(send_suspect);
    check_own_addresses();
    if (audit_sandbox(p->conf, &why) != 0) {
        log_error("the auditor cannot give up its privileges: %s", why);
        return EXIT_START;
    }
    process_set_phase(p, PHASE_READY);
    bool connected = true;
    while (connected && !process_stopping && !process_draining) {
        process_heartbeat(p);
        connected = serve(&a);
    }
    if (connected)
        return_jobs(&a);
    channel_close(&a.channel);
    drop_jobs(&a);
    return EXIT_STOPPED;
}
