/* The hosts that have grading jobs, for the job queue (job_queue.h). */
#ifndef ASSAY_WRITER_JOB_HOSTS_H
#define ASSAY_WRITER_JOB_HOSTS_H

#include "store/bytes.h"

#define JOB_HOST_BUCKETS 16384

struct job_host {
    uint64_t hash; /* keyed, so that nobody can choose a name that collides */
    struct job_host *next_same;
    size_t jobs;
    unsigned running;
};

struct job_hosts {
    uint64_t seed;
    struct job_host *bucket[JOB_HOST_BUCKETS];
};

/* job_hosts_init(h): ${h} is zeroed. */
void job_hosts_init(struct job_hosts *h);

/*
 * job_host_of(h, url): the host of a URL, found or made; NULL: out of memory.
 * job_host_drop_idle(h, host): free it if it has no jobs.
 */
struct job_host *job_host_of(struct job_hosts *h, struct str url);
void job_host_drop_idle(struct job_hosts *h, struct job_host *host);

#endif
