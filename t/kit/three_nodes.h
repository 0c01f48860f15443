/* For tests of nodes that follow: a fixture with three nodes, one of which leads. */
#ifndef ASSAY_T_THREE_NODES_KIT_H
#define ASSAY_T_THREE_NODES_KIT_H

#include "t/kit/nodes.h"
#include "t/kit/widget.h"

enum { SAYS_MS = 15000 };

extern struct nodes *nodes;
extern unsigned leader; /* when the test begins; also ${server} of t/kit/widget.h */

extern struct nodes_options three_nodes_options; /* as it is when the fixture begins */

void three_nodes_begin(void);
void three_nodes_end(void);

/*
 * three_nodes_main(name, add): called first in main, a program that runs the tests that ${add}
 * adds, in two processes.
 */
static inline int three_nodes_main(const char *name, add_tests_fn *add)
{
    return nodes_main(name, 2, three_nodes_begin, three_nodes_end, add);
}

/* follower(i): the index of a node that follows, i: 0 or 1. */
unsigned follower(unsigned i);
struct server *follower_server(unsigned i);

/*
 * created(name): creates a report of http://127.0.0.9/NAME by the leader; its id. total_on(i): how
 * many reports node ${i} has. expect_says: waits for these words in its log.
 */
int64_t created(const char *name);
int64_t total_on(unsigned i);
void expect_says(unsigned i, const char *words);

/*
 * warm_up(i): creates ${WARM_UPS} reports through node ${i}, which follows: each of its two workers
 * has a relay then. The kernel chooses the worker of a connection; so many leave out none.
 */
enum { WARM_UPS = 32 };
void warm_up(unsigned i);

/* start_with_clock(i, offset_ms): starts node ${i} with a wall clock that is wrong by so much. */
void start_with_clock(unsigned i, int64_t offset_ms);

/*
 * stream_open(s, v): the event stream of a visitor, which has begun. stream_expect: these words are
 * in it within 2 s.
 */
struct raw *stream_open(const struct server *s, const struct visitor *v);
void stream_expect(struct raw *raw, const char *words);

#endif
