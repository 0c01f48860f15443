#include "core/http/admission_queue.h"

#include "core/conn/connection.h"
#include "core/http/http.h"
#include "core/http/reply.h"

bool admission_take(struct admission *admission, struct request *r, request_fn *start)
{
    struct admission_queue *queue = &r->http->admissions;
    struct admission **end = &queue->first;
    size_t waiting = 0;
    *admission = (struct admission){.queue = queue,
                                    .request = r,
                                    .start = start,
                                    .deadline_ms = r->http->loop->now_ms + WRITER_ANSWER_MS};
    if (!queue->busy) {
        queue->busy = admission->running = true;
        return true;
    }
    for (; *end != NULL; end = &(*end)->next)
        waiting++;
    if (waiting >= ADMISSIONS_QUEUED_MAX) {
        reply_error(r, ERR_UNAVAILABLE,
                    "Too many large changes are waiting. This one was not processed. Retry later.");
        return false;
    }
    admission->queued = true;
    *end = admission;
    return false;
}

static void dequeue(struct admission *admission)
{
    struct admission **at = &admission->queue->first;
    while (*at != admission)
        at = &(*at)->next;
    *at = admission->next;
    admission->queued = false;
}

void admission_release(struct admission *admission)
{
    if (admission->queued)
        dequeue(admission);
    if (!admission->running)
        return;
    struct admission *next = admission->queue->first;
    admission->running = false;
    admission->queue->busy = next != NULL;
    if (next == NULL)
        return;
    dequeue(next);
    next->running = true;
    next->start(next->request);
}

void admission_queue_tick(struct admission_queue *queue, uint64_t now_ms)
{
    for (struct admission *admission = queue->first, *next; admission != NULL; admission = next) {
        next = admission->next;
        if (admission->deadline_ms > now_ms && !admission->request->wait.conn->hung_up)
            continue;
        dequeue(admission);
        reply_error(admission->request, ERR_UNAVAILABLE,
                    "The request timed out in the queue and was not processed. Retry later.");
    }
}
