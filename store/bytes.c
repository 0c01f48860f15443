#include "store/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *buf_grow(struct buf *b, size_t more)
{
    if (b->failed)
        return NULL;
    size_t cap = b->cap == 0 ? 256 : b->cap * 2;
    if (cap < b->n + more)
        cap = b->n + more;
    char *p = realloc(b->p, cap);
    if (p == NULL) {
        b->failed = true;
        return NULL;
    }
    b->p = p;
    b->cap = cap;
    return b->p + b->n;
}

struct str str_u64(char digits[STR_U64_MAX], uint64_t v)
{
    size_t at = STR_U64_MAX;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    return (struct str){digits + at, STR_U64_MAX - at};
}

void buf_u64(struct buf *b, uint64_t v)
{
    char digits[STR_U64_MAX];
    buf_str(b, str_u64(digits, v));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
    if (to == NULL) {
        b->failed = true;
    } else {
        vsnprintf(to, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_free(struct buf *b)
{
    free(b->p);
    *b = (struct buf){0};
}
