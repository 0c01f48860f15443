#include "core/http/admission_queue.h"

#include "core/conn/acceptor.h"
#include "core/http/http.h"

bool admission_take(struct admission *turn, struct request *r, request_fn *go)
{
    struct admission_queue *all = &r->http->admissions;
    struct admission **end = &all->first;
    size_t waiting = 0;
    *turn = (struct admission){.of = all, .request = r, .go = go, .given_up_at_ms = r->http->loop->now_ms + WRITER_ANSWER_MS};
    if (!all->taken) {
        all->taken = turn->taken = true;
        return true;
    }
    for (; *end != NULL; end = &(*end)->next)
        waiting++;
    if (waiting >= ADMISSIONS_WAITING) {
        reply_error(r, ERR_UNAVAILABLE, "Too many large changes are waiting. This one was not processed. Retry later.");
        return false;
    }
    turn->waits = true;
    *end = turn;
    return false;
}

static void leave(struct admission *turn)
{
    struct admission **at = &turn->of->first;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    turn->waits = false;
}

void admission_release(struct admission *turn)
{
    if (turn->waits)
        leave(turn);
    if (!turn->taken)
        return;
    struct admission *next = turn->of->first;
    turn->taken = false;
    turn->of->taken = next != NULL;
    if (next == NULL)
        return;
    leave(next);
    next->taken = true;
    next->go(next->request);
}

void admission_queue_tick(struct admission_queue *all, uint64_t now_ms)
{
    for (struct admission *turn = all->first, *next; turn != NULL; turn = next) {
        next = turn->next;
        if (turn->given_up_at_ms > now_ms && !turn->request->wait.conn->vanished)
            continue;
        leave(turn);
        reply_error(turn->request, ERR_UNAVAILABLE, "The request timed out in the queue and was not processed. Retry later.");
    }
}
