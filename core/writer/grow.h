/* Growing arrays of the writer. */
#ifndef ASSAY_WRITER_GROW_H
#define ASSAY_WRITER_GROW_H

#include <stddef.h>

/*
 * array_grow(array, count, capacity, size): ${array} with space for one more element of ${size}
 * bytes. Exits with EXIT_START if memory is exhausted, because the writer cannot continue.
 */
void *array_grow(void *array, size_t count, size_t *capacity, size_t size);

#endif
