#include "core/text/form.h"

#include "core/text/chars.h"

/*
 * The continuation bytes of a lead byte (RFC 3629): their number, and the range of the first one,
 * which excludes overlong forms and surrogates.
 */
static unsigned follow_bytes(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 1;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (lead == 0xe0)
            *low = 0xa0;
        if (lead == 0xed)
            *high = 0x9f;
        return 2;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (lead == 0xf0)
            *low = 0x90;
        if (lead == 0xf4)
            *high = 0x8f;
        return 3;
    }
    return 0;
}

/* ascii_run(p, n): a number of bytes that are ASCII without NUL; a multiple of 8. */
static size_t ascii_run(const char *p, size_t n)
{
    const uint64_t high = 0x8080808080808080u, low = 0x0101010101010101u;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof(w));
        /* (w - low) sets the high bit of a byte that is 0 */
        if (((w | (w - low)) & high) != 0)
            break;
    }
    return i;
}

size_t utf8_length(struct str s)
{
    size_t i = 0;
    while (i < s.n) {
        i += ascii_run(s.p + i, s.n - i);
        if (i == s.n)
            break;
        const size_t start = i;
        unsigned char lead = (unsigned char)s.p[i++];
        if (lead == 0)
            return start;
        if (lead < 0x80)
            continue;
        unsigned char low, high;
        unsigned more = follow_bytes(lead, &low, &high);
        if (more == 0 || s.n - i < more)
            return start;
        for (; more > 0; --more, low = 0x80, high = 0xbf) {
            unsigned char c = (unsigned char)s.p[i++];
            if (c < low || c > high)
                return start;
        }
    }
    return s.n;
}

bool utf8_valid(struct str s)
{
    return utf8_length(s) == s.n;
}

struct str form_decode(struct str in, bool plus, char *out)
{
    const struct str malformed = {NULL, 0};
    size_t n = 0;
    for (size_t i = 0; i < in.n; ++i) {
        char c = in.p[i];
        if (c == '+' && plus) {
            c = ' ';
        } else if (c == '%') {
            int high = in.n - i > 2 ? hex_digit(in.p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(in.p[i + 2]) : -1;
            if (low < 0)
                return malformed;
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[n++] = c;
    }
    struct str decoded = {out, n};
    return utf8_valid(decoded) ? decoded : malformed;
}

bool form_next(struct form *f, struct str *name, struct str *value)
{
    while (f->rest.n > 0) {
        const char *piece = f->rest.p;
        const char *end = memchr(piece, '&', f->rest.n);
        size_t n = end == NULL ? f->rest.n : (size_t)(end - piece);
        size_t used = end == NULL ? n : n + 1;
        f->rest.p += used;
        f->rest.n -= used;
        if (n == 0)
            continue;
        const char *equals = memchr(piece, '=', n);
        *name = (struct str){piece, equals == NULL ? n : (size_t)(equals - piece)};
        *value =
            equals == NULL ? (struct str){piece + n, 0} : (struct str){equals + 1, n - name->n - 1};
        return true;
    }
    return false;
}

bool number_parse(struct str s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; ++i) {
        unsigned digit = (unsigned)(s.p[i] - '0');
        if (digit > 9 || v > (max - (digit < max ? digit : max)) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (s.n == 0 || v > max)
        return false;
    *out = v;
    return true;
}
