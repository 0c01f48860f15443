/*
 * Numbers, durations and sizes as text: `12`, `90d`, `5MiB`. Used by the configuration and the
 * command line. Parsing is strict: no sign, no fraction, nothing before or after, no overflow.
 */
#ifndef ASSAY_CONF_VALUES_H
#define ASSAY_CONF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* value_number(text, out): decimal digits only. */
bool value_number(const char *text, uint64_t *out);

/*
 * value_duration(text, ms): a number and ms, s, m, h or d, with an optional space between them; 0
 * needs no unit.
 */
bool value_duration(const char *text, uint64_t *ms);

/* value_size(text, bytes): a number, with an optional space, and KiB, MiB, GiB, TiB or nothing. */
bool value_size(const char *text, uint64_t *bytes);

/* value_duration_text, value_size_text: the shortest exact text, which the above read back. */
#define VALUE_TEXT_SIZE 32
void value_duration_text(uint64_t ms, char out[VALUE_TEXT_SIZE]);
void value_size_text(uint64_t bytes, char out[VALUE_TEXT_SIZE]);

#endif
