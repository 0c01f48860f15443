/*
 * A page on its way: the requests it is made of, and how they end. Behind audit.h; audit.c has the engine's life, job.c what every page has,
 * job_answers.c what its requests' answers mean, schedule.c who may start and who must end.
 */
#ifndef ASSAY_JOB_INTERNAL_H
#define ASSAY_JOB_INTERNAL_H

#include "core/audit/audit.h"
#include "core/audit/fetch_internal.h"
#include "core/shm/host_slots.h"

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
    bool head_received, probing, read, withdrawn;
    int64_t began_ms;
    int64_t deadline_ms; /* of all: fetch, probes and parsing. Moved on by what the page waits for others */
    int64_t waited_ms;   /* so far: for places, and while other pages were read */
    const char *error_code;
    char error_message[256];
};

struct jobs {
    struct job *first, **last;
    size_t count;
};

struct audit {
    const struct conf *conf;
    CURLM *multi;
    struct guard *guard;
    struct host_slots *places, *own_places; /* the latter: NULL where they are shared */
    pid_t pid;
    struct jobs waiting, running, finished;
    bool more; /* transfers have ended that were left for the next turn */
};

/* ---- job.c ---- */

void jobs_init(struct jobs *q);
void jobs_add(struct jobs *q, struct job *job);
/* Take *at, which is a link of ${q}, out of it. */
struct job *jobs_take(struct jobs *q, struct job **at);

void job_free(struct audit *audit, struct job *job);

/* Its connection is closed, or will never be: let another have the place. */
void transfer_stop(struct audit *audit, struct transfer *t);

/* The page ends, with a code of api.md §4 and a sentence; as a request's ${error} says. */
void job_fail(struct audit *audit, struct job *job, const char *code, const char *message);
void job_fail_as(struct audit *audit, struct job *job, enum fetch_error error);

/* audit_withdraw's two steps: stop the transfers; end the job, when its deadline has come. */
void job_withdraw(struct audit *audit, struct job *job);
void job_end_withdrawn(struct audit *audit, struct job *job);

/* Nothing of it runs or waits any more: it is graded when the engine calls back. */
void job_finish_if_done(struct audit *audit, struct job *job);

/* ${job} waited for others, which its report's time is not to pay for: but for audit.timeout at most. */
void job_extend_deadline(const struct audit *audit, struct job *job, int64_t ms);
/* One page was read or judged, and all others waited. */
void jobs_extend_deadlines(struct audit *audit, const struct job *but, int64_t since_ms);

/* Reading and judging give up by themselves; should a step of them never end, the process does. */
void parse_alarm_start(const struct job *job);
void parse_alarm_stop(void);

/* Grade what has come, and tell the callers of all that are finished. */
void job_call_finished(struct audit *audit);

/* ---- job_answers.c ---- */

/* The head of an HTML page that will be graded has come: a fetch_head_fn, its argument the transfer. */
void job_head_received(void *transfer);
/* The final URL is known: ask its origin for what the checks need. */
void job_probe(struct audit *audit, struct job *job);
void transfer_ended(struct audit *audit, struct transfer *t, CURLcode code);

/* ---- schedule.c ---- */

/* End what is overdue, admit pages, start what may start. */
void schedule(struct audit *audit);
/* How long nothing is to be done unless something happens, at most ${most}. */
int schedule_idle_ms(const struct audit *audit, int most);

#endif
