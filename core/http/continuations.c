#include "core/http/continuations.h"

#include "core/http/cluster_reads.h"
#include "core/http/http.h"
#include "core/http/request.h"
#include "core/http/reply.h"

static void on_change(struct waiter *w, enum change_outcome outcome,
                      const struct store_answer *answer)
{
    struct request *r = request_of(w);
    if (outcome == CHANGE_ANSWERED && answer->status == STORE_AWAY)
        reply_retry(r, "No node of the cluster leads at the moment. Nothing was changed.");
    else if (outcome == CHANGE_ANSWERED)
        r->change_done(r, answer);
    else if (outcome == CHANGE_REPEATED)
        reply_error(r, ERR_CONFLICT,
                    "The first request with this Idempotency-Key has not ended. Retry later.");
    else
        reply_error(
            r, ERR_UNAVAILABLE,
            "The change was not confirmed in time and may still happen. Read the record "
            "before sending it again, or send it again with the Idempotency-Key of before.");
}

void request_change(struct request *r, const struct store_change *change, request_change_fn *done)
{
    if (cluster_reads_log_is_away(r->http)) {
        reply_retry(r, "The log of the cluster does not answer. Nothing was changed.");
        return;
    }
    r->change_done = done;
    r->changed = true;
    if (!writer_client_change(r->http->writer, change, &r->wait, on_change))
        reply_retry(r, "Too many changes wait for the writer. Nothing was changed.");
}

static void on_report(struct waiter *w)
{
    struct request *r = request_of(w);
    r->await_done(r);
}

void request_await(struct request *r, uint64_t report, unsigned timeout_ms, request_fn *done)
{
    r->await_done = done;
    if (!writer_client_await(r->http->writer, r->workspace, report, timeout_ms, &r->wait,
                             on_report))
        done(r);
}

void request_run_in_pool(struct request *r, struct pool_job *job)
{
    thread_pool_send(r->http->body_pool, job, &r->wait);
}

void request_query(struct request *r, struct query *query)
{
    if (!queries_send(r->http->queries, query, &r->wait))
        reply_retry(r, "Too many lists and searches are waiting. Retry in a second.");
}

void query_late(struct request *r)
{
    reply_retry(r, "This list or search took too long and was stopped. Narrow it or retry later.");
}
