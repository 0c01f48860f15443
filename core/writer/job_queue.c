#include "core/writer/job_queue.h"

#include "core/writer/job_hosts.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536
#define WORKSPACE_BUCKETS 1024
/* jobs of a workspace that a turn examines to find one with a free host */
#define LOOK_AHEAD 64

struct job_list {
    struct grading_job *first, *last;
};

/* the jobs of one workspace */
struct workspace_queue {
    uint64_t workspace;
    struct job_list list[2];             /* waiting; [0]: prioritized */
    struct workspace_queue *next, *prev; /* ring of workspaces that have waiting jobs */
    struct workspace_queue *next_same;
    size_t waiting, running, withdrawn; /* withdrawn: among the running */
    uint16_t running_at[];              /* by the index of the auditor */
};

struct job_queue {
    unsigned auditors, capacity, most;
    unsigned member[JOB_QUEUE_AUDITORS], members; /* indexes of the auditors that take jobs */
    struct {
        bool is_member, connected;
        unsigned capacity;
        bool alone;             /* one of its jobs runs alone */
        bool suspected;         /* sent SUSPECT for one of its jobs */
        unsigned alone_waiting; /* jobs that must run alone: no other job starts before them */
        unsigned running;
        struct job_list jobs; /* running there */
    } auditor[JOB_QUEUE_AUDITORS];
    struct grading_job *bucket[BUCKETS];
    struct job_hosts hosts;
    struct workspace_queue *workspaces[WORKSPACE_BUCKETS];
    struct workspace_queue *last_served; /* the next workspace in the ring */
    bool blocked;     /* no job can start until a job or an auditor is added or removed */
    uint64_t highest; /* highest report ever added: higher ones are not in the queue */
    size_t size;
};

static void member_add(struct job_queue *q, unsigned index, unsigned capacity)
{
    q->member[q->members++] = index;
    q->auditor[index].is_member = true;
    q->auditor[index].capacity = capacity;
}

struct job_queue *job_queue_new(unsigned auditors, unsigned capacity, unsigned most)
{
    struct job_queue *q = calloc(1, sizeof(*q));
    if (q == NULL)
        return NULL;
    q->auditors = auditors;
    q->capacity = capacity;
    q->most = most;
    job_hosts_init(&q->hosts);
    for (unsigned i = 0; i < auditors; i++)
        member_add(q, i, capacity);
    return q;
}

void job_queue_free(struct job_queue *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (q->bucket[i] != NULL)
            job_queue_remove(q, q->bucket[i]);
    free(q);
}

static unsigned auditor_of(const struct job_queue *q, const struct grading_job *job)
{
    return q->member[job->host->hash % q->members];
}

/* ---- workspaces ---- */

static struct workspace_queue *workspace_find(struct job_queue *q, uint64_t workspace)
{
    struct workspace_queue *ws = q->workspaces[workspace % WORKSPACE_BUCKETS];
    while (ws != NULL && ws->workspace != workspace)
        ws = ws->next_same;
    return ws;
}

/* finds or creates; NULL: out of memory */
static struct workspace_queue *workspace_get(struct job_queue *q, uint64_t workspace)
{
    struct workspace_queue *ws = workspace_find(q, workspace);
    const size_t size = sizeof(*ws) + q->most * sizeof(ws->running_at[0]);
    if (ws != NULL || (ws = calloc(1, size)) == NULL)
        return ws;
    ws->workspace = workspace;
    ws->next_same = q->workspaces[workspace % WORKSPACE_BUCKETS];
    q->workspaces[workspace % WORKSPACE_BUCKETS] = ws;
    return ws;
}

static void workspace_drop_idle(struct job_queue *q, struct workspace_queue *ws)
{
    struct workspace_queue **at = &q->workspaces[ws->workspace % WORKSPACE_BUCKETS];
    if (ws->waiting > 0 || ws->running > 0)
        return;
    while (*at != ws)
        at = &(*at)->next_same;
    *at = ws->next_same;
    free(ws);
}

