#include "core/writer/concurrent_callers.h"

size_t concurrent_callers_next(size_t callers, size_t now)
{
    size_t before = callers - (callers + 15) / 16;
    return now > before ? now : before;
}
