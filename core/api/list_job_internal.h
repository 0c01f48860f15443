/*
 * Lists of reports and projects: read and rendered in a query thread (query_threads.h), sent by the
 * event loop. Worker processes only.
 */
#ifndef ASSAY_API_LIST_JOB_H
#define ASSAY_API_LIST_JOB_H

#include "core/api/api_internal.h"
#include "core/async/query_threads.h"

struct list_job;

/*
 * find(job, s): query ${s} with a callback that begins with list_job_result. Runs in the thread;
 * runs again if the query was stopped and restarted.
 */
typedef void list_job_fn(struct list_job *job, struct store *s);

struct list_job {
    struct query query;
    struct store_list_query list;
    list_job_fn *find;
    struct store *store;             /* the thread's, while the query runs */
    struct str name, path, base_url; /* name: the project's name or id as sent; p NULL: none */
    /* result, from one snapshot */
    enum store_status status;
    uint64_t version, total;
    size_t count;
    struct buf body;
    uint64_t lost; /* STORE_DAMAGED: store_lost_segment */
    char why[512]; /* store_why of the thread's store, unless STORE_OK */
    char text[];   /* copies of the query's strings */
};

/*
 * list_job_start(r, list, path, name, find): reply with the list at ${path}. ${list} and ${name}
 * are copied.
 */
void list_job_start(struct request *r, const struct store_list_query *list, struct str path,
                    struct str name, list_job_fn *find);

/*
 * list_job_result(job, status, total, count): store the result and begin the body. False: there
 * are no items to render.
 */
bool list_job_result(struct list_job *job, enum store_status status, uint64_t total, size_t count);

#endif
