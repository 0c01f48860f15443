#include "core/text/nearest.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned nearest_distance(struct str a, struct str b)
{
    unsigned d[NEAREST_NAME_MAX + 1][NEAREST_NAME_MAX + 1];
    if (a.n > NEAREST_NAME_MAX || b.n > NEAREST_NAME_MAX)
        return NEAREST_NAME_MAX + 1;
    for (size_t i = 0; i <= a.n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= b.n; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        for (size_t j = 1; j <= b.n; j++) {
            char x = lower(a.p[i - 1]), y = lower(b.p[j - 1]);
            unsigned best = least(d[i - 1][j - 1] + (x != y), least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b.p[j - 2]) && lower(a.p[i - 2]) == y)
                best = least(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    }
    return d[a.n][b.n];
}
