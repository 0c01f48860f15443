#include "search.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The sorts of bytes: letters in either case, digits, what URLs have besides, and one for all others. */
#define LETTERS(X)                                                                                                                         \
    X('a', 1)                                                                                                                              \
    X('b', 2)                                                                                                                              \
    X('c', 3) X('d', 4) X('e', 5) X('f', 6) X('g', 7) X('h', 8) X('i', 9) X('j', 10) X('k', 11) X('l', 12) X('m', 13) X('n', 14)           \
        X('o', 15) X('p', 16) X('q', 17) X('r', 18) X('s', 19) X('t', 20) X('u', 21) X('v', 22) X('w', 23) X('x', 24) X('y', 25)           \
            X('z', 26)
#define LETTER(c, sort) [c] = sort, [c - 32] = sort,
const uint8_t search_sorts[256] = {
    LETTERS(LETTER)['0'] = 27,
    ['1'] = 28,
    ['2'] = 29,
    ['3'] = 30,
    ['4'] = 31,
    ['5'] = 32,
    ['6'] = 33,
    ['7'] = 34,
    ['8'] = 35,
    ['9'] = 36,
    ['/'] = 37,
    ['-'] = 38,
    ['.'] = 39,
    ['_'] = 40,
    ['%'] = 41,
    ['?'] = 42,
    ['='] = 43,
    ['&'] = 44,
    [':'] = 45,
    ['~'] = 46,
    ['+'] = 47,
    [','] = 48,
    ['#'] = 49,
    ['@'] = 50,
    ['!'] = 51,
    ['$'] = 52,
    ['\''] = 53,
    ['('] = 54,
    [')'] = 55,
    ['*'] = 56,
    [';'] = 57,
    ['['] = 58,
    [']'] = 59,
    ['|'] = 60,
    [' '] = 61,
    ['"'] = 62,
};

/* How common a byte is in URLs, roughly: the rarest two of a needle are looked for. Those not named are rare. */
static const char common[] = "zqjxvkywbfgu9876543d2l1h0rnm_%=&?icsoaept:.-/";

static size_t commonness(uint8_t c)
{
    const char *at = c == 0 ? NULL : strchr(common, c);
    return at == NULL ? 0 : (size_t)(at - common) + 1;
}

static inline bool is_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static inline uint8_t fold(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static void choose_places(struct search *s)
{
    const uint8_t *needle = (const uint8_t *)s->needle.p;
    s->first = s->second = 0;
    for (size_t i = 1; i < s->needle.n; i++)
        if (commonness(needle[i]) < commonness(needle[s->first]))
            s->first = i;
    if (s->needle.n > 1)
        s->second = s->first == 0;
    for (size_t i = 0; i < s->needle.n; i++)
        if (i != s->first && commonness(needle[i]) < commonness(needle[s->second]))
            s->second = i;
}

static size_t gram_commonness(const uint8_t *p)
{
    return commonness(p[0]) + commonness(p[1]) + commonness(p[2]);
}

/* The rarest ones, rarest first: what rules out most is asked soonest. */
static void choose_grams(struct search *s)
{
    const uint8_t *needle = (const uint8_t *)s->needle.p;
    size_t weights[SEARCH_GRAMS];
    s->gram_count = 0;
    for (size_t i = 0; i + 3 <= s->needle.n; i++) {
        size_t weight = gram_commonness(needle + i), at = s->gram_count;
        if (at == SEARCH_GRAMS && weight >= weights[at - 1])
            continue;
        at -= at == SEARCH_GRAMS;
        for (; at > 0 && weights[at - 1] > weight; at--) {
            weights[at] = weights[at - 1];
            s->grams[at] = s->grams[at - 1];
        }
        weights[at] = weight;
        s->grams[at] = search_gram(needle + i);
        s->gram_count += s->gram_count < SEARCH_GRAMS;
    }
}

bool search_begin(struct search *s, struct str needle)
{
    s->allocated = NULL;
    uint8_t *to = s->folded;
    if (2 * needle.n > sizeof(s->folded)) {
        to = s->allocated = malloc(2 * needle.n);
        if (to == NULL)
            return false;
    }
    for (size_t i = 0; i < needle.n; i++) {
        to[i] = fold((uint8_t)needle.p[i]);
        to[needle.n + i] = is_letter(to[i]) ? 0x20 : 0;
    }
    s->needle = (struct str){(const char *)to, needle.n};
    s->masks = to + needle.n;
    s->never = needle.n != 0 && memchr(needle.p, 0, needle.n) != NULL;
    choose_places(s);
    choose_grams(s);
    return true;
}

static inline bool matches_at(const struct search *s, const uint8_t *p)
{
    const uint8_t *needle = (const uint8_t *)s->needle.p;
    for (size_t i = 0; i < s->needle.n; i++)
        if ((p[i] | s->masks[i]) != needle[i])
            return false;
    return true;
}

#ifdef __SSE2__
#define STRIDE 16
struct pair {
    __m128i first, second, first_mask, second_mask;
};

static inline void pair_of(const struct search *s, struct pair *p)
{
    p->first = _mm_set1_epi8(s->needle.p[s->first]);
    p->second = _mm_set1_epi8(s->needle.p[s->second]);
    p->first_mask = _mm_set1_epi8((char)s->masks[s->first]);
    p->second_mask = _mm_set1_epi8((char)s->masks[s->second]);
}

/* In which of the sixteen places from ${at} on the needle's two bytes are. */
static inline unsigned places(const struct search *s, const struct pair *p, const uint8_t *at)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(at + s->first));
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(at + s->second));
    a = _mm_cmpeq_epi8(_mm_or_si128(a, p->first_mask), p->first);
    b = _mm_cmpeq_epi8(_mm_or_si128(b, p->second_mask), p->second);
    return (unsigned)_mm_movemask_epi8(_mm_and_si128(a, b));
}
#else
#define STRIDE 8
struct pair {
    uint8_t first, second, first_mask, second_mask;
};

