#include "later.h"

#include "link.h"
#include "http/request.h"

#include <stdlib.h>
#include <sys/resource.h>

#ifndef SLICE_US
#define SLICE_US 2000
#endif
#define SLICES_PATIENT 128 /* more than so many become longer, so that work ends that others' changes add to all the time */

struct later {
    struct pending pending;
    struct later *next;
    request_fn *work;
};

/* a page that came from the disk counts as much as so many that lay in memory, where this process had not looked at them yet */
#ifndef FAULTS_A_READ
#define FAULTS_A_READ 64
#endif

static long faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_majflt * FAULTS_A_READ + usage.ru_minflt : 0;
}

/* The request may be gone when its work has been done. */
void request_slice(struct request *r, request_fn *work)
{
    r->slice_faults = faults();
    unsigned doublings = r->slices++ / SLICES_PATIENT;
    r->slice_until_us = clock_mono_us() + ((uint64_t)SLICE_US << (doublings < 10 ? doublings : 10));
    work(r);
}

bool request_pause(void *arg)
{
    const struct request *r = arg;
    return clock_mono_us() >= r->slice_until_us;
}

bool request_waited(void *arg)
{
    const struct request *r = arg;
    return faults() - r->slice_faults >= FAULTS_A_READ;
}

/*
 * What goes on goes on to its end before the next one does: what it was about to read again lies in memory, and what it keeps for itself
 * between turns is not crowded out by others'.
 */
void request_later(struct request *r, request_fn *work)
{
    struct worker *w = r->worker;
    struct later *later = malloc(sizeof(*later));
    if (later == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    struct later **at = &w->later;
    while (*at != NULL && !w->going_on)
        at = &(*at)->next;
    *later = (struct later){.pending = {r}, .next = *at, .work = work};
    *at = later;
    request_wait(r, &later->pending);
}

void later_run(struct worker *w)
{
    struct later *later = w->later;
    if (later == NULL)
        return;
    struct request *r = later->pending.request;
    request_fn *work = later->work;
    w->later = later->next;
    free(later);
    if (r == NULL)
        return;
    request_go_on(r);
    w->going_on = true;
    request_slice(r, work);
    w->going_on = false;
    store_read_end(w->store);
}

int later_wait_ms(const struct worker *w, int most)
{
    return w->later != NULL ? 0 : most;
}

void later_free(struct worker *w)
{
    while (w->later != NULL) {
        struct later *later = w->later;
        w->later = later->next;
        free(later);
    }
}
