/*
 * A worker's link to the writer, on its event loop: changes go out in order and numbered, answers and events come in. When the writer goes
 * away the link comes back by itself, sends again what was not answered, and looks at every report somebody waits for, since an event may
 * have passed meanwhile. One per worker; freed at its end.
 */
#ifndef ASSAY_LOOP_WRITER_CLIENT_H
#define ASSAY_LOOP_WRITER_CLIENT_H

#include "core/worker/worker.h"

/* a change nobody waits on for longer than this is answered 503; it may still happen */
#define WRITER_ANSWER_MS 30000

struct writer_client *writer_client_new(struct worker *w);
void writer_client_free(struct writer_client *l);

bool writer_client_connected(const struct writer_client *l);

/* writer_client_flush(l): send what the loop's turn has queued; call once a turn. */
void writer_client_flush(struct writer_client *l);

/* writer_client_tick(l): reconnect, give up on what waits too long. writer_client_wake_ms(l): how long the loop may sleep, at most ${most}. */
void writer_client_tick(struct writer_client *l);
int writer_client_wake_ms(const struct writer_client *l, int most);

/* writer_client_release(l): the worker drains: whoever waits for a report is answered now. */
void writer_client_release(struct writer_client *l);

/* writer_client_send(l, change): a change nobody waits for. */
void writer_client_send(struct writer_client *l, const struct store_change *change);

/* writer_client_waiting(l): requests held for an answer or a report. */
size_t writer_client_waiting(const struct writer_client *l);

/*
 * What a request waits for. The link and the jobs of threads (thread_jobs.h) own it; the request
 * only points at it (r->pending), and a request that ends sets pending->request to NULL.
 */
struct pending {
    struct request *request;
};

#endif
