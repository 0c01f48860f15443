/*
 * Numbers, durations and sizes as people write them: `12`, `90d`, `5MiB`. Pure functions, any process; the configuration and the command
 * line share them.
 * Strict: no sign, no fraction, nothing before or after, nothing too big for its unit.
 */
#ifndef ASSAY_CONF_VALUES_H
#define ASSAY_CONF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* value_number(text, out): decimal digits and nothing else. */
bool value_number(const char *text, uint64_t *out);

/* value_duration(text, ms): a number and ms, s, m, h or d, a blank between them allowed; 0 needs no unit. */
bool value_duration(const char *text, uint64_t *ms);

/* value_size(text, bytes): a number of bytes, or a number and KiB, MiB, GiB or TiB, a blank between them allowed. */
bool value_size(const char *text, uint64_t *bytes);

/* value_duration_text(ms, out), value_size_text(bytes, out): the shortest exact spelling, read back to the same by the above. */
#define VALUE_TEXT_SIZE 32
void value_duration_text(uint64_t ms, char out[VALUE_TEXT_SIZE]);
void value_size_text(uint64_t bytes, char out[VALUE_TEXT_SIZE]);

#endif
