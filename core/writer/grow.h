/* Growing arrays of the writer. */
#ifndef ASSAY_WRITER_GROW_H
#define ASSAY_WRITER_GROW_H

#include <stddef.h>

/*
 * array_grow(array, count, room, size): ${array} with room for one more element of ${size} bytes.
 * Exits EXIT_START when memory is short: the writer cannot continue without it.
 */
void *array_grow(void *array, size_t count, size_t *room, size_t size);

#endif
