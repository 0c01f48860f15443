#include "core/text/json_out.h"
#include "core/text/form.h"

/* The escape of a byte in a string: 0: none; 'u': \u00XX; otherwise the letter after \. */
static const char escapes[256] = {
    [0x00] = 'u', [0x01] = 'u', [0x02] = 'u', [0x03] = 'u',  [0x04] = 'u', [0x05] = 'u',
    [0x06] = 'u', [0x07] = 'u', [0x08] = 'b', [0x09] = 't',  [0x0a] = 'n', [0x0b] = 'u',
    [0x0c] = 'f', [0x0d] = 'r', [0x0e] = 'u', [0x0f] = 'u',  [0x10] = 'u', [0x11] = 'u',
    [0x12] = 'u', [0x13] = 'u', [0x14] = 'u', [0x15] = 'u',  [0x16] = 'u', [0x17] = 'u',
    [0x18] = 'u', [0x19] = 'u', [0x1a] = 'u', [0x1b] = 'u',  [0x1c] = 'u', [0x1d] = 'u',
    [0x1e] = 'u', [0x1f] = 'u', [0x22] = '"', [0x5c] = '\\', [0x7f] = 'u',
};

static void escape(struct buf *b, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', escapes[c], '0', '0', digits[c >> 4], digits[c & 15]};
    buf_add(b, text, escapes[c] == 'u' ? 6 : 2);
}

/* The length of the valid character at ${p}, or 0. */
static size_t character(const char *p, size_t n)
{
    unsigned char lead = (unsigned char)*p;
    size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return length == 1 || (length <= n && utf8_valid((struct str){p, length})) ? length : 0;
}

/* plain_run(p, n): a number of bytes that need no escape; a multiple of 8. */
static size_t plain_run(const char *p, size_t n)
{
    const uint64_t low = 0x0101010101010101u, high = low * 0x80;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof(w));
        /* (byte - k) & ~byte sets the high bit of a byte below k; of zero for k = 1 */
        uint64_t quote = w ^ low * '"', slash = w ^ low * '\\', rubout = w ^ low * 0x7f;
        if (((w | ((w - low * 0x20) & ~w) | ((quote - low) & ~quote) | ((slash - low) & ~slash) |
              ((rubout - low) & ~rubout)) &
             high) != 0)
            break;
    }
    return i;
}

void json_string(struct buf *b, struct str s)
{
    buf_add(b, "\"", 1);
    size_t plain = 0; /* start of the run that is not copied yet */
    for (size_t i = 0; i < s.n;) {
        if ((unsigned char)s.p[i] < 0x80)
            i += plain_run(s.p + i, s.n - i);
        while (i < s.n && (unsigned char)s.p[i] < 0x80 && escapes[(unsigned char)s.p[i]] == 0)
            i++;
        if (i == s.n)
            break;
        unsigned char c = (unsigned char)s.p[i];
        size_t length = escapes[c] != 0 ? 0 : character(s.p + i, s.n - i);
        if (length != 0) {
            i += length;
            continue;
        }
        buf_add(b, s.p + plain, i - plain);
        if (escapes[c] != 0)
            escape(b, c);
        else
            buf_adds(b, "\xef\xbf\xbd");
        plain = ++i;
    }
    if (plain < s.n)
        buf_add(b, s.p + plain, s.n - plain);
    buf_add(b, "\"", 1);
}

void json_text(struct buf *b, struct str s)
{
    if (s.p == NULL)
        buf_adds(b, "null");
    else
        json_string(b, s);
}

/* Write ${v} as ${n} digits. */
static void digits(char *to, unsigned v, size_t n)
{
    while (n-- > 0) {
        to[n] = (char)('0' + v % 10);
        v /= 10;
    }
}

void json_time(struct buf *b, int64_t ms)
{
    if (ms == 0) {
        buf_adds(b, "null");
        return;
    }
    /* the last result: many times of a record, and of its neighbours, are in the same second */
    static _Thread_local int64_t last_second = INT64_MIN;
    static _Thread_local char text[] = "\"0000-00-00T00:00:00Z\"";
    /* 0001-01-01T00:00:00Z, 9999-12-31T23:59:59Z */
    const int64_t first = -62135596800, last = 253402300799;
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    seconds = seconds < first ? first : seconds > last ? last : seconds;
    if (seconds == last_second) {
        buf_add(b, text, sizeof(text) - 1);
        return;
    }
    last_second = seconds;
    int64_t days = seconds / 86400 - (seconds % 86400 < 0);
    unsigned rest = (unsigned)(seconds - days * 86400);
    /* Years from 1 March of year 0, so that the leap day is last; 400 years have 146097 days. */
    unsigned day = (unsigned)(days + 719468);
    unsigned era = day / 146097, of_era = day % 146097;
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153;
    unsigned of_month = of_year - (153 * month + 2) / 5 + 1;
    digits(text + 1, year + era * 400 + (month >= 10), 4);
    digits(text + 6, month < 10 ? month + 3 : month - 9, 2);
    digits(text + 9, of_month, 2);
    digits(text + 12, rest / 3600, 2);
    digits(text + 15, rest / 60 % 60, 2);
    digits(text + 18, rest % 60, 2);
    buf_add(b, text, sizeof(text) - 1);
}
