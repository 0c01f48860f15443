/*
 * A position in the log of a cluster, as X-Assay-Position has it: the first 8 bytes of the log's id
 * as 16 hexadecimal digits, a dash, and the number of an entry.
 */
#ifndef ASSAY_TEXT_LOG_POSITION_H
#define ASSAY_TEXT_LOG_POSITION_H

#include "store/bytes.h"

#define LOG_POSITION_SIZE sizeof("0123456789abcdef-18446744073709551615")

struct log_position {
    uint64_t log; /* 0: no position */
    uint64_t entry;
};

/*
 * log_position_write(p, out): the text with NUL; its length.
 * log_position_read(text, out): false: ${text} is not such a text.
 */
size_t log_position_write(const struct log_position *p, char out[LOG_POSITION_SIZE]);
bool log_position_read(struct str text, struct log_position *out);

#endif