/* it has its turn last */
static void ring_join(struct job_queue *q, struct workspace_queue *ws)
{
    if (q->last_served == NULL) {
        ws->next = ws->prev = ws;
    } else {
        ws->next = q->last_served->next;
        ws->prev = q->last_served;
        ws->next->prev = q->last_served->next = ws;
    }
    q->last_served = ws;
}

static void ring_leave(struct job_queue *q, struct workspace_queue *ws)
{
    ws->prev->next = ws->next;
    ws->next->prev = ws->prev;
    if (q->last_served == ws)
        q->last_served = ws->prev == ws ? NULL : ws->prev;
}

/* ---- lists ---- */

static void list_first(struct job_list *list, struct grading_job *job)
{
    job->prev = NULL;
    job->next = list->first;
    *(list->first != NULL ? &list->first->prev : &list->last) = job;
    list->first = job;
}

static void list_last(struct job_list *list, struct grading_job *job)
{
    job->next = NULL;
    job->prev = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = job;
    list->last = job;
}

static void list_take(struct job_list *list, struct grading_job *job)
{
    *(job->prev != NULL ? &job->prev->next : &list->first) = job->next;
    *(job->next != NULL ? &job->next->prev : &list->last) = job->prev;
}

/* ---- jobs ---- */

static struct grading_job **bucket_of(struct job_queue *q, uint64_t report)
{
    return &q->bucket[(report * 0x9E3779B97F4A7C15u >> 32) % BUCKETS];
}

static bool has_share(const struct job_queue *q, const struct workspace_queue *ws, unsigned a)
{
    unsigned free_slots = q->auditor[a].capacity - q->auditor[a].running, own = ws->running_at[a];
    return own == 0 || (free_slots > 1 && own < JOB_QUEUE_SHARE * free_slots);
}

static bool may_start(const struct job_queue *q, const struct grading_job *job)
{
    unsigned a = auditor_of(q, job);
    if (!q->auditor[a].connected || q->auditor[a].alone || job->host->running >= JOB_QUEUE_PER_HOST)
        return false;
    if (job->alone)
        return q->auditor[a].running == 0;
    return q->auditor[a].alone_waiting == 0 && q->auditor[a].running < q->auditor[a].capacity &&
           has_share(q, job->owner, a);
}

static struct job_list *list_of(const struct grading_job *job)
{
    return &job->owner->list[job->prioritized ? 0 : 1];
}

static void enqueue(struct job_queue *q, struct grading_job *job)
{
    if (job->alone) /* the other jobs of its auditor wait for it */
        list_first(list_of(job), job);
    else
        list_last(list_of(job), job);
    if (job->owner->waiting++ == 0)
        ring_join(q, job->owner);
    q->auditor[auditor_of(q, job)].alone_waiting += job->alone;
    q->blocked = q->blocked && !may_start(q, job);
}

static void dequeue(struct job_queue *q, struct grading_job *job)
{
    list_take(list_of(job), job);
    q->blocked = false;
    q->auditor[auditor_of(q, job)].alone_waiting -= job->alone;
    if (--job->owner->waiting == 0)
        ring_leave(q, job->owner);
}

static void start(struct job_queue *q, struct grading_job *job)
{
    unsigned a = auditor_of(q, job);
    job->auditor = (int)a;
    list_last(&q->auditor[a].jobs, job);
    q->auditor[a].running++;
    q->auditor[a].alone = job->alone;
    job->host->running++;
    job->owner->running++;
    job->owner->running_at[a]++;
}

/* its auditor does not work on it */
static void stop(struct job_queue *q, struct grading_job *job)
{
    unsigned a = (unsigned)job->auditor;
    q->blocked = false;
    list_take(&q->auditor[a].jobs, job);
    q->auditor[a].running--;
    if (job->alone)
        q->auditor[a].alone = false;
    job->host->running--;
    job->owner->running--;
    job->owner->running_at[a]--;
    job->auditor = -1;
}

