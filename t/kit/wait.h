/*
 * Time and text of tests. t/kit/harness.h has them too; a test without a server includes this file
 * alone and links t/kit/libharness.a.
 */
#ifndef ASSAY_T_KIT_WAIT_H
#define ASSAY_T_KIT_WAIT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int64_t now_ms(void); /* CLOCK_MONOTONIC */

/* text(format, …): a new string. text_va: with its arguments as a list. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_va(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* fork_child(): a child process that is killed when its parent ends. As fork; never fails. */
pid_t fork_child(void);

/*
 * wait_until(holds, arg, within_ms): calls ${holds} until it is true; false after ${within_ms}. The
 * pauses between the calls grow to 16 ms: some conditions cost a process.
 */
typedef bool condition_fn(void *arg);
bool wait_until(condition_fn *holds, void *arg, int within_ms) __attribute__((warn_unused_result));

#endif
