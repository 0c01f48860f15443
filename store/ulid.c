#include "store/ulid.h"

#include "store/bytes.h"

#include <endian.h>

#define MS_MAX (((int64_t)1 << 48) - 1)

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

bool ulid_none(const struct ulid *u)
{
    static const struct ulid none;
    return ulid_eq(u, &none);
}

void ulid_halves(const struct ulid *u, uint64_t *high, uint64_t *low)
{
    memcpy(high, u->b, sizeof(*high));
    memcpy(low, u->b + sizeof(*high), sizeof(*low));
    *high = be64toh(*high);
    *low = be64toh(*low);
}

struct ulid ulid_of_halves(uint64_t high, uint64_t low)
{
    struct ulid u;
    high = htobe64(high);
    low = htobe64(low);
    memcpy(u.b, &high, sizeof(high));
    memcpy(u.b + sizeof(high), &low, sizeof(low));
    return u;
}

int64_t ulid_ms(const struct ulid *u)
{
    uint64_t high, low;
    ulid_halves(u, &high, &low);
    return (int64_t)(high >> 16);
}

void ulid_floor(int64_t ms, struct ulid *out)
{
    ms = ms < 0 ? 0 : ms > MS_MAX ? MS_MAX : ms;
    *out = ulid_of_halves((uint64_t)ms << 16, 0);
}

void ulid_next(int64_t now_ms, const struct ulid *last, const uint64_t random[2], struct ulid *out)
{
    uint64_t high, low;
    ulid_halves(last, &high, &low);
    now_ms = now_ms > MS_MAX ? MS_MAX : now_ms;
    if (now_ms > (int64_t)(high >> 16)) {
        *out = ulid_of_halves((uint64_t)now_ms << 16 | (random[0] & 0xffff), random[1]);
        return;
    }
    /* an unpredictable step; on overflow the time increases by a millisecond */
    uint64_t step = (random[1] & 0xffffffffffff) + 1;
    *out = ulid_of_halves(high + (low + step < low), low + step);
}

static void digits(uint64_t v, char *out, int count)
{
    for (; count-- > 0; v >>= 5)
        out[count] = alphabet[v & 31];
}

void ulid_text(const struct ulid *u, char out[ULID_TEXT])
{
    uint64_t high, low;
    ulid_halves(u, &high, &low);
    digits(low, out + 14, 12); /* 60 bits each, and 8 */
    digits(high << 4 | low >> 60, out + 2, 12);
    digits(high >> 56, out, 2);
}

static int digit_of(char c)
{
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    const char *at = c == '\0' ? NULL : strchr(alphabet, c);
    return at == NULL ? -1 : (int)(at - alphabet);
}

bool ulid_parse(struct str text, struct ulid *out)
{
    uint64_t high = 0, low = 0;
    if (text.n != ULID_TEXT || digit_of(text.p[0]) > 7) /* 26 characters are 130 bits */
        return false;
    for (size_t i = 0; i < ULID_TEXT; i++) {
        int digit = digit_of(text.p[i]);
        if (digit < 0)
            return false;
        high = high << 5 | low >> 59;
        low = low << 5 | (uint64_t)digit;
    }
    *out = ulid_of_halves(high, low);
    return true;
}
