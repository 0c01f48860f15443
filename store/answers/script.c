#include "store/answers/script_internal.h"

#include <stdbool.h>

static uint32_t decode(const char *p, const char *end, size_t *n)
{
    uint8_t first = (uint8_t)*p;
    size_t more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? first : first & (0x3fu >> more);
    for (*n = 1; *n <= more && p + *n < end; ++*n)
        c = c << 6 | ((uint8_t)p[*n] & 0x3f);
    return c;
}

static bool is_katakana(uint32_t c)
{
    return (c >= 0x30a0 && c <= 0x30ff) || (c >= 0x31f0 && c <= 0x31ff) ||
           (c >= 0xff66 && c <= 0xff9f);
}

/* First and last letter of each script, in order: Thai and Lao, Myanmar, Khmer, Han. */
static const uint32_t dense[][2] = {
    {0x0e00, 0x0eff}, {0x1000, 0x109f}, {0x1780, 0x17ff}, {0x3005, 0x3007},   {0x3100, 0x312f},
    {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x1b000, 0x1b16f}, {0x20000, 0x323af},
};

enum script script_of(const char *p, const char *end, size_t *n)
{
    uint32_t c = decode(p, end, n);
    if (c >= 0x3040 && c <= 0x309f)
        return SCRIPT_HIRAGANA;
    if (is_katakana(c))
        return SCRIPT_KATAKANA;
    for (size_t i = 0; i < sizeof(dense) / sizeof(*dense) && c >= dense[i][0]; i++)
        if (c <= dense[i][1])
            return SCRIPT_DENSE;
    return SCRIPT_SPACED;
}