static inline void pair_of(const struct search *s, struct pair *p)
{
    *p = (struct pair){(uint8_t)s->needle.p[s->first], (uint8_t)s->needle.p[s->second], s->masks[s->first], s->masks[s->second]};
}

static inline unsigned places(const struct search *s, const struct pair *p, const uint8_t *at)
{
    unsigned found = 0;
    for (unsigned i = 0; i < STRIDE; i++)
        found |= (unsigned)(((at[i + s->first] | p->first_mask) == p->first) & ((at[i + s->second] | p->second_mask) == p->second)) << i;
    return found;
}
#endif

/* The first place of the needle in from..last (included); ${last} + 1 when there is none. The text goes on TEXT_PAD bytes behind it. */
static const uint8_t *find(const struct search *s, const struct pair *pair, const uint8_t *from, const uint8_t *last)
{
    for (; from <= last; from += STRIDE) {
        for (unsigned found = places(s, pair, from); found != 0; found &= found - 1) {
            const uint8_t *at = from + __builtin_ctz(found);
            if (at > last)
                return last + 1;
            if (matches_at(s, at))
                return at;
        }
    }
    return last + 1;
}

void search_rows(const struct search *s, const uint8_t *text, const uint32_t *offset, uint32_t from, uint32_t to, uint64_t *bits)
{
    struct pair pair;
    if (s->never || from >= to || offset[to] - offset[from] <= s->needle.n)
        return;
    pair_of(s, &pair);
    const uint8_t *last = text + offset[to] - 1 - s->needle.n;
    const uint8_t *at = text + offset[from];
    for (uint32_t row = from; (at = find(s, &pair, at, last)) <= last; at = text + offset[row]) {
        uint32_t place = (uint32_t)(at - text);
        while (offset[row + 1] <= place)
            row++;
        bit_set(bits, row);
        row++;
        if (row == to)
            return;
    }
}

/* Rows apart from each other: what is looked at soon is asked of the memory now. */
#define AHEAD 12

void search_some(const struct search *s, const uint8_t *text, const uint32_t *offset, const uint16_t *rows, uint32_t count, uint64_t *bits)
{
    struct pair pair;
    pair_of(s, &pair);
    for (uint32_t i = 0; i < count && !s->never; i++) {
        if (i + AHEAD < count) {
            __builtin_prefetch(text + offset[rows[i + AHEAD]]);
            __builtin_prefetch(text + offset[rows[i + AHEAD]] + 64);
        }
        const uint8_t *at = text + offset[rows[i]], *last = text + offset[rows[i] + 1] - 1 - s->needle.n;
        if (last >= at && find(s, &pair, at, last) <= last)
            bit_set(bits, rows[i]);
    }
}

void search_note_grams(struct str text, uint64_t *grams)
{
    for (size_t i = 0; i + 3 <= text.n; i++)
        bit_set(grams, search_gram((const uint8_t *)text.p + i));
}

bool search_lacks(const struct search *s, const uint64_t *grams)
{
    for (size_t i = 0; i < s->gram_count; i++)
        if (!bit_test(grams, s->grams[i]))
            return true;
    return false;
}

bool search_matches(const struct search *s, struct str text)
{
    for (size_t at = 0; !s->never && at + s->needle.n <= text.n; at++)
        if (matches_at(s, (const uint8_t *)text.p + at))
            return true;
    return false;
}

void search_end(struct search *s)
{
    free(s->allocated);
    s->allocated = NULL;
}
