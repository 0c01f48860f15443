#include "core/web/readable_url.h"

#include <utf8proc.h>

#define CHARACTER_MAX 4 /* bytes */

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The bytes of at most one character that ${s} begins with, percent-encoded; their number. */
static size_t encoded_bytes(struct str s, uint8_t out[CHARACTER_MAX])
{
    size_t n = 0;
    for (; n < CHARACTER_MAX && s.n >= 3 && s.p[0] == '%'; s.p += 3, s.n -= 3) {
        int high = digit_of(s.p[1]), low = digit_of(s.p[2]);
        if (high < 8 || low < 0) /* ASCII stays encoded */
            break;
        out[n++] = (uint8_t)(high << 4 | low);
    }
    return n;
}

static bool is_readable(utf8proc_int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
        return true;
    default:
        return false;
    }
}

/* The readable character that ${s} begins with, percent-encoded, in ${out}; its bytes, 0: none. */
static size_t character_of(struct str s, uint8_t out[CHARACTER_MAX])
{
    utf8proc_int32_t c;
    size_t bytes = encoded_bytes(s, out);
    utf8proc_ssize_t n = utf8proc_iterate(out, (utf8proc_ssize_t)bytes, &c);
    return bytes > 0 && n > 0 && is_readable(c) ? (size_t)n : 0;
}

struct str readable_url(struct str url, const struct view_memory *memory)
{
    if (url.n == 0 || memchr(url.p, '%', url.n) == NULL)
        return url;
    char *out = memory->alloc(memory->of, url.n);
    size_t n = 0;
    while (url.n > 0) {
        uint8_t character[CHARACTER_MAX];
        size_t bytes = character_of(url, character), taken = bytes == 0 ? 1 : 3 * bytes;
        memcpy(out + n, bytes == 0 ? (const void *)url.p : character, bytes == 0 ? 1 : bytes);
        n += bytes == 0 ? 1 : bytes;
        url = (struct str){url.p + taken, url.n - taken};
    }
    return (struct str){out, n};
}
