/*
 * The pipeline's limiter: who is charged under which limiter, the headers that tell of it, and the
 * refusal. Worker processes only.
 *
 * A request is charged once: in its place in the pipeline, or, where it is answered before that
 * (404, 401, 413 …), when its answer is sent, and then to its address. So every response of a
 * limited surface has the headers, and no handler knows of limiters.
 */
#ifndef ASSAY_HTTP_LIMIT_H
#define ASSAY_HTTP_LIMIT_H

#include "core/http/request.h"

struct limiting;
struct loop;

/* limiting_new(loop): this worker's view of the limits in force and of the table; NULL with errno. */
struct limiting *limiting_new(const struct loop *loop);
void limiting_free(struct limiting *l);

/* limiting_limits(l): the limits in force; borrowed until the loop turns. */
const struct limiters *limiting_limits(struct limiting *l);

/* limiting_tick(l, now_ms): tell of refusals that were left out of the log; now and then. */
void limiting_tick(struct limiting *l, int64_t now_ms);

/*
 * limit_expect(r): once its route and its address are known; where its limiter goes by nothing
 * else, the table fetches meanwhile what limit_charge will look at.
 */
void limit_expect(struct request *r);

/*
 * limit_charge(r): charge the request, unless that was done. False: it is refused, and is to be
 * answered with ERR_RATE_LIMITED. What is not known of the caller by now (credential, agent) is
 * replaced by its address.
 */
bool limit_charge(struct request *r) __attribute__((warn_unused_result));

/* limit_name(r): the limiter whose headers its answer has, or NULL. */
const char *limit_name(const struct request *r);

/*
 * limit_headers(r, status): the headers that ${r} was charged to have; nothing where no limiter is
 * on it.
 */
void limit_headers(struct request *r);

#endif
