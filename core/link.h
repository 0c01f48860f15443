/*
 * A worker's link to the writer, on its event loop: changes go out in order and numbered, answers and events come in. When the writer goes
 * away the link comes back by itself, sends again what was not answered, and looks at every report somebody waits for, since an event may
 * have passed meanwhile. One per worker; freed at its end.
 */
#ifndef ASSAY_LINK_H
#define ASSAY_LINK_H

#include "core/worker.h"

/* a change nobody waits on for longer than this is answered 503; it may still happen */
#define LINK_ANSWER_MS 30000

struct link *link_new(struct worker *w);
void link_free(struct link *l);

bool link_connected(const struct link *l);

/* link_flush(l): send what the loop's turn has queued; call once a turn. */
void link_flush(struct link *l);

/* link_tick(l): reconnect, give up on what waits too long. link_wake_ms(l): how long the loop may sleep, at most ${most}. */
void link_tick(struct link *l);
int link_wake_ms(const struct link *l, int most);

/* link_release(l): the worker drains: whoever waits for a report is answered now. */
void link_release(struct link *l);

/* link_send(l, change): a change nobody waits for. */
void link_send(struct link *l, const struct store_change *change);

/* link_waiting(l): requests held for an answer or a report. */
size_t link_waiting(const struct link *l);

/*
 * What a request waits for. The link and the jobs of threads (thread_jobs.h) own it; the request
 * only points at it (r->pending), and a request that ends sets pending->request to NULL.
 */
struct pending {
    struct request *request;
};

#endif
