#include "core/text/printable.h"

#include <stdlib.h>

/* The code point at the start of ${s}, and its length; 0: not UTF-8 (RFC 3629). */
static size_t code_point(struct str s, uint32_t *out)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = p[0] < 0x80             ? 1
               : (p[0] & 0xe0) == 0xc0 ? 2
               : (p[0] & 0xf0) == 0xe0 ? 3
               : (p[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 0 || n > s.n)
        return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *out = c;
    return n;
}

/* Characters that are escaped; ascending. */
static const struct {
    uint32_t first, last;
} controls[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
    {0x2028, 0x2029}, {0x202a, 0x202e}, {0x2066, 0x2069},
};

static bool is_control(uint32_t c)
{
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]) && c >= controls[i].first; i++)
        if (c <= controls[i].last)
            return true;
    return false;
}

void printable_next(struct str text, struct printable *out)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t c = 0xfffd;
    size_t n = code_point(text, &c);
    *out = (struct printable){.taken = n == 0 ? 1 : n, .code = c};
    if (n == 0) {
        out->n = 3;
        memcpy(out->shown, "\xef\xbf\xbd", 3);
    } else if (is_control(c)) {
        out->n = 6;
        out->shown[0] = '\\';
        out->shown[1] = 'u';
        for (unsigned i = 0; i < 4; i++)
            out->shown[2 + i] = digits[c >> (12 - 4 * i) & 15];
    } else {
        out->as_itself = true;
        out->n = n;
        memcpy(out->shown, text.p, n);
    }
}

/* Most lines are ASCII without control characters, and stay as they are. */
static size_t plain_length(struct str s)
{
    size_t n = 0;
    while (n < s.n && ((s.p[n] >= 0x20 && s.p[n] < 0x7f) || s.p[n] == '\n'))
        n++;
    return n;
}

void printable_escape(struct buf *b, size_t from)
{
    if (!buf_ok(b) || from >= b->n)
        return;
    from += plain_length((struct str){b->p + from, b->n - from});
    if (from == b->n)
        return;
    struct printable next;
    struct str rest = {b->p + from, b->n - from};
    char *kept = malloc(rest.n);
    if (kept == NULL) {
        b->failed = true;
        return;
    }
    memcpy(kept, rest.p, rest.n);
    rest.p = kept;
    b->n = from;
    for (; rest.n > 0; rest.p += next.taken, rest.n -= next.taken) {
        printable_next(rest, &next);
        buf_add(b, next.code == '\n' ? "\n" : next.shown, next.code == '\n' ? 1 : next.n);
    }
    free(kept);
}