static struct grading_job *job_new(struct job_queue *q, uint64_t workspace, uint64_t report,
                                   uint32_t attempt, struct str url)
{
    struct grading_job *job = malloc(sizeof(*job) + url.n);
    struct workspace_queue *ws = workspace_get(q, workspace);
    struct job_host *host = job_host_of(&q->hosts, url);
    if (job != NULL && ws != NULL && host != NULL) {
        *job = (struct grading_job){.workspace = workspace,
                                    .report = report,
                                    .attempt = attempt,
                                    .auditor = -1,
                                    .owner = ws,
                                    .host = host,
                                    .url_size = url.n};
        memcpy(job->url, url.p, url.n);
        host->jobs++;
        return job;
    }
    free(job);
    if (ws != NULL)
        workspace_drop_idle(q, ws);
    if (host != NULL)
        job_host_drop_idle(&q->hosts, host);
    return NULL;
}

bool job_queue_add(struct job_queue *q, uint64_t workspace, uint64_t report, uint32_t attempt,
                   struct str url)
{
    struct grading_job *job = report > q->highest ? NULL : job_queue_find(q, report);
    if (job != NULL && job->attempt >= attempt)
        return true;
    if (job != NULL)
        job_queue_withdraw(q, job); /* a running one ends with its result */
    job = job_new(q, workspace, report, attempt, url);
    if (job == NULL)
        return false;
    enqueue(q, job);
    struct grading_job **bucket = bucket_of(q, report);
    job->next_same = *bucket;
    *bucket = job;
    q->highest = report > q->highest ? report : q->highest;
    q->size++;
    return true;
}

struct grading_job *job_queue_find(struct job_queue *q, uint64_t report)
{
    struct grading_job *job = *bucket_of(q, report);
    while (job != NULL && (job->report != report || job->withdrawn))
        job = job->next_same;
    return job;
}

struct grading_job *job_queue_find_running(struct job_queue *q, unsigned index, uint64_t report,
                                           uint64_t attempt)
{
    struct grading_job *job = *bucket_of(q, report);
    while (job != NULL &&
           (job->report != report || job->attempt != attempt || job->auditor != (int)index))
        job = job->next_same;
    return job;
}

void job_queue_each_running(struct job_queue *q, job_queue_job_fn *each, void *arg)
{
    for (unsigned a = 0; a < q->most; a++)
        for (struct grading_job *job = q->auditor[a].jobs.first; job != NULL; job = job->next)
            if (!job->withdrawn)
                each(arg, job);
}

void job_queue_prioritize(struct job_queue *q, uint64_t report)
{
    struct grading_job *job = job_queue_find(q, report);
    if (job == NULL || job->prioritized)
        return;
    if (job->auditor >= 0) {
        job->prioritized = true;
        return;
    }
    dequeue(q, job);
    job->prioritized = true;
    enqueue(q, job);
}

void job_queue_remove(struct job_queue *q, struct grading_job *job)
{
    struct grading_job **at = bucket_of(q, job->report);
    while (*at != job)
        at = &(*at)->next_same;
    *at = job->next_same;
    if (job->auditor < 0)
        dequeue(q, job);
    else
        stop(q, job);
    job->owner->withdrawn -= job->withdrawn;
    job->host->jobs--;
    job_host_drop_idle(&q->hosts, job->host);
    workspace_drop_idle(q, job->owner);
    q->size--;
    free(job);
}

bool job_queue_withdraw(struct job_queue *q, struct grading_job *job)
{
    if (job->auditor < 0) {
        job_queue_remove(q, job);
        return false;
    }
    job->owner->withdrawn += !job->withdrawn;
    job->withdrawn = true;
    return true;
}

size_t job_queue_withdrawn(struct job_queue *q, uint64_t workspace)
{
    const struct workspace_queue *ws = workspace_find(q, workspace);
    return ws == NULL ? 0 : ws->withdrawn;
}

