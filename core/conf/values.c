#include "core/conf/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: the first unit that divides a value gives the shortest text. */
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                             {"s", 1000},     {"ms", 1},      {NULL, 0}};
static const struct unit size_units[] = {{"TiB", 1ull << 40},
                                         {"GiB", 1ull << 30},
                                         {"MiB", 1ull << 20},
                                         {"KiB", 1ull << 10},
                                         {"", 1},
                                         {NULL, 0}};

/* Parse the digits at ${text}. Returns their end; NULL: no digits, or overflow. */
static const char *digits_parse(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return NULL;
    *out = value;
    return p == text ? NULL : p;
}

static bool value_with_unit(const char *text, const struct unit *units, uint64_t *out)
{
    uint64_t number;
    const char *p = digits_parse(text, &number);
    if (p == NULL)
        return false;
    if (*p == ' ' && p[1] != '\0')
        p++;
    for (; units->name != NULL; units++)
        if (strcmp(p, units->name) == 0)
            return !__builtin_mul_overflow(number, units->factor, out);
    return false;
}

static void value_text(uint64_t value, const struct unit *units, char out[VALUE_TEXT_SIZE])
{
    while (value % units->factor != 0)
        units++;
    snprintf(out, VALUE_TEXT_SIZE, "%" PRIu64 "%s", value / units->factor, units->name);
}

bool value_number(const char *text, uint64_t *out)
{
    const char *p = digits_parse(text, out);
    return p != NULL && *p == '\0';
}

bool value_duration(const char *text, uint64_t *ms)
{
    if (strcmp(text, "0") == 0) {
        *ms = 0;
        return true;
    }
    return value_with_unit(text, duration_units, ms);
}

bool value_size(const char *text, uint64_t *bytes)
{
    return value_with_unit(text, size_units, bytes);
}

void value_duration_text(uint64_t ms, char out[VALUE_TEXT_SIZE])
{
    if (ms == 0)
        snprintf(out, VALUE_TEXT_SIZE, "0s");
    else
        value_text(ms, duration_units, out);
}

void value_size_text(uint64_t bytes, char out[VALUE_TEXT_SIZE])
{
    if (bytes == 0)
        snprintf(out, VALUE_TEXT_SIZE, "0");
    else
        value_text(bytes, size_units, out);
}
