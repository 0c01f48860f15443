/*
 * A small web server on loopback for tests of grading. One thread accepts; one thread per
 * connection answers with the test's function. One request per connection.
 */
#ifndef ASSAY_T_AUDIT_ORIGIN_H
#define ASSAY_T_AUDIT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct origin;
struct origin_answer; /* a request that is being answered */

/* ${path}: path and query as sent. */
typedef void origin_fn(struct origin_answer *a, const char *path);

/*
 * origin_open(answer, tls): binds a free port of 127.0.0.1; with ${tls}, a self-signed certificate
 * for "origin.test". origin_start: accepts connections. origin_close: ends every thread.
 */
struct origin *origin_open(origin_fn *answer, bool tls);
/*
 * origin_open_everywhere(answer, port, tls): binds that port of every address. ${tls} may be NULL;
 * the origin owns it.
 */
struct ssl_ctx_st;
struct origin *origin_open_everywhere(origin_fn *answer, uint16_t port, struct ssl_ctx_st *tls);
void origin_start(struct origin *o);
/*
 * origin_claim_h2(o): negotiates HTTP/2 over TLS. The preface of the client is then a request of
 * path "*"; its answer is a sequence of frames.
 */
void origin_claim_h2(struct origin *o);
void origin_close(struct origin *o);

uint16_t origin_port(const struct origin *o);
/* origin_url(o, path): borrowed until the next call. */
const char *origin_url(struct origin *o, const char *path);

/*
 * Requests that wait for the first byte of their answer: now, at most at once, and in all. A client
 * may send its next request before the origin sees that it got the answer. origin_asked: whether a
 * path with this prefix was requested.
 */
unsigned origin_active(struct origin *o);
unsigned origin_most_active(struct origin *o);
unsigned origin_count(struct origin *o);
bool origin_asked(struct origin *o, const char *path);
/*
 * origin_reached(o, prefix): connections to local addresses whose text has this prefix ("" for
 * all), answered or not.
 */
unsigned origin_reached(struct origin *o, const char *prefix);

/*
 * For answers. origin_send: bytes; false when the client has gone. origin_page: a complete answer
 * of status 200; ${headers} is "" or lines ending in \r\n.
 */
bool origin_send(struct origin_answer *a, const void *p, size_t n);
const char *origin_request(const struct origin_answer *a); /* its head as received */
bool origin_puts(struct origin_answer *a, const char *text);
void origin_page(struct origin_answer *a, const char *headers, const char *body);
/* origin_hold(a): waits until origin_release or until the client has gone. */
void origin_hold(struct origin_answer *a);
void origin_release(struct origin *o);

#endif
