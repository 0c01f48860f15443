/* How many callers lately sent changes at the same time. */
#ifndef ASSAY_WRITER_CONCURRENT_CALLERS_H
#define ASSAY_WRITER_CONCURRENT_CALLERS_H

#include <stddef.h>

/*
 * concurrent_callers_next(callers, now): the new number, when it was ${callers} and ${now} sent
 * changes to the last commit. It rises at once, and falls by a sixteenth each time, by one at
 * least.
 */
size_t concurrent_callers_next(size_t callers, size_t now);

#endif
