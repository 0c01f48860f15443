#include "core/async/log_waits.h"

#include <stdlib.h>

struct log_wait {
    struct pending pending;
    struct log_wait *next;
    uint64_t entry, since_us, deadline_ms;
    log_wait_done_fn *done;
};

struct log_waits {
    struct loop *loop;
    struct cluster_score *score;
    struct log_wait *first;
    size_t count;
    uint64_t told_turn; /* the writer tells when the turn is another one; UINT64_MAX: not asked */
    bool wants_ask;     /* a wait needs a confirmation for which it is too early to ask */
};

enum log_verdict log_verdict(const struct cluster_view *view, uint64_t entry, uint64_t since_us)
{
    const bool confirmed = view->role >= CLUSTER_FOLLOWS && view->confirmed_us > since_us;
    if (entry == LOG_WAIT_HEAD)
        return view->current_us > since_us ? LOG_REACHED
               : confirmed                 ? LOG_NOT_YET
                                           : LOG_UNCONFIRMED;
    if (entry <= view->applied)
        return LOG_REACHED;
    if (entry <= view->head)
        return LOG_NOT_YET;
    return confirmed ? LOG_ABOVE_HEAD : LOG_UNCONFIRMED;
}

struct log_waits *log_waits_new(struct loop *loop)
{
    struct log_waits *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->score = &loop->process->scoreboard->cluster;
    l->told_turn = UINT64_MAX;
    return l;
}

void log_waits_free(struct log_waits *l)
{
    while (l != NULL && l->first != NULL) {
        struct log_wait *wait = l->first;
        l->first = wait->next;
        free(wait);
    }
    free(l);
}

bool log_waits_add(struct log_waits *l, uint64_t entry, uint64_t since_us, unsigned timeout_ms,
                   struct waiter *w, log_wait_done_fn *done)
{
    struct log_wait *wait = malloc(sizeof(*wait));
    if (wait == NULL)
        return false;
    *wait = (struct log_wait){.pending = {w},
                              .next = l->first,
                              .entry = entry,
                              .since_us = since_us,
                              .deadline_ms = l->loop->now_ms + timeout_ms,
                              .done = done};
    l->first = wait;
    l->count++;
    waiter_suspend(w, &wait->pending);
    return true;
}

/* Remove it and resume its request. */
static void end_wait(struct log_waits *l, struct log_wait **at, enum log_verdict verdict)
{
    struct log_wait *wait = *at;
    struct waiter *w = wait->pending.waiter;
    log_wait_done_fn *done = wait->done;
    *at = wait->next;
    l->count--;
    free(wait);
    if (w == NULL)
        return;
    waiter_resume(w);
    done(w, verdict);
}

/* ${newest_us}: when the newest wait that needs a confirmation began; 0: none does. */
static void ask(struct log_waits *l, struct writer_client *writer, uint64_t turn,
                uint64_t newest_us)
{
    if (!writer_client_connected(writer))
        return;
    const bool wanted = newest_us > score_get(l->score->asked_us),
               may = wanted && cluster_score_may_ask(l->score, clock_mono_us(), LOG_ASK_US);
    l->wants_ask = wanted && !may;
    if (may || l->told_turn != turn)
        writer_client_ask_position(writer, turn, may);
    l->told_turn = turn;
}

static bool is_over(const struct log_waits *l, const struct log_wait *wait,
                    enum log_verdict verdict)
{
    return verdict == LOG_REACHED || verdict == LOG_ABOVE_HEAD ||
           wait->deadline_ms <= l->loop->now_ms || waiter_is_unwanted(wait->pending.waiter);
}

void log_waits_look(struct log_waits *l, struct writer_client *writer)
{
    struct cluster_view view;
    uint64_t newest_us = 0;
    l->wants_ask = false;
    if (l->first == NULL)
        return;
    const uint64_t turn = cluster_score_read(l->score, &view);
    for (struct log_wait **at = &l->first; *at != NULL;) {
        const struct log_wait *wait = *at;
        const enum log_verdict verdict = log_verdict(&view, wait->entry, wait->since_us);
        if (is_over(l, wait, verdict)) {
            end_wait(l, at, verdict);
            continue;
        }
        if (verdict == LOG_UNCONFIRMED && wait->since_us > newest_us)
            newest_us = wait->since_us;
        at = &(*at)->next;
    }
    if (l->first != NULL)
        ask(l, writer, turn, newest_us);
}

int log_waits_wake_ms(const struct log_waits *l, int most)
{
    return l->wants_ask && most > LOG_ASK_US / 1000 ? LOG_ASK_US / 1000 : most;
}

size_t log_waits_count(const struct log_waits *l)
{
    return l->count;
}
