/*
 * How much goes into a transaction of the writer: work in the background, by how long the last one held it, and callers, by how many lately
 * came. Pure functions.
 */
#ifndef ASSAY_SLICE_H
#define ASSAY_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLICE_RECORDS_MIN 25 /* so that it ends one day, however slow the disk */
#define SLICE_RECORDS_MAX 100 /* scattered, each has two pages of its own, which the commit writes */

#define SLICE_YIELDS_MAX 1

/*
 * slice_next(records, us, most_us): how many records the next one should take, when one of ${records} took ${us} and ${most_us} is the most
 * it should: half as many where it was over, a quarter more where it was under half of it.
 */
size_t slice_next(size_t records, uint64_t us, uint64_t most_us);

/*
 * slice_callers(callers, now): how many callers are at it, when ${callers} were and ${now} came last. Who left is forgotten bit by bit, a
 * sixteenth at a time and one at least.
 */
size_t slice_callers(size_t callers, size_t now);

/*
 * slice_yields(yields, waiting): may callers go before the next slice of work in the background, of whom some wait (${waiting})? ${yields}: how
 * often they did since the last one, 0 after it; at last the slice goes first, or there would be no end to them.
 */
bool slice_yields(unsigned *yields, bool waiting);

#endif
