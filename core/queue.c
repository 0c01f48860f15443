#include "queue.h"

#include <stdlib.h>

#define BUCKETS 65536
#define HOSTS 4096
/* how deep a turn looks into one workspace's lane for a job whose host is free */
#define LOOK_AHEAD 64

struct queue_list {
    struct queue_job *first, *last;
};

/* a workspace's waiting jobs: those somebody waits for, and the others */
struct queue_lane {
    uint64_t workspace;
    struct queue_list list[2]; /* [0] hurried */
    struct queue_lane *next;   /* ring of lanes that have waiting jobs */
    size_t waiting;
};

struct queue {
    unsigned auditors, capacity;
    struct {
        bool there;
        bool alone;             /* holds a job that runs alone */
        bool named;             /* said which of its jobs it dies of */
        unsigned alone_waiting; /* such jobs that wait: the others let it run empty first */
        unsigned running;
    } auditor[QUEUE_AUDITORS];
    uint8_t host_running[HOSTS]; /* a shared cell only makes two hosts share their two */
    struct queue_job *bucket[BUCKETS];
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

static uint32_t hash_host(struct str url)
{
    /* FNV-1a over what stands between "://" and the port, or the next "/", "?" or "#"; the colons of an IPv6 address are within brackets */
    uint32_t h = 2166136261u;
    size_t at = 0;
    while (at + 3 <= url.n && memcmp(url.p + at, "://", 3) != 0)
        at++;
    at = at + 3 <= url.n ? at + 3 : 0;
    const char end = at < url.n && url.p[at] == '[' ? ']' : ':';
    for (; at < url.n && url.p[at] != '/' && url.p[at] != '?' && url.p[at] != '#' && url.p[at] != end; at++)
        h = (h ^ (uint8_t)url.p[at]) * 16777619u;
    return h ^ h >> 15;
}

static struct queue_job **bucket_of(struct queue *q, uint64_t report)
{
    return &q->bucket[(report * 0x9E3779B97F4A7C15u >> 32) % BUCKETS];
}

static struct queue_lane *lane_of(struct queue *q, uint64_t workspace)
{
    struct queue_lane *l = q->turn;
    if (l != NULL)
        do {
            if (l->workspace == workspace)
                return l;
            l = l->next;
        } while (l != q->turn);
    l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->workspace = workspace;
    if (q->turn == NULL) {
        q->turn = l->next = l;
    } else {
        l->next = q->turn->next;
        q->turn->next = l;
        q->turn = l; /* last in turn */
    }
    return l;
}

static void lane_drop(struct queue *q, struct queue_lane *lane)
{
    struct queue_lane *before = lane;
    while (before->next != lane)
        before = before->next;
    before->next = lane->next;
    if (q->turn == lane)
        q->turn = before == lane ? NULL : before;
    free(lane);
}

static bool may_go(const struct queue *q, const struct queue_job *job)
{
    unsigned a = job->host % q->auditors;
    if (!q->auditor[a].there || q->auditor[a].alone || q->host_running[job->host % HOSTS] >= QUEUE_PER_HOST)
        return false;
    if (job->alone)
        return q->auditor[a].running == 0;
    return q->auditor[a].alone_waiting == 0 && q->auditor[a].running < q->capacity;
}

static bool wait_in_lane(struct queue *q, struct queue_job *job)
{
    struct queue_lane *lane = lane_of(q, job->workspace);
    if (lane == NULL)
        return false;
    struct queue_list *list = &lane->list[job->hurried ? 0 : 1];
    job->lane = lane;
    job->auditor = -1;
    if (job->alone) {
        /* at the head: everybody else of its auditor waits for it, so it must be seen */
        job->prev = NULL;
        job->next = list->first;
        *(list->first != NULL ? &list->first->prev : &list->last) = job;
        list->first = job;
    } else {
        job->next = NULL;
        job->prev = list->last;
        *(list->last != NULL ? &list->last->next : &list->first) = job;
        list->last = job;
    }
    lane->waiting++;
    q->auditor[job->host % q->auditors].alone_waiting += job->alone;
    q->stuck = q->stuck && !may_go(q, job);
    return true;
}

static void leave_lane(struct queue *q, struct queue_job *job)
{
    struct queue_lane *lane = job->lane;
    struct queue_list *list = &lane->list[job->hurried ? 0 : 1];
    if (job->prev != NULL)
        job->prev->next = job->next;
    else
        list->first = job->next;
    if (job->next != NULL)
        job->next->prev = job->prev;
    else
        list->last = job->prev;
    job->lane = NULL;
    q->stuck = false;
    q->auditor[job->host % q->auditors].alone_waiting -= job->alone;
    if (--lane->waiting == 0)
        lane_drop(q, lane);
}

/* it is not out any more */
static void come_in(struct queue *q, struct queue_job *job)
{
    unsigned a = (unsigned)job->auditor;
    q->stuck = false;
    q->auditor[a].running--;
    q->host_running[job->host % HOSTS]--;
    if (job->alone)
        q->auditor[a].alone = false;
    job->auditor = -1;
}

bool queue_add(struct queue *q, uint64_t workspace, uint64_t report, uint32_t attempt, struct str url)
{
    struct queue_job *job = report > q->highest ? NULL : queue_find(q, report);
    if (job != NULL && job->attempt >= attempt)
        return true;
    if (job != NULL)
        queue_remove(q, job);
    job = malloc(sizeof(*job) + url.n);
    if (job == NULL)
        return false;
    *job = (struct queue_job){
        .workspace = workspace, .report = report, .attempt = attempt, .host = hash_host(url), .auditor = -1, .url_size = url.n};
    memcpy(job->url, url.p, url.n);
    if (!wait_in_lane(q, job)) {
        free(job);
        return false;
    }
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
    while (job != NULL && job->report != report)
        job = job->next_same;
    return job;
}

void queue_hurry(struct queue *q, uint64_t report)
{
    struct queue_job *job = queue_find(q, report);
    if (job == NULL || job->hurried)
        return;
    if (job->lane == NULL) {
        job->hurried = true;
        return;
    }
    leave_lane(q, job);
    job->hurried = true;
    if (!wait_in_lane(q, job))
        queue_remove(q, job); /* out of memory: the row in the store brings it back */
}

void queue_remove(struct queue *q, struct queue_job *job)
{
    struct queue_job **at = bucket_of(q, job->report);
    while (*at != job)
        at = &(*at)->next_same;
    *at = job->next_same;
    if (job->lane != NULL)
        leave_lane(q, job);
    else if (job->auditor >= 0)
        come_in(q, job);
    q->size--;
    free(job);
}

void queue_auditor_came(struct queue *q, unsigned index)
{
    q->auditor[index].there = true;
    q->stuck = false;
}

void queue_back(struct queue *q, struct queue_job *job)
{
    come_in(q, job);
    if (!wait_in_lane(q, job))
        queue_remove(q, job);
}

void queue_suspect(struct queue *q, unsigned index, uint64_t report)
{
    struct queue_job *job = queue_find(q, report);
    if (job == NULL || job->auditor != (int)index)
        return;
    job->named = true;
    q->auditor[index].named = true;
}

struct queue_job *queue_auditor_went(struct queue *q, unsigned index, bool blame)
{
    struct queue_job *guilty = NULL;
    bool was_alone = q->auditor[index].alone, named = q->auditor[index].named;
    q->auditor[index].named = false;
    q->auditor[index].there = false;
    for (size_t i = 0; i < BUCKETS && q->auditor[index].running > 0; i++)
        for (struct queue_job *job = q->bucket[i], *next; job != NULL; job = next) {
            next = job->next_same;
            if (job->auditor != (int)index)
                continue;
            come_in(q, job);
            bool spared = blame && named && !job->named && !job->shaken;
            job->shaken = job->shaken || spared;
            job->alone = job->alone || (blame && !spared);
            job->named = false;
            if (!wait_in_lane(q, job))
                queue_remove(q, job);
            else if (blame && was_alone)
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
                unsigned a = job->host % q->auditors;
                job->auditor = (int)a;
                q->auditor[a].running++;
                q->auditor[a].alone = job->alone;
                q->host_running[job->host % HOSTS]++;
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
