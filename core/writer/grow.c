#include "core/writer/grow.h"

#include "core/base/log.h"
#include "core/process/process.h"

#include <stdlib.h>

void *array_grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 64 : *capacity * 2;
    array = realloc(array, *capacity * size);
    if (array == NULL) {
        log_error("out of memory");
        exit(EXIT_START);
    }
    return array;
}
