/*
 * The loop of a writer as the log thread sees it, with a log in memory (t/kit/log_double.h): for
 * tests of the log thread.
 */
#ifndef ASSAY_T_KIT_LOG_LOOP_H
#define ASSAY_T_KIT_LOG_LOOP_H

#include "t/kit/log_double.h"
#include "t/kit/wait.h"

#include "core/writer/log_thread.h"

enum { LOOP_MS = 10000 };

/* ${verdict}: of each batch. ${applied}: the rows of entries, each with a space after it. */
extern struct log_loop {
    struct log_thread *thread;
    struct log_view view;
    enum store_status verdict;
    char applied[4096];
} loop;

/* Fixtures: an empty log; the end of the thread. loop_start(): the thread of an empty store. */
void loop_setup(void);
void loop_teardown(void);
void loop_start(void);

/*
 * loop_turn(): a look, and a batch. loop_append(rows): as the leader. loop_entry(rows): for
 * log_thread_append. loop_is_wanted: a tick that is false after as many calls as its argument
 * counts; NULL: never.
 */
void loop_turn(void);
struct cluster_log_entry loop_entry(const char *rows);
bool loop_append(const char *rows);
bool loop_is_wanted(void *arg);

/* Turns until the thread is in a state, has applied these rows, or its call waits. */
void loop_expect_state(enum log_state state);
void loop_expect_applied(char *rows);
void loop_expect_deferred(enum log_double_call call);

/* Conditions for wait_until: the view says ${arg}; it says nothing. */
bool loop_has_why(void *arg);
bool loop_has_no_why(void *arg);

#endif
