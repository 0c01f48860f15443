/*
 * Bytes: a borrowed string with a length, and a growing buffer. Used by every folder.
 *
 * A struct str never owns its bytes; its source says how long they are valid. A struct buf owns its
 * bytes until buf_free. It remembers a failed allocation, so a chain of appends is checked once,
 * with buf_ok.
 */
#ifndef ASSAY_BYTES_H
#define ASSAY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *p;
    size_t n; /* bytes */
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

static inline struct str str_of(const char *zero_terminated)
{
    return (struct str){zero_terminated, zero_terminated == NULL ? 0 : strlen(zero_terminated)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* str_starts(s, start): ${s} begins with ${start}. */
static inline bool str_starts(struct str s, struct str start)
{
    return s.n >= start.n && (start.n == 0 || memcmp(s.p, start.p, start.n) == 0);
}

/* str_u64(digits, v): a number in decimal, in ${digits}. */
#define STR_U64_MAX 20
struct str str_u64(char digits[STR_U64_MAX], uint64_t v);

struct buf {
    char *p;
    size_t n;   /* bytes in use */
    size_t cap; /* bytes allocated */
    bool failed;
};

/*
 * buf_reserve(b, more): make space for ${more} bytes after b->n and return where they start; NULL
 * (and ${b} is failed): out of memory.
 */
char *buf_grow(struct buf *b, size_t more); /* for buf_reserve */
static inline char *buf_reserve(struct buf *b, size_t more)
{
    return b->cap - b->n >= more && !b->failed ? b->p + b->n : buf_grow(b, more);
}

/*
 * buf_add(b, p, n), buf_adds(b, s), buf_str(b, s): append bytes, a zero-terminated string, a str.
 */
static inline void buf_add(struct buf *b, const void *p, size_t n)
{
    char *to = n == 0 ? NULL : buf_reserve(b, n);
    if (to == NULL)
        return;
    memcpy(to, p, n);
    b->n += n;
}

static inline void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s)); /* a constant for a literal */
}

static inline void buf_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

/* buf_u64(b, v): append a number in decimal. */
void buf_u64(struct buf *b, uint64_t v);

/* buf_printf(b, format, …): append as printf does. */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->p, b->n};
}

/*
 * buf_free(b): free the bytes; ${b} is an empty buffer again. buf_reset(b): empty it, and keep the
 * memory.
 */
void buf_free(struct buf *b);
static inline void buf_reset(struct buf *b)
{
    b->n = 0;
    b->failed = false;
}

#endif
