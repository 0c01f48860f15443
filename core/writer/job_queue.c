#include "core/writer/job_queue.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define BUCKETS 65536
#define HOST_BUCKETS 16384
#define LANE_BUCKETS 1024
/* how deep a turn looks into one workspace's lane for a job whose host is free */
#define LOOK_AHEAD 64

struct queue_list {
    struct queue_job *first, *last;
};

/* a workspace with jobs */
struct queue_lane {
    uint64_t workspace;
    struct queue_list list[2];      /* those that wait; [0] hurried */
    struct queue_lane *next, *prev; /* ring of lanes that have waiting jobs */
    struct queue_lane *next_same;
    size_t waiting, out, withdrawn; /* the latter among those that are out */
    uint16_t out_at[QUEUE_AUDITORS];
};

/* A host with jobs. Its hash is keyed, so nobody can find a name that counts as another's host. */
struct queue_host {
    uint64_t hash;
    struct queue_host *next_same;
    size_t jobs;
    unsigned running;
};

struct queue {
    unsigned auditors, capacity;
    uint64_t seed; /* of the hosts' hash */
    struct {
        bool there;
        bool alone;             /* holds a job that runs alone */
        bool named;             /* said which of its jobs it dies of */
        unsigned alone_waiting; /* such jobs that wait: the others let it run empty first */
        unsigned running;
        struct queue_list out;
    } auditor[QUEUE_AUDITORS];
    struct queue_job *bucket[BUCKETS];
    struct queue_host *host[HOST_BUCKETS];
    struct queue_lane *lane[LANE_BUCKETS];
    struct queue_lane *turn; /* the lane before the one whose turn it is */
    bool stuck;              /* none may go, until one comes in, leaves or is added that may, or an auditor comes */
    uint64_t highest;        /* report that was ever added: what is created is above it, and need not be looked for */
    size_t size;
};

struct queue *queue_new(unsigned auditors, unsigned capacity)
{
    struct queue *q = calloc(1, sizeof(*q));
    if (q == NULL)
        return NULL;
    q->auditors = auditors;
    q->capacity = capacity;
    if (getrandom(&q->seed, sizeof(q->seed), GRND_NONBLOCK) !=
        (ssize_t)sizeof(q->seed)) { /* early at boot */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        q->seed = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec;
    }
    return q;
}

void queue_free(struct queue *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (q->bucket[i] != NULL)
            queue_remove(q, q->bucket[i]);
    free(q);
}

/* ---- hosts ---- */

