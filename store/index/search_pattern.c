#include "store/index/search_internal.h"

#include <stdlib.h>
#include <utf8proc.h>

/*
 * A pattern for URLs, which are ASCII: other characters are searched as their percent-encoding. A
 * letter matches in each case with as many bytes of UTF-8, which nearly all have; not ẞ and ß, İ
 * and i, the Kelvin sign and k.
 */

static uint32_t upper(uint32_t c)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
}

static uint32_t folded(uint32_t c)
{
    return (uint32_t)utf8proc_tolower(utf8proc_toupper((utf8proc_int32_t)c));
}

static size_t utf8_bytes(uint32_t c, uint8_t out[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, out);
}

/* ---- the forms of a letter ---- */

struct forms {
    uint32_t c[SEARCH_FORMS]; /* ascending, so that a pattern is the same in any spelling */
    size_t count;
};

static void form_add(struct forms *f, size_t bytes, uint32_t c)
{
    uint8_t utf8[4];
    size_t at = 0;
    while (at < f->count && f->c[at] < c)
        at++;
    if ((at < f->count && f->c[at] == c) || f->count == SEARCH_FORMS ||
        utf8_bytes(c, utf8) != bytes)
        return;
    memmove(&f->c[at + 1], &f->c[at], (f->count - at) * sizeof(*f->c));
    f->c[at] = c;
    f->count++;
}

/*
 * Letters that are neither the upper nor the lower case of a pair: title case, final sigma, Greek
 * letters used as symbols, and archaic ones.
 */
static const uint16_t thirds[] = {0xb5,  0x1c5, 0x1c8, 0x1cb, 0x1f2, 0x345, 0x3c2,  0x3d0, 0x3d1,
                                  0x3d5, 0x3d6, 0x3f0, 0x3f1, 0x3f4, 0x3f5, 0x1c88, 0x1e9b};

static void forms_of(uint32_t c, size_t bytes, struct forms *f)
{
    uint32_t fold = folded(c);
    *f = (struct forms){.count = 0};
    form_add(f, bytes, c);
    form_add(f, bytes, fold);
    form_add(f, bytes, upper(fold));
    for (size_t i = 0; i < sizeof(thirds) / sizeof(*thirds); i++)
        if (folded(thirds[i]) == fold)
            form_add(f, bytes, thirds[i]);
}

/* ---- the pattern ---- */

static size_t percent(const uint8_t *bytes, size_t n, uint8_t *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = '%';
        *to++ = (uint8_t)digits[bytes[i] >> 4];
        *to++ = (uint8_t)digits[bytes[i] & 0xf];
    }
    return 3 * n;
}

/* Set masks and forms of the letter at ${at} of the pattern, which has that many bytes of UTF-8. */
static void letter_put(struct search *s, uint32_t c, size_t bytes, uint8_t *to, uint8_t *masks,
                       size_t at)
{
    struct forms f;
    uint8_t utf8[4];
    struct search_letter *l = &s->letters[s->letter_count];
    forms_of(c, bytes, &f);
    *l = (struct search_letter){
        .at = (uint32_t)at, .n = (uint8_t)(3 * bytes), .forms = (uint8_t)f.count};
    for (size_t i = 0; i < f.count; i++) {
        utf8_bytes(f.c[i], utf8);
        percent(utf8, bytes, l->bytes[i]);
    }
    for (size_t i = 0; i < l->n; i++) {
        to[at + i] = l->bytes[0][i];
        masks[at + i] = search_mask(to[at + i]);
        for (size_t j = 1; j < f.count; j++)
            masks[at + i] = l->bytes[j][i] == to[at + i] ? masks[at + i] : 0xff;
    }
    s->letter_count += f.count > 1;
}

bool search_begin_url(struct search *s, struct str pattern)
{
    const uint8_t *p = (const uint8_t *)pattern.p, *end = pattern.n == 0 ? p : p + pattern.n;
    size_t others = 0, at = 0, n;
    for (size_t i = 0; i < pattern.n; i++)
        others += p[i] >= 0x80;
    if (others == 0)
        return search_begin(s, pattern);
    uint8_t *to = search_room(s, pattern.n + 2 * others),
            *masks = to == NULL ? NULL : to + s->pattern.n;
    s->letters = to == NULL ? NULL : malloc(others * sizeof(*s->letters));
    if (s->letters == NULL) {
        search_end(s);
        return false;
    }
    for (; p < end; p += n) {
        utf8proc_int32_t c;
        utf8proc_ssize_t length = utf8proc_iterate(p, end - p, &c);
        n = length > 0 ? (size_t)length : 1;
        if (*p < 0x80) {
            to[at] = search_fold(*p);
            masks[at] = search_mask(to[at]);
            at++;
        } else if (n == 1) { /* not UTF-8: a byte */
            percent(p, 1, to + at);
            for (int i = 0; i < 3; i++, at++)
                masks[at] = search_mask(to[at]);
        } else {
            letter_put(s, (uint32_t)c, n, to, masks, at);
            at += 3 * n;
        }
    }
    search_ready(s);
    return true;
}
