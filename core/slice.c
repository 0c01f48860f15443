#include "slice.h"

size_t slice_next(size_t records, uint64_t us, uint64_t most_us)
{
    if (us > most_us)
        records /= 2;
    else if (us < most_us / 2)
        records += records / 4 + 1;
    return records < SLICE_RECORDS_MIN ? SLICE_RECORDS_MIN : records > SLICE_RECORDS_MAX ? SLICE_RECORDS_MAX : records;
}

size_t slice_callers(size_t callers, size_t now)
{
    size_t before = callers - (callers + 15) / 16;
    return now > before ? now : before;
}

bool slice_yields(unsigned *yields, bool waiting)
{
    bool first = waiting && *yields < SLICE_YIELDS_MAX;
    *yields += first;
    return first;
}