void job_queue_auditor_connected(struct job_queue *q, unsigned index)
{
    q->auditor[index].connected = true;
    q->blocked = false;
}

/* The waiting jobs that must run alone are first in the lists. */
static void count_alone(struct job_queue *q, const struct job_list *list)
{
    for (const struct grading_job *job = list->first; job != NULL && job->alone; job = job->next)
        q->auditor[auditor_of(q, job)].alone_waiting++;
}

/* The set of auditors has changed, and with it the auditor of each host. */
static void members_changed(struct job_queue *q)
{
    struct workspace_queue *ws = q->last_served;
    q->blocked = false;
    for (unsigned a = 0; a < q->most; a++)
        q->auditor[a].alone_waiting = 0;
    if (ws == NULL)
        return;
    do {
        count_alone(q, &ws->list[0]);
        count_alone(q, &ws->list[1]);
        ws = ws->next;
    } while (ws != q->last_served);
}

int job_queue_auditor_joined(struct job_queue *q, unsigned capacity)
{
    unsigned index = q->auditors;
    while (index < q->most && q->auditor[index].is_member)
        index++;
    if (index >= q->most)
        return -1;
    member_add(q, index, capacity == 0 || capacity > UINT16_MAX ? q->capacity : capacity);
    members_changed(q);
    job_queue_auditor_connected(q, index);
    return (int)index;
}

void job_queue_auditor_left(struct job_queue *q, unsigned index)
{
    unsigned at = 0;
    while (q->member[at] != index)
        at++;
    q->member[at] = q->member[--q->members];
    q->auditor[index].is_member = false;
    members_changed(q);
}

void job_queue_return(struct job_queue *q, struct grading_job *job)
{
    if (job->withdrawn) {
        job_queue_remove(q, job);
        return;
    }
    stop(q, job);
    enqueue(q, job);
}

void job_queue_suspect(struct job_queue *q, unsigned index, uint64_t report)
{
    for (struct grading_job *job = q->auditor[index].jobs.first; job != NULL; job = job->next)
        if (job->report == report)
            job->suspected = q->auditor[index].suspected = true;
}

struct grading_job *job_queue_auditor_lost(struct job_queue *q, unsigned index, bool blame)
{
    struct grading_job *culprit = NULL, *job;
    bool was_alone = q->auditor[index].alone, suspected = q->auditor[index].suspected;
    q->auditor[index].suspected = false;
    q->auditor[index].connected = false;
    while ((job = q->auditor[index].jobs.first) != NULL) {
        if (job->withdrawn) {
            job_queue_remove(q, job);
            continue;
        }
        stop(q, job);
        bool spared = blame && suspected && !job->suspected && !job->spared_once;
        job->spared_once = job->spared_once || spared;
        job->alone = job->alone || (blame && !spared);
        job->suspected = false;
        enqueue(q, job);
        if (blame && was_alone)
            culprit = job;
    }
    return culprit;
}

static struct grading_job *first_of(struct job_queue *q, const struct job_list *list)
{
    unsigned looked = 0;
    for (struct grading_job *job = list->first; job != NULL && looked < LOOK_AHEAD;
         job = job->next, looked++)
        if (may_start(q, job))
            return job;
    return NULL;
}

struct grading_job *job_queue_take(struct job_queue *q)
{
    if (q->last_served == NULL || q->blocked)
        return NULL;
    for (int which = 0; which < 2; which++) {
        struct workspace_queue *ws = q->last_served->next, *end = ws;
        do {
            struct grading_job *job = first_of(q, &ws->list[which]);
            if (job != NULL) {
                q->last_served = ws;
                dequeue(q, job);
                start(q, job);
                return job;
            }
            ws = ws->next;
        } while (ws != end);
    }
    q->blocked = true;
    return NULL;
}

size_t job_queue_size(const struct job_queue *q)
{
    return q->size;
}
