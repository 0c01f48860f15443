#include "core/writer/grow.h"

#include "core/base/log.h"
#include "core/process/process.h"

#include <stdlib.h>

void *array_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room == 0 ? 64 : *room * 2;
    array = realloc(array, *room * size);
    if (array == NULL) {
        log_error("out of memory");
        exit(EXIT_START);
    }
    return array;
}
