/* State of the sandbox, which audit_sandbox (sandbox.h) sets up. */
#ifndef ASSAY_SANDBOX_INTERNAL_H
#define ASSAY_SANDBOX_INTERNAL_H

#include <stdbool.h>

/* sandbox_is_on(): this process only grades, so a page that hangs it may end it (SIGALRM). */
bool sandbox_is_on(void);

#endif
