#include "core/audit/text.h"

#include <limits.h>
#include <wctype.h>

char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool text_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_lower(a[i]) != text_lower(b[i]))
            return false;
    return true;
}

bool text_eq(struct str a, const char *b)
{
    return a.n == strlen(b) && same(a.p, b, a.n);
}

bool text_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && same(s.p, prefix, n);
}

bool text_ends(struct str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.n >= n && same(s.p + s.n - n, suffix, n);
}

bool text_has(struct str s, const char *needle)
{
    size_t n = strlen(needle);
    for (size_t i = 0; i + n <= s.n; i++)
        if (same(s.p + i, needle, n))
            return true;
    return false;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

struct str text_trim(struct str s)
{
    while (s.n > 0 && text_is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && text_is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/*
 * Length of the Unicode white space or byte order mark that ${s} begins with; 0: none (ECMAScript,
 * 12.2 and 12.3).
 */
static size_t unicode_space(const char *p, size_t n)
{
    unsigned char a = (unsigned char)p[0];
    if (text_is_space(p[0]) || a == 0x0B)
        return 1;
    if (n >= 2 && a == 0xC2 && (unsigned char)p[1] == 0xA0)
        return 2;
    if (n < 3 || a < 0xE1)
        return 0;
    unsigned point =
        (a & 0x0Fu) << 12 | ((unsigned char)p[1] & 0x3Fu) << 6 | ((unsigned char)p[2] & 0x3Fu);
    bool space = point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
                 point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000 ||
                 point == 0xFEFF;
    return a < 0xF0 && space ? 3 : 0;
}

struct str text_trim_unicode(struct str s)
{
    for (size_t n; s.n > 0 && (n = unicode_space(s.p, s.n)) > 0;)
        s = text_from(s, n);
    while (s.n > 0) {
        size_t n = 1;
        while (n < s.n && n < 3 && continues(s.p[s.n - n]))
            n++;
        if (unicode_space(s.p + s.n - n, n) != n)
            break;
        s.n -= n;
    }
    return s;
}

struct str text_from(struct str s, size_t at)
{
    if (at > s.n)
        at = s.n;
    if (at == 0)
        return s;
    return (struct str){s.p + at, s.n - at};
}

bool text_token(struct str *rest, const char *separators, struct str *out)
{
    size_t at = 0;
    while (at < rest->n && strchr(separators, rest->p[at]) != NULL)
        at++;
    size_t end = at;
    while (end < rest->n && strchr(separators, rest->p[end]) == NULL)
        end++;
    *out = (struct str){at == 0 ? rest->p : rest->p + at, end - at};
    *rest = text_from(*rest, end);
    return out->n > 0;
}

bool text_has_token(struct str list, const char *token)
{
    struct str one;
    while (text_token(&list, " \t\n\f\r", &one))
        if (text_eq(one, token))
            return true;
    return false;
}

bool text_split(struct str s, char at, struct str *before, struct str *after)
{
    const char *p = s.n == 0 ? NULL : memchr(s.p, at, s.n);
    if (p == NULL) {
        *before = s;
        *after = text_from(s, s.n);
        return false;
    }
    *before = (struct str){s.p, (size_t)(p - s.p)};
    *after = text_from(s, (size_t)(p - s.p) + 1);
    return true;
}

size_t text_points(struct str s)
{
    size_t points = 0;
    for (size_t i = 0; i < s.n; i++)
        points += !continues(s.p[i]);
    return points;
}

struct str text_cut(struct str s, size_t points)
{
    for (size_t i = 0; i < s.n; i++) {
        if (continues(s.p[i]))
            continue;
        if (points-- == 0)
            return (struct str){s.p, i};
    }
    return s;
}

struct str text_cut_bytes(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && continues(s.p[max]))
        max--;
    return (struct str){s.p, max};
}

bool text_number(struct str s, unsigned long *out)
{
    s = text_trim(s);
    unsigned long n = 0;
    size_t i = 0;
    for (; i < s.n && text_is_digit(s.p[i]); i++) {
        unsigned long digit = (unsigned long)(s.p[i] - '0');
        n = n > (ULONG_MAX - digit) / 10 ? ULONG_MAX : n * 10 + digit;
    }
    *out = n;
    return i > 0;
}

/*
 * U+2000–U+206F is General Punctuation, U+3000–U+303F CJK Punctuation; U+FFFD is no letter either.
 */
static bool is_letter_beyond_ascii(const char *p, size_t n)
{
    unsigned char a = (unsigned char)p[0];
    if (a <= 0xC2)
        return false;
    unsigned char b = n > 1 ? (unsigned char)p[1] : 0;
    unsigned char c = n > 2 ? (unsigned char)p[2] : 0;
    if (a == 0xE2 && (b == 0x80 || (b == 0x81 && c < 0xB0)))
        return false;
    if (a == 0xE3 && b == 0x80)
        return false;
    if (a == 0xEF && b == 0xBF && c == 0xBD)
        return false;
    return true;
}

enum { OTHER, LETTER, BEYOND_ASCII };

static const uint8_t kinds[256] = {
    ['0' ... '9'] = LETTER,
    ['A' ... 'Z'] = LETTER,
    ['a' ... 'z'] = LETTER,
    [0x80 ... 0xFF] = BEYOND_ASCII,
};

static size_t point_length(struct str s, size_t at)
{
    size_t n = 1;
    while (at + n < s.n && continues(s.p[at + n]))
        n++;
    return n;
}

/* End of the run of letters (or of non-letters) that begins at ${at}. */
static size_t run_end(struct str s, size_t at, bool letters)
{
    while (at < s.n) {
        unsigned kind = kinds[(unsigned char)s.p[at]];
        bool is =
            kind == LETTER || (kind == BEYOND_ASCII && is_letter_beyond_ascii(s.p + at, s.n - at));
        if (is != letters)
            break;
        at += kind == BEYOND_ASCII ? point_length(s, at) : 1;
    }
    return at;
}

bool text_word(struct str *rest, struct str *out)
{
    size_t at = run_end(*rest, 0, false);
    size_t end = run_end(*rest, at, true);
    *out = (struct str){at == 0 ? rest->p : rest->p + at, end - at};
    *rest = text_from(*rest, end);
    return out->n > 0;
}

/* The code point at ${s}, valid UTF-8; ${n} is its length. */
static uint32_t point_at(struct str s, size_t *n)
{
    unsigned char a = (unsigned char)s.p[0];
    uint32_t point = a < 0x80 ? a : a < 0xE0 ? a & 0x1F : a < 0xF0 ? a & 0x0F : a & 0x07;
    *n = point_length(s, 0);
    for (size_t i = 1; i < *n && i < 4; i++)
        point = point << 6 | ((unsigned char)s.p[i] & 0x3F);
    return point;
}

void text_add_point(uint32_t point, struct buf *out)
{
    char c[4];
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; point >>= 6)
        c[i] = (char)(0x80 | (point & 0x3F));
    c[0] = (char)(marks[n] | point);
    buf_add(out, c, n);
}

void text_fold(struct str s, struct buf *out)
{
    while (s.n > 0) {
        size_t n;
        uint32_t point = point_at(s, &n);
        if (n == 1 && point < 0x80)
            buf_add(out, &(char){text_lower((char)point)}, 1);
        else
            text_add_point((uint32_t)towlower((wint_t)point), out);
        s = text_from(s, n);
    }
}

bool text_is_ideographic(struct str s)
{
    size_t n;
    return s.n > 0 && point_at(s, &n) >= 0x2E80;
}
