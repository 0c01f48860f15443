#include "core/audit/clock_internal.h"
#include "core/audit/job_internal.h"
#include "core/audit/watchdog_internal.h"

#include <libxml/parser.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * One call of audit_wait parses pages for at most this long, so that the caller can update its
 * heartbeat.
 */
#define PERFORM_MAX_MS 200

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
    jobs_init(&audit->waiting);
    jobs_init(&audit->running);
    jobs_init(&audit->finished);
    audit->multi = curl_multi_init();
    audit->guard = guard_new(conf);
    audit->host_slots = audit->own_host_slots = calloc(1, sizeof(*audit->host_slots));
    audit->pid = getpid();
    if (audit->multi == NULL || audit->guard == NULL || audit->host_slots == NULL ||
        !watchdog_start()) {
        audit_free(audit);
        return NULL;
    }
    host_slots_init(audit->host_slots);
    return audit;
}

void audit_share_host_slots(struct audit *audit, struct host_slots *slots)
{
    free(audit->own_host_slots);
    audit->own_host_slots = NULL;
    audit->host_slots = slots;
}

void audit_free(struct audit *audit)
{
    if (audit == NULL)
        return;
    watchdog_stop();
    struct jobs *const queues[] = {&audit->waiting, &audit->running, &audit->finished};
    for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
        while (queues[i]->first != NULL)
            job_free(audit, jobs_take(queues[i], &queues[i]->first));
    guard_free(audit->guard);
    curl_multi_cleanup(audit->multi);
    free(audit->own_host_slots);
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
        abort(); /* the writer gives the job to the next auditor */
    job->id = id;
    job->done = done;
    job->arg = arg;
    facts_init(&job->facts);
    for (unsigned i = 0; i < REQUEST_KINDS; i++) {
        job->transfers[i].job = job;
        job->transfers[i].kind = (enum request_kind)i;
    }
    if (url_judge(url, NULL, audit->conf, &job->url, &job->refusal)) {
        jobs_add(&audit->waiting, job);
        return;
    }
    job->error_code = "address_forbidden";
    snprintf(job->error_message, sizeof(job->error_message), "%s", job->refusal);
    jobs_add(&audit->finished, job);
}

void audit_withdraw(struct audit *audit, const void *arg)
{
    for (struct job **at = &audit->waiting.first; *at != NULL; at = &(*at)->next)
        if ((*at)->arg == arg) {
            struct job *job = jobs_take(&audit->waiting, at);
            job->withdrawn = true;
            jobs_add(&audit->finished, job);
            return;
        }
    for (struct job *job = audit->running.first; job != NULL; job = job->next)
        if (job->arg == arg)
            job_withdraw(audit, job);
}

static int perform(struct audit *audit)
{
    int running, left;
    watchdog_enter();
    CURLMcode code = curl_multi_perform(audit->multi, &running);
    watchdog_leave();
    if (code != CURLM_OK)
        return -1;
    int64_t until = monotonic_ms() + PERFORM_MAX_MS;
    audit->more = false;
    for (CURLMsg *m; !audit->more && (m = curl_multi_info_read(audit->multi, &left)) != NULL;) {
        if (m->msg == CURLMSG_DONE)
            transfer_ended(audit, fetch_owner(m->easy_handle), m->data.result);
        audit->more = left > 0 && monotonic_ms() > until;
    }
    schedule(audit);
    return 0;
}

int audit_wait(struct audit *audit, struct curl_waitfd *extra, unsigned count, int timeout_ms)
{
    schedule(audit);
    if (perform(audit) != 0)
        return -1;
    timeout_ms =
        audit->finished.first != NULL || audit->more ? 0 : schedule_idle_ms(audit, timeout_ms);
    if (curl_multi_poll(audit->multi, extra, count, timeout_ms, NULL) != CURLM_OK ||
        (!audit->more && perform(audit) != 0))
        return -1;
    job_call_finished(audit);
    return 0;
}
