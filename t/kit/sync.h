/*
 * For tests of bulk sync: a server with a shop's tokens and agents, request bodies as a shop's
 * plugin makes them, signatures and gzip.
 */
#ifndef ASSAY_T_SYNC_KIT_H
#define ASSAY_T_SYNC_KIT_H

#include "t/kit/harness.h"

#define SYNC_MANY                                                                                  \
    "limits: { limiters: { bulk-sync: { windows: [ { limit: 100000, seconds: 60, key: token } ] "  \
    "} } }\n"

extern struct server *server;
/*
 * Tokens of the workspace "main" (the second requires signatures) and one of its agents; the same
 * of another workspace.
 */
extern char *token, *signing, *agent, *foreign_agent, *foreign_token;
extern const char *const prefixes[2];

/*
 * sync_make(): creates them on ${server}, which runs. sync_setup, sync_teardown: a fixture with a
 * limit that no test reaches.
 */
void sync_make(void);
void sync_setup(void);
void sync_teardown(void);

/* agent_new(): an agent for one test, so that tests do not share items. */
char *agent_new(void);

/*
 * post(path, body): posts JSON below /v1/wp/ with ${token}. post_as: with another credential.
 * sync_one: a batch of one product.
 */
struct response *post(const char *path, const char *body);
struct response *post_as(const char *key, const char *path, const char *body);
struct response *sync_one(const char *of, const char *more, const char *item);

/*
 * Request bodies: an envelope around JSON items; items, with more members (",\"sku\":1" or "");
 * ${count} products.
 */
char *envelope(const char *of, const char *more, const char *items_name, const char *items);
char *product(unsigned id, const char *name, const char *more);
char *a_post(unsigned id, const char *title, const char *more);
char *many(unsigned count);

/* counted(of, kind): the number of "posts", "products" or "coupons" of the agent. */
int64_t counted(const char *of, const char *kind);

/*
 * signature(key, t, body, size): the header line. gzip(body, size, out_size): the compressed body.
 * padded: the body, filled with spaces to ${size} bytes.
 */
char *signature(const char *key, long t, const char *body, size_t size);
char *gzip(const char *body, size_t size, size_t *out_size);
char *padded(const char *body, size_t size);

#endif
