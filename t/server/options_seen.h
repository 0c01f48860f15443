/*
 * For t/server/options.c: what a test sees of the running server, a function for each effect of an
 * option. Each returns a text to compare.
 */
#ifndef ASSAY_T_SERVER_OPTIONS_SEEN_H
#define ASSAY_T_SERVER_OPTIONS_SEEN_H

#include "t/kit/harness.h"

extern struct origin *origin;
extern struct server *server; /* its first listener */
extern struct server second;  /* the second listener, for probes of listener options */
/* The program that an upgrade starts: a link, its target, and a program that never serves. */
extern char *program, *real, *script;
extern char *agent, *operators, *token;
extern int64_t graded; /* a report */

/* point_at(target): ${program} becomes a link to ${target}. */
void point_at(const char *target);

const char *see_proxy_protocol(void);
const char *see_tls(void);
const char *see_rsa(void);
const char *see_base_url(void);
const char *see_workers(void);
const char *see_query_threads(void);
const char *see_auditors(void);
const char *see_client(void);
const char *see_log(void);
const char *see_format(void);
const char *see_wait(void);
const char *see_result(void);
const char *see_indexable(void);
const char *see_score(void);
const char *see_slow_page(void);
const char *see_large_page(void);
const char *see_redirect(void);
const char *see_guard(void);
const char *see_concurrency(void);
const char *see_token_life(void);
const char *see_events(void);
const char *see_conversations(void);
const char *see_sync(void);
const char *see_prefix(void);
const char *see_exempt(void);
const char *see_limit(void);
const char *see_warning(void);
const char *see_half_head(void);
const char *see_half_body(void);
const char *see_rest(void);
const char *see_reader(void);
const char *see_drain(void);
const char *see_upgrade(void);
const char *see_connections(void);
const char *see_third(void);

#endif
