/* For tests of the limiter in one process: a table in a private directory, and requests. */
#ifndef ASSAY_T_RATELIMIT_KIT_H
#define ASSAY_T_RATELIMIT_KIT_H

#include "ratelimit/ratelimit.h"
#include "t/kit/suite.h"

#include <check.h>

#define NOW 1800000000 /* a multiple of 3600 */

extern char dir[64];
extern struct ratelimit *rl;

/*
 * setup(): a new table of 1,024 slots. teardown(): removes it. open_table(slots, expected): opens
 * the table again. table_path(): its file.
 */
void setup(void);
void teardown(void);
void open_table(uint64_t slots, enum ratelimit_made expected);
const char *table_path(void);

/* Windows of one limiter each: window has a text as its key, numbered a number. */
struct ratelimit_window window(const char *key, uint32_t limit, uint32_t seconds);
struct ratelimit_window numbered(const uint64_t *key, uint32_t limit);

/* take: one request. admitted(w, now, asked): how many of ${asked} requests are admitted. */
int take(const struct ratelimit_window *w, size_t count, int64_t now, struct ratelimit_state *out);
unsigned admitted(struct ratelimit_window w, int64_t now, unsigned asked);

#endif
