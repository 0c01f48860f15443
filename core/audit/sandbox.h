/*
 * What the rest of grading must know of the sandbox (audit_sandbox in audit.h builds it).
 */
#ifndef ASSAY_SANDBOX_H
#define ASSAY_SANDBOX_H

#include <stdbool.h>

/* sandbox_is_on(): this process grades and nothing else, so that a page that hangs it may end it (SIGALRM). */
bool sandbox_is_on(void);

#endif
