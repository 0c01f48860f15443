/*
 * What the rest of grading must know of the sandbox (audit_sandbox in audit.h builds it).
 */
#ifndef ASSAY_SANDBOX_H
#define ASSAY_SANDBOX_H

#include <stdbool.h>

/* sandbox_is_on(): this process grades and nothing else, so that a page that hangs it may end it (SIGALRM). */
bool sandbox_is_on(void);

/* SANITIZED: whether a sanitizer is built in, which maps terabytes and has signal handlers of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
