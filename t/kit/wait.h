/*
 * Time and text of tests. t/kit/harness.h has them too; a test without a server includes this file
 * alone and links t/kit/libharness.a.
 */
#ifndef ASSAY_T_KIT_WAIT_H
#define ASSAY_T_KIT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

int64_t now_ms(void); /* CLOCK_MONOTONIC */

/* text(format, …): a new string. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* wait_until(holds, arg, within_ms): calls ${holds} until it is true; false after ${within_ms}. */
typedef bool condition_fn(void *arg);
bool wait_until(condition_fn *holds, void *arg, int within_ms) __attribute__((warn_unused_result));

#endif
