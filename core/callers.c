#include "core/callers.h"

size_t callers_next(size_t callers, size_t now)
{
    size_t before = callers - (callers + 15) / 16;
    return now > before ? now : before;
}
