/* How many callers lately sent changes at the same time: the writer gathers a batch from them. */
#ifndef ASSAY_WRITER_CONCURRENT_CALLERS_H
#define ASSAY_WRITER_CONCURRENT_CALLERS_H

#include <stddef.h>

/*
 * concurrent_callers_next(callers, now): how many they are, when they were ${callers} and ${now} came last.
 * Those who left are forgotten bit by bit, a sixteenth at a time and one at least.
 */
size_t concurrent_callers_next(size_t callers, size_t now);

#endif
