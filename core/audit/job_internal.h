/*
 * A job: one page with its requests, from audit_add to its callback. audit.c has the engine, job.c
 * the queues and endings, job_responses.c the handling of responses, schedule.c starts and
 * deadlines.
 */
#ifndef ASSAY_JOB_INTERNAL_H
#define ASSAY_JOB_INTERNAL_H

#include "core/audit/audit.h"
#include "core/audit/fetch_internal.h"
#include "core/shm/host_slots.h"

/* The requests of a page. */
enum request_kind {
    REQUEST_PAGE,
    REQUEST_ROBOTS,
    REQUEST_MISSING,
    REQUEST_FAVICON,
    REQUEST_HTTP_FORM,
    REQUEST_KINDS
};

enum transfer_state { TRANSFER_IDLE, TRANSFER_WAITING, TRANSFER_RUNNING, TRANSFER_ENDED };

struct job;

struct transfer {
    struct job *job;
    enum request_kind kind;
    enum transfer_state state;
    struct fetch *fetch;
    struct url url;
    unsigned hops;
    bool unverified;           /* fetch without verifying the certificate */
    bool retried;              /* once, after a Retry-After */
    bool has_host_slot;        /* holds a slot of its host on this machine */
    bool has_cluster_slot;     /* holds one of the cluster */
    uint64_t slot_question;    /* number of a question for one that is not answered; 0: none */
    int64_t asked_at_ms;       /* while it is not answered */
    int64_t ask_at_ms;         /* not before this time */
    int64_t not_before_ms;     /* while it waits: not before this time, after a Retry-After */
    int64_t slot_wanted_at_ms; /* while it waits for a host slot: since when; 0: it does not */
    int64_t until_ms;          /* while a probe runs: its deadline */
};

struct job {
    struct job *next;
    uint64_t id;
    audit_done_fn *done;
    void *arg;
    struct url url; /* as added */
    const char *refusal;
    struct transfer transfers[REQUEST_KINDS];
    struct facts facts;
    char reason[160]; /* why the page's certificate did not verify */
    bool head_received, probing, parsed, withdrawn;
    int64_t began_ms;
    /* For fetch, probes and parsing. Extended while the page waits for others. */
    int64_t deadline_ms;
    int64_t waited_ms; /* sum of extensions of the deadline */
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
    struct host_slots *host_slots, *own_host_slots; /* own: NULL if they are shared */
    const struct audit_slot_asker *slot_asker;      /* NULL: no cluster */
    uint64_t slot_questions;
    pid_t pid;
    struct jobs waiting, running, finished;
    bool more; /* ended transfers are left for the next call */
};

void jobs_init(struct jobs *q);
void jobs_add(struct jobs *q, struct job *job);
/* Remove *at, a link of ${q}. */
struct job *jobs_take(struct jobs *q, struct job **at);

void job_free(struct audit *audit, struct job *job);

/*
 * Take a slot of the host; false: none is free, or the answer of the cluster is not there. A page
 * that was redirected from another site takes it as redirected.
 */
bool transfer_take_slot(struct audit *audit, struct transfer *t, int64_t now);
void transfer_free_slot(struct audit *audit, struct transfer *t);

/* A question for a slot is not answered: the time of the page does not run. */
bool job_is_asking(const struct job *job);

/* Stop the request, if it runs, and free its host slot. */
void transfer_stop(struct audit *audit, struct transfer *t);

/* End the page with a code of the API and a sentence; or with those for ${error}. */
void job_fail(struct audit *audit, struct job *job, const char *code, const char *message);
void job_fail_as(struct audit *audit, struct job *job, enum fetch_error error);

/* audit_withdraw: stop the transfers; then, at the deadline, end the job. */
void job_withdraw(struct audit *audit, struct job *job);
void job_end_withdrawn(struct audit *audit, struct job *job);

/*
 * Move the job to the finished ones if no request of it waits or runs. It is graded when the engine
 * calls back.
 */
void job_finish_if_done(struct audit *audit, struct job *job);

/* ${job} waited ${ms} for others: extend its deadlines, by at most audit.timeout in all. */
void job_extend_deadline(const struct audit *audit, struct job *job, int64_t ms);
/* Parsing or checking ${but} blocked all other pages since ${since_ms}: extend their deadlines. */
void jobs_extend_deadlines(struct audit *audit, const struct job *but, int64_t since_ms);

/*
 * Alarm for parsing and checks. Both have deadlines of their own; if one hangs all the same, the
 * alarm ends the process.
 */
void parse_alarm_start(const struct job *job);
void parse_alarm_stop(void);

/* Grade finished pages and call their callbacks. */
void job_call_finished(struct audit *audit);

/* A fetch_head_fn, with the transfer as its argument. */
void job_head_received(void *transfer);
/* The final URL is known: request what the checks need from its origin. */
void job_probe(struct audit *audit, struct job *job);
void transfer_ended(struct audit *audit, struct transfer *t, CURLcode code);

/* End overdue pages, admit waiting ones, start transfers. */
void schedule(struct audit *audit);
/* How long the engine may sleep unless a descriptor is ready, at most ${most} ms. */
int schedule_idle_ms(const struct audit *audit, int most);

#endif
