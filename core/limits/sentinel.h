/*
 * The sentinels of a primary: asks one after the other for its address, and every second again,
 * because a primary that was cut off does not know that another one was promoted. On a worker's
 * loop.
 */
#ifndef ASSAY_LIMITS_SENTINEL_H
#define ASSAY_LIMITS_SENTINEL_H

#include "core/loop/loop.h"

#define SENTINEL_ADDRESS_SIZE 300

struct sentinels;

/*
 * Called on the loop with each answer: the primary's address, or NULL and ${why} none is known,
 * which includes the sentinel's address. Both are borrowed.
 */
typedef void sentinel_answer_fn(void *arg, const char *address, const char *why);

/*
 * sentinels_new(loop, password, on_answer, arg): those of the loop's configuration; ${password} is
 * copied, "": none. NULL: memory is short.
 */
struct sentinels *sentinels_new(struct loop *loop, const char *password,
                                sentinel_answer_fn *on_answer, void *arg);
void sentinels_free(struct sentinels *s);

/* sentinels_ask(s): ask now. sentinels_tick(s): ask if it is time; once a turn. */
void sentinels_ask(struct sentinels *s);
void sentinels_tick(struct sentinels *s);

#endif
