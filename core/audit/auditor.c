/*
 * The auditor: jobs in, findings out. It holds no store and no keys, and gives up what grading does not need before the first page, the
 * making of Unix sockets included: so it lives as long as its connection to the writer, and when that ends the next auditor gets the jobs
 * from the next writer.
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
    struct running *running;
};

struct running {
    struct auditor *auditor;
    struct running *next;
    uint64_t report, attempt;
};

static struct running **find(struct auditor *a, const struct running *r)
{
    struct running **at = &a->running;
    while (*at != r)
        at = &(*at)->next;
    return at;
}

static void send_findings(struct auditor *a, const struct running *r,
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
                                  .error_message = str_of(f->error_code == NULL ? NULL : f->error_message)};
    change_encode(&change, &wire);
    channel_put(&a->channel, FRAME_FINDINGS, r->report, r->attempt, buf_view(&wire));
    buf_free(&wire);
    score_add(a->process->score->requests, 1);
    if (f->error_code != NULL)
        score_add(a->process->score->batches, 1);
}

static void on_done(void *arg, const struct audit_findings *f)
{
    struct running *r = arg;
    struct auditor *a = r->auditor;
    if (f->withdrawn)
        channel_put(&a->channel, FRAME_BACK, r->report, r->attempt, (struct str){0});
    else
        send_findings(a, r, f);
    *find(a, r) = r->next;
    free(r);
}

static bool on_job(struct auditor *a, const struct frame *f)
{
    struct running *r = malloc(sizeof(*r));
    if (r == NULL)
        return false;
    *r = (struct running){a, a->running, f->head.a, f->head.b};
    a->running = r;
    audit_add(a->audit, r->report, f->payload, on_done, r);
    return true;
}

/* a job that is not found has ended, and its findings are on their way */
static void on_withdraw(struct auditor *a, const struct frame *f)
{
    for (const struct running *r = a->running; r != NULL; r = r->next)
        if (r->report == f->head.a && r->attempt == f->head.b)
            audit_withdraw(a->audit, r);
}

static void forget(struct auditor *a)
{
    audit_free(a->audit);
    while (a->running != NULL) {
        struct running *r = a->running;
        a->running = r->next;
        free(r);
    }
}

/* the master holds the listening socket, so a writer that is being replaced only makes us wait */
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

static bool exchange(struct auditor *a)
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

/* until something happened; false when the writer is gone */
static bool serve(struct auditor *a)
{
    struct curl_waitfd fd = {.fd = a->channel.fd,
                             .events = (short)(CURL_WAIT_POLLIN | (channel_pending(&a->channel) > 0 ? CURL_WAIT_POLLOUT : 0))};
    if (audit_wait(a->audit, &fd, 1, 250) != 0) {
        log_error("libcurl failed: the auditor starts again");
        exit(EXIT_START);
    }
    score_set(a->process->score->pending, audit_pending(a->audit));
    return exchange(a);
}

/* what is not finished goes back to the queue, without blame */
static void give_back(struct auditor *a)
{
    channel_put(&a->channel, FRAME_BACK, 0, 0, (struct str){0});
    for (struct running *r = a->running; r != NULL; r = r->next)
        channel_put(&a->channel, FRAME_BACK, r->report, r->attempt, (struct str){0});
    for (int tries = 0; tries < 20 && channel_flush(&a->channel) == 1; tries++)
        poll(&(struct pollfd){a->channel.fd, POLLOUT, 0}, 1, 100);
}

static struct channel *last_channel;

static void name_suspect(uint64_t report)
{
    channel_last_word(last_channel, FRAME_SUSPECT, report);
}

/* the guard denies the host's own addresses, and everything where it cannot learn them */
static void look_at_host(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) == 0)
        freeifaddrs(all);
    else
        log_error("the host's own addresses cannot be learnt, so no page is graded: %s", strerror(errno));
}

int auditor_run(struct process *p)
{
    struct auditor a = {.process = p, .audit = audit_new(p->conf), .channel.fd = -1};
    const char *why = NULL;
    score_set(p->scoreboard->auditor_pid[p->score - p->scoreboard->auditor_slot], getpid());
    scoreboard_narrow(p->scoreboard);
    if (a.audit != NULL)
        audit_share(a.audit, &p->scoreboard->places);
    p->scoreboard = NULL;
    if (a.audit == NULL || !connect_writer(&a))
        return EXIT_START;
    last_channel = &a.channel;
    last_words_hear(name_suspect);
    look_at_host();
    if (audit_sandbox(p->conf, &why) != 0) {
        log_error("the auditor cannot give up its privileges: %s", why);
        return EXIT_START;
    }
    process_phase(p, PHASE_READY);
    bool there = true;
    while (there && !process_stopping && !process_draining) {
        process_beat(p);
        there = serve(&a);
    }
    if (there)
        give_back(&a);
    channel_close(&a.channel);
    forget(&a);
    return EXIT_STOPPED;
}
