/* How a test program runs its suite. Programs with a server use harness_main (t/kit/harness.h). */
#ifndef ASSAY_T_KIT_SUITE_H
#define ASSAY_T_KIT_SUITE_H

#include <check.h>

/* Runs ${suite} and frees it; the exit status of the program. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
