/*
 * The auditor process: receives jobs from the writer, grades pages, sends findings back. It holds
 * no store and no keys. Before the first page it gives up its privileges, including the right to
 * create Unix sockets, so it lives as long as its connection to the writer. When that ends, the
 * writer gives the jobs to the next auditor.
 */
#include "core/audit/auditor.h"

#include "core/ipc/channel.h"
#include "core/base/log.h"
#include "core/process/process.h"
#include "core/audit/audit.h"
#include "core/audit/sandbox.h"
#include "core/audit/crash_note_internal.h"
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
                                  .facts = f->facts,
                                  .failed = f->failed,
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

static void on_finished(void *arg, const struct audit_findings *f)
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
    audit_add(a->audit, r->report, f->payload, on_finished, r);
    return true;
}

/* A job that is not found has ended; its findings are on their way. */
static void on_withdraw(struct auditor *a, const struct frame *f)
{
    for (const struct running_job *r = a->running; r != NULL; r = r->next)
        if (r->report == f->head.a && r->attempt == f->head.b)
            audit_withdraw(a->audit, r);
}

/* The writer of the leader answers; sent at once, as the page waits. */
static void ask_for_slot(void *arg, uint64_t number, bool redirected, const char *host)
{
    struct auditor *a = arg;
    channel_put(&a->channel, FRAME_TAKE_SLOT, number, redirected, str_of(host));
    channel_flush(&a->channel); /* a writer that is gone is noticed by the next read */
}

static void free_slot(void *arg, struct str host)
{
    struct auditor *a = arg;
    channel_put(&a->channel, FRAME_FREE_SLOT, 0, 0, host);
}

static void free_jobs(struct auditor *a)
{
    audit_free(a->audit);
    while (a->running != NULL) {
        struct running_job *r = a->running;
        a->running = r->next;
        free(r);
    }
}

/* The master holds the listening socket, so while the writer is replaced connecting waits. */
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
        if (f.head.type == FRAME_SLOT)
            audit_host_slot_answered(a->audit, f.head.a, f.head.b != 0, f.payload);
    }
    return got >= 0 && next >= 0 && channel_flush(&a->channel) >= 0;
}

/* Wait for events and handle them; false when the writer is gone. */
static bool serve(struct auditor *a)
{
    struct curl_waitfd fd = {
        .fd = a->channel.fd,
        .events =
            (short)(CURL_WAIT_POLLIN | (channel_pending(&a->channel) > 0 ? CURL_WAIT_POLLOUT : 0))};
    if (audit_wait(a->audit, &fd, 1, 250) != 0) {
        log_error("libcurl failed; the auditor restarts");
        exit(EXIT_START);
    }
    score_set(a->process->score->pending, audit_pending(a->audit));
    return read_and_send(a);
}

/* Return unfinished jobs to the queue; they are not counted as failed attempts. */
static void return_jobs(struct auditor *a)
{
    channel_put(&a->channel, FRAME_RETURNED, 0, 0, (struct str){0});
    for (struct running_job *r = a->running; r != NULL; r = r->next)
        channel_put(&a->channel, FRAME_RETURNED, r->report, r->attempt, (struct str){0});
    for (int tries = 0; tries < 20 && channel_flush(&a->channel) == 1; tries++)
        poll(&(struct pollfd){a->channel.fd, POLLOUT, 0}, 1, 100);
}

static struct channel *last_channel; /* for the signal handler */

static void send_crash_note(uint64_t report)
{
    channel_send_now(last_channel, FRAME_SUSPECT, report);
}

/* The guard denies the host's own addresses. If they cannot be listed, it denies every address. */
static void check_own_addresses(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) == 0)
        freeifaddrs(all);
    else
        log_error("cannot list the host's own addresses, so no page is graded: %s",
                  strerror(errno));
}

int auditor_run(struct process *p)
{
    struct auditor a = {.process = p, .audit = audit_new(p->conf), .channel.fd = -1};
    const struct audit_slot_asker asker = {ask_for_slot, free_slot, &a};
    const char *why = NULL;
    score_set(p->scoreboard->auditor_pid[p->score - p->scoreboard->auditor_slot], getpid());
    scoreboard_unmap_private(p->scoreboard);
    if (a.audit != NULL)
        audit_share_host_slots(a.audit, &p->scoreboard->host_slots);
    if (a.audit != NULL && p->conf->cluster_log[0] != '\0')
        audit_ask_for_host_slots(a.audit, &asker);
    p->scoreboard = NULL;
    if (a.audit == NULL || !connect_writer(&a))
        return EXIT_START;
    last_channel = &a.channel;
    crash_note_install(send_crash_note);
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
    free_jobs(&a); /* closes the connections to hosts, before the writer frees their slots */
    channel_close(&a.channel);
    return EXIT_STOPPED;
}
