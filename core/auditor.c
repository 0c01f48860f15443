/*
 * The auditor: jobs in, findings out. It holds no store and no keys, and gives up what grading does not need before the first page. When the writer goes away it drops what it was doing: the next writer hands the jobs
 * out again.
 */
#include "channel.h"
#include "log.h"
#include "process.h"
#include "audit/audit.h"
#include "../store/change.h"

#include <errno.h>
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

static void on_done(void *arg, const struct audit_findings *f)
{
    struct running *r = arg;
    struct auditor *a = r->auditor;
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

/* the writer is gone, or we are: nobody takes these findings */
static void forget(struct auditor *a)
{
    audit_free(a->audit);
    a->audit = NULL;
    while (a->running != NULL) {
        struct running *r = a->running;
        a->running = r->next;
        free(r);
    }
}

static bool connect_writer(struct auditor *a)
{
    if (a->audit == NULL && (a->audit = audit_new(a->process->conf)) == NULL) {
        log_error("libcurl cannot start");
        exit(EXIT_START);
    }
    int fd = channel_connect(a->process->writer_path);
    if (fd < 0)
        return false;
    channel_init(&a->channel, fd);
    channel_put(&a->channel, FRAME_HELLO, 0, a->process->index, (struct str){0});
    return true;
}

static bool exchange(struct auditor *a, bool readable)
{
    struct frame f;
    int got = readable ? channel_read(&a->channel) : 0, next = 0;
    while (got >= 0 && (next = channel_next(&a->channel, &f)) == 1)
        if (f.head.type == FRAME_JOB && !on_job(a, &f))
            return false;
    return got >= 0 && next >= 0 && channel_flush(&a->channel) >= 0;
}

static void serve(struct auditor *a)
{
    struct curl_waitfd fd = {.fd = a->channel.fd, .events = (short)(CURL_WAIT_POLLIN | (channel_pending(&a->channel) > 0 ? CURL_WAIT_POLLOUT : 0))};
    if (audit_wait(a->audit, &fd, 1, 250) != 0) {
        log_error("libcurl failed: the auditor starts again");
        exit(EXIT_START);
    }
    if (!exchange(a, true)) {
        channel_close(&a->channel);
        forget(a);
    }
    score_set(a->process->score->pending, a->audit == NULL ? 0 : audit_pending(a->audit));
}

/* what is not finished goes back to the queue, without blame */
static void give_back(struct auditor *a)
{
    for (struct running *r = a->running; r != NULL; r = r->next)
        channel_put(&a->channel, FRAME_BACK, r->report, r->attempt, (struct str){0});
    channel_put(&a->channel, FRAME_BACK, 0, 0, (struct str){0});
    for (int tries = 0; tries < 20 && channel_flush(&a->channel) == 1; tries++)
        poll(&(struct pollfd){a->channel.fd, POLLOUT, 0}, 1, 100);
}

int auditor_run(struct process *p)
{
    struct auditor a = {.process = p, .channel.fd = -1};
    const char *why = NULL;
    bool ready = false;
    score_set(p->scoreboard->auditor_pid[p->score - p->scoreboard->auditor_slot], getpid());
    scoreboard_narrow(p->scoreboard);
    p->scoreboard = NULL;
    while (!connect_writer(&a) && !process_stopping && !process_draining)
        poll(NULL, 0, 20);
    if (audit_sandbox(p->conf, &why) != 0) {
        log_error("the auditor cannot give up its privileges: %s", why);
        return EXIT_START;
    }
    while (!process_stopping && !process_draining) {
        process_beat(p);
        if (a.channel.fd < 0 && !connect_writer(&a)) {
            poll(NULL, 0, 50);
            continue;
        }
        serve(&a);
        if (!ready) {
            process_phase(p, PHASE_READY);
            ready = true;
        }
    }
    if (a.channel.fd >= 0)
        give_back(&a);
    channel_close(&a.channel);
    forget(&a);
    return EXIT_STOPPED;
}
