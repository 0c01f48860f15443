/* For tests of several processes on one store: a directory for it, and child processes. */
#ifndef ASSAY_T_STORE_CHILDREN_KIT_H
#define ASSAY_T_STORE_CHILDREN_KIT_H

#include "t/kit/store.h"

extern struct kit k;

/* children_setup(): a directory without a store. children_teardown(): removes it. */
void children_setup(void);
void children_teardown(void);

/* store_of(mode, map_size, max_readers): opens the store of the directory. */
struct store *store_of(enum store_mode mode, uint64_t map_size, unsigned max_readers);

/*
 * A child process and two pipes. child_start(c, from, to): false in the test; true in the child,
 * which reads ${from} and writes ${to}. receive(fd): a byte; 0: the other end has closed.
 * child_ends_well(c): waits for its exit with status 0.
 */
struct child {
    pid_t pid;
    int from, to; /* the parent's ends */
};
bool child_start(struct child *c, int *from, int *to);
char receive(int fd);
void send_byte(int fd, char c);
void child_ends_well(const struct child *c);

/*
 * fill(w, made): creates reports with large results until the store is full; the last answer.
 * large_results(): those results, which LMDB stores in pages of their own.
 */
struct store_answer fill(uint64_t w, unsigned *made);
struct str large_results(void);

#endif