static uint64_t hash_host(const struct queue *q, struct str url)
{
    /*
     * of what stands between "://" and the port, or the next "/", "?" or "#"; the colons of an
     * IPv6 address are within brackets
     */
    uint64_t h = q->seed;
    size_t at = 0;
    while (at + 3 <= url.n && memcmp(url.p + at, "://", 3) != 0)
        at++;
    at = at + 3 <= url.n ? at + 3 : 0;
    const char end = at < url.n && url.p[at] == '[' ? ']' : ':';
    for (;
         at < url.n && url.p[at] != '/' && url.p[at] != '?' && url.p[at] != '#' && url.p[at] != end;
         at++) {
        h = (h ^ (uint8_t)url.p[at]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h;
}

/* found or made; NULL: out of memory */
static struct queue_host *host_of(struct queue *q, struct str url)
{
    uint64_t hash = hash_host(q, url);
    struct queue_host **bucket = &q->host[hash % HOST_BUCKETS], *host = *bucket;
    while (host != NULL && host->hash != hash)
        host = host->next_same;
    if (host != NULL)
        return host;
    host = calloc(1, sizeof(*host));
    if (host == NULL)
        return NULL;
    host->hash = hash;
    host->next_same = *bucket;
    *bucket = host;
    return host;
}

static void host_drop_idle(struct queue *q, struct queue_host *host)
{
    struct queue_host **at = &q->host[host->hash % HOST_BUCKETS];
    if (host->jobs > 0)
        return;
    while (*at != host)
        at = &(*at)->next_same;
    *at = host->next_same;
    free(host);
}

static unsigned auditor_of(const struct queue *q, const struct queue_job *job)
{
    return (unsigned)(job->host->hash % q->auditors);
}

/* ---- lanes ---- */

static struct queue_lane *lane_find(struct queue *q, uint64_t workspace)
{
    struct queue_lane *lane = q->lane[workspace % LANE_BUCKETS];
    while (lane != NULL && lane->workspace != workspace)
        lane = lane->next_same;
    return lane;
}

/* found or made; NULL: out of memory */
static struct queue_lane *lane_of(struct queue *q, uint64_t workspace)
{
    struct queue_lane *lane = lane_find(q, workspace);
    if (lane != NULL || (lane = calloc(1, sizeof(*lane))) == NULL)
        return lane;
    lane->workspace = workspace;
    lane->next_same = q->lane[workspace % LANE_BUCKETS];
    q->lane[workspace % LANE_BUCKETS] = lane;
    return lane;
}

static void lane_drop_idle(struct queue *q, struct queue_lane *lane)
{
    struct queue_lane **at = &q->lane[lane->workspace % LANE_BUCKETS];
    if (lane->waiting > 0 || lane->out > 0)
        return;
    while (*at != lane)
        at = &(*at)->next_same;
    *at = lane->next_same;
    free(lane);
}

/* last in turn */
static void ring_join(struct queue *q, struct queue_lane *lane)
{
    if (q->turn == NULL) {
        lane->next = lane->prev = lane;
    } else {
        lane->next = q->turn->next;
        lane->prev = q->turn;
        lane->next->prev = q->turn->next = lane;
    }
    q->turn = lane;
}

static void ring_leave(struct queue *q, struct queue_lane *lane)
{
    lane->prev->next = lane->next;
    lane->next->prev = lane->prev;
    if (q->turn == lane)
        q->turn = lane->prev == lane ? NULL : lane->prev;
}

/* ---- lists ---- */

static void list_first(struct queue_list *list, struct queue_job *job)
{
    job->prev = NULL;
    job->next = list->first;
    *(list->first != NULL ? &list->first->prev : &list->last) = job;
    list->first = job;
}

static void list_last(struct queue_list *list, struct queue_job *job)
{
    job->next = NULL;
    job->prev = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = job;
    list->last = job;
}

static void list_take(struct queue_list *list, struct queue_job *job)
{
    *(job->prev != NULL ? &job->prev->next : &list->first) = job->next;
    *(job->next != NULL ? &job->next->prev : &list->last) = job->prev;
}

/* ---- jobs ---- */

static struct queue_job **bucket_of(struct queue *q, uint64_t report)
{
    return &q->bucket[(report * 0x9E3779B97F4A7C15u >> 32) % BUCKETS];
}

static bool has_share(const struct queue *q, const struct queue_lane *lane, unsigned a)
{
    unsigned free_places = q->capacity - q->auditor[a].running, held = lane->out_at[a];
    return held == 0 || (free_places > 1 && held < QUEUE_SHARE * free_places);
}

static bool may_go(const struct queue *q, const struct queue_job *job)
{
    unsigned a = auditor_of(q, job);
    if (!q->auditor[a].there || q->auditor[a].alone || job->host->running >= QUEUE_PER_HOST)
        return false;
    if (job->alone)
        return q->auditor[a].running == 0;
    return q->auditor[a].alone_waiting == 0 && q->auditor[a].running < q->capacity &&
           has_share(q, job->lane, a);
}

static struct queue_list *list_of(const struct queue_job *job)
{
    return &job->lane->list[job->hurried ? 0 : 1];
}

static void wait_in_lane(struct queue *q, struct queue_job *job)
{
    if (job->alone) /* everybody else of its auditor waits for it, so it must be seen */
        list_first(list_of(job), job);
    else
        list_last(list_of(job), job);
    if (job->lane->waiting++ == 0)
        ring_join(q, job->lane);
    q->auditor[auditor_of(q, job)].alone_waiting += job->alone;
    q->stuck = q->stuck && !may_go(q, job);
}

static void leave_lane(struct queue *q, struct queue_job *job)
{
    list_take(list_of(job), job);
    q->stuck = false;
    q->auditor[auditor_of(q, job)].alone_waiting -= job->alone;
    if (--job->lane->waiting == 0)
        ring_leave(q, job->lane);
}

static void go_out(struct queue *q, struct queue_job *job)
{
    unsigned a = auditor_of(q, job);
    job->auditor = (int)a;
    list_last(&q->auditor[a].out, job);
    q->auditor[a].running++;
    q->auditor[a].alone = job->alone;
    job->host->running++;
    job->lane->out++;
    job->lane->out_at[a]++;
}

/* it is not out any more */
static void come_in(struct queue *q, struct queue_job *job)
{
    unsigned a = (unsigned)job->auditor;
    q->stuck = false;
    list_take(&q->auditor[a].out, job);
    q->auditor[a].running--;
    if (job->alone)
        q->auditor[a].alone = false;
    job->host->running--;
    job->lane->out--;
    job->lane->out_at[a]--;
    job->auditor = -1;
}

static struct queue_job *job_new(struct queue *q, uint64_t workspace, uint64_t report,
                                 uint32_t attempt, struct str url)
{
    struct queue_job *job = malloc(sizeof(*job) + url.n);
    struct queue_lane *lane = lane_of(q, workspace);
    struct queue_host *host = host_of(q, url);
    if (job != NULL && lane != NULL && host != NULL) {
        *job = (struct queue_job){.workspace = workspace,
                                  .report = report,
                                  .attempt = attempt,
                                  .auditor = -1,
                                  .lane = lane,
                                  .host = host,
                                  .url_size = url.n};
        memcpy(job->url, url.p, url.n);
        host->jobs++;
        return job;
    }
    free(job);
    if (lane != NULL)
        lane_drop_idle(q, lane);
    if (host != NULL)
        host_drop_idle(q, host);
    return NULL;
}

bool queue_add(struct queue *q, uint64_t workspace, uint64_t report, uint32_t attempt, struct str url)
{
    struct queue_job *job = report > q->highest ? NULL : queue_find(q, report);
    if (job != NULL && job->attempt >= attempt)
        return true;
    if (job != NULL)
        queue_withdraw(q, job); /* where it is out, its findings give it back */
    job = job_new(q, workspace, report, attempt, url);
    if (job == NULL)
        return false;
    wait_in_lane(q, job);
    struct queue_job **bucket = bucket_of(q, report);
    job->next_same = *bucket;
    *bucket = job;
    q->highest = report > q->highest ? report : q->highest;
    q->size++;
    return true;
}

struct queue_job *queue_find(struct queue *q, uint64_t report)
{
    struct queue_job *job = *bucket_of(q, report);
    while (job != NULL && (job->report != report || job->withdrawn))
        job = job->next_same;
    return job;
}

struct queue_job *queue_out(struct queue *q, unsigned index, uint64_t report, uint64_t attempt)
{
    struct queue_job *job = *bucket_of(q, report);
    while (job != NULL &&
           (job->report != report || job->attempt != attempt || job->auditor != (int)index))
        job = job->next_same;
    return job;
}

void queue_each_out(struct queue *q, queue_job_fn *each, void *arg)
{
    for (unsigned a = 0; a < q->auditors; a++)
        for (struct queue_job *job = q->auditor[a].out.first; job != NULL; job = job->next)
            if (!job->withdrawn)
                each(arg, job);
}

void queue_hurry(struct queue *q, uint64_t report)
{
    struct queue_job *job = queue_find(q, report);
    if (job == NULL || job->hurried)
        return;
    if (job->auditor >= 0) {
        job->hurried = true;
        return;
    }
    leave_lane(q, job);
    job->hurried = true;
    wait_in_lane(q, job);
}

void queue_remove(struct queue *q, struct queue_job *job)
{
    struct queue_job **at = bucket_of(q, job->report);
    while (*at != job)
        at = &(*at)->next_same;
    *at = job->next_same;
    if (job->auditor < 0)
        leave_lane(q, job);
    else
        come_in(q, job);
    job->lane->withdrawn -= job->withdrawn;
    job->host->jobs--;
    host_drop_idle(q, job->host);
    lane_drop_idle(q, job->lane);
    q->size--;
    free(job);
}

bool queue_withdraw(struct queue *q, struct queue_job *job)
{
    if (job->auditor < 0) {
        queue_remove(q, job);
        return false;
    }
    job->lane->withdrawn += !job->withdrawn;
    job->withdrawn = true;
    return true;
}

size_t queue_withdrawn(struct queue *q, uint64_t workspace)
{
    const struct queue_lane *lane = lane_find(q, workspace);
    return lane == NULL ? 0 : lane->withdrawn;
}

void queue_auditor_came(struct queue *q, unsigned index)
{
    q->auditor[index].there = true;
    q->stuck = false;
}

void queue_back(struct queue *q, struct queue_job *job)
{
    if (job->withdrawn) {
        queue_remove(q, job);
        return;
    }
    come_in(q, job);
    wait_in_lane(q, job);
}

void queue_suspect(struct queue *q, unsigned index, uint64_t report)
{
    for (struct queue_job *job = q->auditor[index].out.first; job != NULL; job = job->next)
        if (job->report == report)
            job->named = q->auditor[index].named = true;
}

struct queue_job *queue_auditor_went(struct queue *q, unsigned index, bool blame)
{
    struct queue_job *guilty = NULL, *job;
    bool was_alone = q->auditor[index].alone, named = q->auditor[index].named;
    q->auditor[index].named = false;
    q->auditor[index].there = false;
    while ((job = q->auditor[index].out.first) != NULL) {
        if (job->withdrawn) {
            queue_remove(q, job);
            continue;
        }
        come_in(q, job);
        bool spared = blame && named && !job->named && !job->shaken;
        job->shaken = job->shaken || spared;
        job->alone = job->alone || (blame && !spared);
        job->named = false;
        wait_in_lane(q, job);
        if (blame && was_alone)
            guilty = job;
    }
    return guilty;
}

static struct queue_job *first_of(struct queue *q, const struct queue_list *list)
{
    unsigned looked = 0;
    for (struct queue_job *job = list->first; job != NULL && looked < LOOK_AHEAD; job = job->next, looked++)
        if (may_go(q, job))
            return job;
    return NULL;
}

struct queue_job *queue_next(struct queue *q)
{
    if (q->turn == NULL || q->stuck)
        return NULL;
    for (int which = 0; which < 2; which++) {
        struct queue_lane *lane = q->turn->next, *end = lane;
        do {
            struct queue_job *job = first_of(q, &lane->list[which]);
            if (job != NULL) {
                q->turn = lane; /* this one was served; the next lane is next */
                leave_lane(q, job);
                go_out(q, job);
                return job;
            }
            lane = lane->next;
        } while (lane != end);
    }
    q->stuck = true;
    return NULL;
}

size_t queue_size(const struct queue *q)
{
    return q->size;
}
