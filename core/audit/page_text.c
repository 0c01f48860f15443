#include "core/audit/page_internal.h"
#include "core/audit/page_text_internal.h"
#include "core/audit/text.h"

#include <libxml/HTMLparser.h>

/*
 * Code points of windows-1252 for the numbers 0x80 to 0x9F (WHATWG HTML, 13.2.5.80). 0: unchanged.
 */
static const uint16_t windows_1252[32] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178,
};

static uint32_t point_of_number(uint32_t n)
{
    if (n >= 0x80 && n < 0xA0 && windows_1252[n - 0x80] != 0)
        return windows_1252[n - 0x80];
    return n == 0 || n > 0x10FFFF || (n >= 0xD800 && n < 0xE000) ? 0xFFFD : n;
}

static unsigned digit_of(char c)
{
    char lower = text_lower(c);
    return c >= '0' && c <= '9'           ? (unsigned)(c - '0')
           : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10
                                          : 16;
}

/* Length of &#65; or &#x41; at ${s}, where the semicolon is optional; 0: none. */
static size_t number_at(struct str s, uint32_t *point)
{
    unsigned base = s.n > 2 && text_lower(s.p[2]) == 'x' ? 16 : 10;
    size_t begin = base == 16 ? 3 : 2, at = begin;
    uint32_t n = 0;
    for (; at < s.n && digit_of(s.p[at]) < base; at++)
        n = n > 0x10FFFF ? n : n * base + digit_of(s.p[at]);
    *point = point_of_number(n);
    return at == begin ? 0 : at + (at < s.n && s.p[at] == ';');
}

#define NAME_MAX_BYTES 10

/*
 * Length of &name; at ${s}; 0: none. Names of Latin-1 need no semicolon if no letter or digit
 * follows.
 */
static size_t name_at(struct str s, uint32_t *point)
{
    char name[NAME_MAX_BYTES + 1];
    size_t n = 0;
    while (n < NAME_MAX_BYTES && 1 + n < s.n &&
           (digit_of(s.p[1 + n]) < 10 || text_is_letter(s.p[1 + n]))) {
        name[n] = s.p[1 + n];
        n++;
    }
    name[n] = '\0';
    bool ends = 1 + n < s.n && s.p[1 + n] == ';';
    const htmlEntityDesc *entity = n < 2 ? NULL : htmlEntityLookup((const xmlChar *)name);
    if (entity == NULL || (!ends && (entity->value >= 0x100 || n == NAME_MAX_BYTES)))
        return 0;
    *point = entity->value;
    return 1 + n + ends;
}

void page_decode(struct str text, struct buf *out)
{
    while (text.n > 0) {
        const char *amp = memchr(text.p, '&', text.n);
        size_t n = amp == NULL ? text.n : (size_t)(amp - text.p);
        buf_add(out, text.p, n);
        text = text_from(text, n);
        if (text.n == 0)
            return;
        uint32_t point;
        n = text.n > 1 && text.p[1] == '#' ? number_at(text, &point) : name_at(text, &point);
        if (n == 0)
            buf_add(out, text.p, 1);
        else
            text_add_point(point, out);
        text = text_from(text, n == 0 ? 1 : n);
    }
}

struct str page_collapse(struct arena *arena, struct str s)
{
    s = text_trim(s);
    char kept[PAGE_TEXT_BYTES + 4];
    size_t n = 0;
    bool space = false;
    for (size_t i = 0; i < s.n; i++) {
        if (text_is_space(s.p[i])) {
            space = true;
            continue;
        }
        /* stop before a code point that may not fit */
        if (n >= PAGE_TEXT_BYTES - 5 && ((unsigned char)s.p[i] & 0xC0) != 0x80)
            break;
        if (space)
            kept[n++] = ' ';
        space = false;
        kept[n++] = s.p[i];
    }
    return arena_copy(arena, (struct str){kept, n});
}

size_t page_points(struct str s)
{
    size_t points = 0;
    s = text_trim(s);
    for (size_t i = 0; i < s.n; i++)
        points += text_is_space(s.p[i]) ? !text_is_space(s.p[i - 1])
                                        : ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return points;
}

bool page_same_language(struct str a, struct str b)
{
    struct str first, second, rest;
    text_split(a, '-', &first, &rest);
    text_split(b, '-', &second, &rest);
    return first.n == second.n && strncasecmp(first.p, second.p, first.n) == 0;
}
