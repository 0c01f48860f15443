#include "core/api/money_internal.h"

#define WHOLE_DIGITS 12
#define DECIMALS_MAX 12

static size_t digits_at(struct str text, size_t at)
{
    size_t n = 0;
    while (at + n < text.n && text.p[at + n] >= '0' && text.p[at + n] <= '9')
        n++;
    return n;
}

bool money_read(struct str text, int64_t *out)
{
    size_t whole = digits_at(text, 0), decimals = 0;
    int64_t value = 0, scale = MONEY_SCALE;
    if (whole == 0 || whole > WHOLE_DIGITS)
        return false;
    if (whole < text.n) {
        decimals = text.p[whole] == '.' ? digits_at(text, whole + 1) : 0;
        if (decimals == 0 || decimals > DECIMALS_MAX || whole + 1 + decimals != text.n)
            return false;
    }
    for (size_t i = 0; i < whole; i++)
        value = value * 10 + (text.p[i] - '0');
    value *= MONEY_SCALE;
    for (size_t i = 0; i < decimals; i++) {
        int64_t digit = text.p[whole + 1 + i] - '0';
        if (scale == 1) { /* the first decimal below the scale */
            value += digit >= 5;
            break;
        }
        scale /= 10;
        value += digit * scale;
    }
    *out = value;
    return true;
}

bool currency_known(struct str code)
{
    if (code.n != 3)
        return false;
    for (size_t i = 0; i < code.n; i++)
        if (code.p[i] < 'A' || code.p[i] > 'Z')
            return false;
    return true;
}

/* ISO 4217 currencies without two decimals. Columns: code, decimals. */
static const struct {
    char code[4];
    unsigned exponent;
} unusual[] = {
    {"BHD", 3}, {"BIF", 0}, {"CLF", 4}, {"CLP", 0}, {"DJF", 0}, {"GNF", 0}, {"IQD", 3},
    {"ISK", 0}, {"JOD", 3}, {"JPY", 0}, {"KMF", 0}, {"KRW", 0}, {"KWD", 3}, {"LYD", 3},
    {"OMR", 3}, {"PYG", 0}, {"RWF", 0}, {"TND", 3}, {"UGX", 0}, {"UYI", 0}, {"UYW", 4},
    {"VND", 0}, {"VUV", 0}, {"XAF", 0}, {"XOF", 0}, {"XPF", 0},
};

unsigned currency_exponent(struct str code)
{
    for (size_t i = 0; i < sizeof(unusual) / sizeof(unusual[0]); i++)
        if (str_eq(code, str_of(unusual[i].code)))
            return unusual[i].exponent;
    return 2;
}
