#include "core/text/log_position.h"

#include "core/text/form.h"

#include <inttypes.h>
#include <stdio.h>

#define DIGITS 16

size_t log_position_write(const struct log_position *p, char out[LOG_POSITION_SIZE])
{
    return (size_t)snprintf(out, LOG_POSITION_SIZE, "%0*" PRIx64 "-%" PRIu64, DIGITS, p->log,
                            p->entry);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A position has one spelling. */
bool log_position_read(struct str text, struct log_position *out)
{
    char again[LOG_POSITION_SIZE];
    *out = (struct log_position){0};
    if (text.n <= DIGITS + 1 || text.p[DIGITS] != '-')
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        const int digit = digit_of(text.p[i]);
        if (digit < 0)
            return false;
        out->log = out->log << 4 | (uint64_t)digit;
    }
    return out->log != 0 &&
           number_parse((struct str){text.p + DIGITS + 1, text.n - DIGITS - 1}, UINT64_MAX,
                        &out->entry) &&
           str_eq(text, (struct str){again, log_position_write(out, again)});
}
