#include "store/index/search_internal.h"

#include "store/index/bitmap_internal.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Classes of bytes: letters without case, digits, other URL characters, and one for all others. */
#define LETTERS(X)                                                                                 \
    X('a', 1)                                                                                      \
    X('b', 2)                                                                                      \
    X('c', 3)                                                                                      \
    X('d', 4)                                                                                      \
    X('e', 5)                                                                                      \
    X('f', 6)                                                                                      \
    X('g', 7)                                                                                      \
    X('h', 8)                                                                                      \
    X('i', 9)                                                                                      \
    X('j', 10)                                                                                     \
    X('k', 11)                                                                                     \
    X('l', 12)                                                                                     \
    X('m', 13)                                                                                     \
    X('n', 14)                                                                                     \
    X('o', 15)                                                                                     \
    X('p', 16)                                                                                     \
    X('q', 17)                                                                                     \
    X('r', 18)                                                                                     \
    X('s', 19) X('t', 20) X('u', 21) X('v', 22) X('w', 23) X('x', 24) X('y', 25) X('z', 26)
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

/*
 * Rough frequency of bytes in URLs: a search looks for the two rarest bytes of the pattern. Bytes
 * not listed are rare.
 */
static const char common[] = "zqjxvkywbfgu9876543d2l1h0rnm_%=&?icsoaept:.-/";

static size_t frequency(uint8_t c)
{
    const char *at = c == 0 ? NULL : strchr(common, c);
    return at == NULL ? 0 : (size_t)(at - common) + 1;
}

/* Frequency at a place of the pattern; a place with several forms matches anything. */
static size_t place_frequency(const struct search *s, size_t at)
{
    return s->masks[at] == 0xff ? sizeof(common) : frequency((uint8_t)s->pattern.p[at]);
}

static void choose_pairs(struct search *s)
{
    s->first = s->second = 0;
    for (size_t i = 1; i < s->pattern.n; i++)
        if (place_frequency(s, i) < place_frequency(s, s->first))
            s->first = i;
    if (s->pattern.n > 1)
        s->second = s->first == 0;
    for (size_t i = 0; i < s->pattern.n; i++)
        if (i != s->first && place_frequency(s, i) < place_frequency(s, s->second))
            s->second = i;
}

static size_t trigram_frequency(const uint8_t *p)
{
    return frequency(p[0]) + frequency(p[1]) + frequency(p[2]);
}

static bool forms_differ(const struct search *s, size_t at)
{
    return s->masks[at] == 0xff || s->masks[at + 1] == 0xff || s->masks[at + 2] == 0xff;
}

/* The rarest trigrams first: they rule out most. */
static void choose_trigrams(struct search *s)
{
    const uint8_t *pattern = (const uint8_t *)s->pattern.p;
    size_t weights[SEARCH_TRIGRAMS];
    s->trigram_count = 0;
    for (size_t i = 0; i + 3 <= s->pattern.n; i++) {
        size_t weight = trigram_frequency(pattern + i), at = s->trigram_count;
        if (forms_differ(s, i) || (at == SEARCH_TRIGRAMS && weight >= weights[at - 1]))
            continue;
        at -= at == SEARCH_TRIGRAMS;
        for (; at > 0 && weights[at - 1] > weight; at--) {
            weights[at] = weights[at - 1];
            s->trigrams[at] = s->trigrams[at - 1];
        }
        weights[at] = weight;
        s->trigrams[at] = search_trigram(pattern + i);
        s->trigram_count += s->trigram_count < SEARCH_TRIGRAMS;
    }
}

uint8_t *search_room(struct search *s, size_t n)
{
    s->letters = NULL;
    s->letter_count = 0;
    s->allocated = NULL;
    s->stop = NULL;
    uint8_t *to = s->folded;
    if (3 * n > sizeof(s->folded))
        to = s->allocated = malloc(3 * n);
    s->pattern = (struct str){(const char *)to, n};
    s->masks = to + n;
    s->want = to + 2 * n;
    return to;
}

void search_ready(struct search *s)
{
    uint8_t *want = (uint8_t *)(uintptr_t)s->want;
    for (size_t i = 0; i < s->pattern.n; i++)
        want[i] = (uint8_t)s->pattern.p[i] | s->masks[i];
    s->never = s->pattern.n != 0 && memchr(s->pattern.p, 0, s->pattern.n) != NULL;
    choose_pairs(s);
    choose_trigrams(s);
    s->ordered = s->trigram_count <= 1;
}

bool search_begin(struct search *s, struct str pattern)
{
    uint8_t *to = search_room(s, pattern.n);
    if (to == NULL)
        return false;
    for (size_t i = 0; i < pattern.n; i++) {
        to[i] = search_fold((uint8_t)pattern.p[i]);
        to[pattern.n + i] = search_mask(to[i]);
    }
    search_ready(s);
    return true;
}

/* Has the text one form of each letter with several forms? */
static bool letters_match(const struct search *s, const uint8_t *p)
{
    for (size_t i = 0; i < s->letter_count; i++) {
        const struct search_letter *l = &s->letters[i];
        unsigned form = 0;
        for (uint8_t at = 0; form < l->forms && at < l->n;) {
            bool same = search_fold(p[l->at + at]) == l->bytes[form][at];
            form += !same;
            at = same ? (uint8_t)(at + 1) : 0;
        }
        if (form == l->forms)
            return false;
    }
    return true;
}

/* Compare several bytes of a text at once. */
#ifdef __SSE2__
#define WIDE 16
static inline bool wide_matches(const uint8_t *p, const uint8_t *masks, const uint8_t *want)
{
    __m128i text = _mm_loadu_si128((const __m128i *)(const void *)p),
            mask = _mm_loadu_si128((const __m128i *)(const void *)masks);
    __m128i same = _mm_cmpeq_epi8(_mm_or_si128(text, mask),
                                  _mm_loadu_si128((const __m128i *)(const void *)want));
    return _mm_movemask_epi8(same) == 0xffff;
}
#else
#define WIDE 8
static inline bool wide_matches(const uint8_t *p, const uint8_t *masks, const uint8_t *want)
{
    uint64_t text, mask, wanted;
    memcpy(&text, p, sizeof(text));
    memcpy(&mask, masks, sizeof(mask));
    memcpy(&wanted, want, sizeof(wanted));
    return (text | mask) == wanted;
}
#endif

/*
 * A text may almost match at each letter, so long patterns are compared by words of several bytes;
 * the end overlaps.
 */
static inline bool bytes_match(const struct search *s, const uint8_t *p)
{
    size_t n = s->pattern.n, i = 0;
    for (; i + WIDE <= n; i += WIDE)
        if (!wide_matches(p + i, s->masks + i, s->want + i))
            return false;
    if (i > 0)
        return i == n || wide_matches(p + n - WIDE, s->masks + n - WIDE, s->want + n - WIDE);
    for (; i < n; i++)
        if ((p[i] | s->masks[i]) != s->want[i])
            return false;
    return true;
}

static inline bool matches_at(const struct search *s, const uint8_t *p)
{
    return bytes_match(s, p) && (s->letter_count == 0 || letters_match(s, p));
}

#ifdef __SSE2__
#define STRIDE 16
struct pair {
    __m128i first, second, first_mask, second_mask;
};

static inline void pair_of(const struct search *s, struct pair *p)
{
    p->first = _mm_set1_epi8((char)s->want[s->first]);
    p->second = _mm_set1_epi8((char)s->want[s->second]);
    p->first_mask = _mm_set1_epi8((char)s->masks[s->first]);
    p->second_mask = _mm_set1_epi8((char)s->masks[s->second]);
}

/* Bits of the positions, of sixteen from ${at} on, that have both bytes. */
static inline unsigned positions(const struct search *s, const struct pair *p, const uint8_t *at)
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
    *p = (struct pair){s->want[s->first], s->want[s->second], s->masks[s->first],
                       s->masks[s->second]};
}

static inline unsigned positions(const struct search *s, const struct pair *p, const uint8_t *at)
{
    unsigned found = 0;
    for (unsigned i = 0; i < STRIDE; i++)
        found |= (unsigned)(((at[i + s->first] | p->first_mask) == p->first) &
                            ((at[i + s->second] | p->second_mask) == p->second))
                 << i;
    return found;
}
#endif

/*
 * Long patterns are searched in the folded text by the C library in linear time (Crochemore and
 * Perrin, Two-way string-matching, 1991). Short ones have less to compare.
 */
#define FOLDED_FROM 257
#define FOLDED_BYTES 8192

static bool is_folded(const struct search *s)
{
    return s->pattern.n >= FOLDED_FROM && s->pattern.n <= FOLDED_BYTES / 2 && s->letter_count == 0;
}

static const uint8_t *find_folded(const struct search *s, const uint8_t *from, const uint8_t *last)
{
    uint8_t folded[FOLDED_BYTES];
    size_t n = s->pattern.n;
    while (from <= last) {
        size_t left = (size_t)(last - from) + n,
               size = left < sizeof(folded) ? left : sizeof(folded);
        for (size_t i = 0; i < size; i++)
            folded[i] = search_fold(from[i]);
        const uint8_t *at = memmem(folded, size, s->pattern.p, n);
        if (at != NULL)
            return from + (at - folded);
        from += size - n + 1;
    }
    return last + 1;
}

/* The first match in from..last (inclusive); ${last} + 1: none. TEXT_PAD bytes follow the text. */
static const uint8_t *find(const struct search *s, const struct pair *pair, const uint8_t *from,
                           const uint8_t *last)
{
    if (is_folded(s))
        return find_folded(s, from, last);
    for (; from <= last; from += STRIDE) {
        for (unsigned found = positions(s, pair, from); found != 0; found &= found - 1) {
            const uint8_t *at = from + __builtin_ctz(found);
            if (at > last)
                return last + 1;
            if (matches_at(s, at))
                return at;
        }
    }
    return last + 1;
}

static void find_rows(const struct search *s, const uint8_t *text, const uint32_t *offset,
                      uint32_t from, uint32_t to, uint64_t *bits)
{
    struct pair pair;
    if (s->never || from >= to || offset[to] - offset[from] <= s->pattern.n)
        return;
    pair_of(s, &pair);
    const uint8_t *last = text + offset[to] - 1 - s->pattern.n;
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

/*
 * About how many bytes are compared between two calls of ${stop}: well under a millisecond. A text
 * that almost matches everywhere costs its length times the pattern's.
 */
#define SEARCH_WORK ((uint64_t)1 << 19)

static uint64_t work_of(const struct search *s, size_t n)
{
    return (uint64_t)n * s->pattern.n;
}

/* The row, at most ${to}, at which SEARCH_WORK is done from ${from} on; at least one row. */
static uint32_t reach(const struct search *s, const uint32_t *offset, uint32_t from, uint32_t to)
{
    uint32_t end = from + 1;
    while (end < to && work_of(s, offset[end + 1] - offset[from]) <= SEARCH_WORK)
        end++;
    return end;
}

bool search_rows(const struct search *s, const uint8_t *text, const uint32_t *offset, uint32_t from,
                 uint32_t to, uint64_t *bits)
{
    for (uint32_t end; from < to; from = end) {
        end = reach(s, offset, from, to);
        find_rows(s, text, offset, from, end, bits);
        if (end < to && search_stops(s))
            return false;
    }
    return true;
}

/* Scattered rows: prefetch the texts of the next rows, and their offsets before that. */
#define AHEAD 12

bool search_some(const struct search *s, const uint8_t *text, const uint32_t *offset,
                 const uint16_t *rows, uint32_t count, uint64_t *bits)
{
    struct pair pair;
    uint64_t work = 0;
    pair_of(s, &pair);
    for (uint32_t i = 0; i < count && i < 2 * AHEAD; i++)
        __builtin_prefetch(offset + rows[i]);
    for (uint32_t i = 0; i < count && !s->never; i++) {
        if (i + 2 * AHEAD < count)
            __builtin_prefetch(offset + rows[i + 2 * AHEAD]);
        if (i + AHEAD < count) {
            __builtin_prefetch(text + offset[rows[i + AHEAD]]);
            __builtin_prefetch(text + offset[rows[i + AHEAD]] + 64);
        }
        const uint8_t *at = text + offset[rows[i]],
                      *last = text + offset[rows[i] + 1] - 1 - s->pattern.n;
        if (last >= at && find(s, &pair, at, last) <= last)
            bit_set(bits, rows[i]);
        work += SEARCH_WORK / 256; /* may be a read from the disk */
        work += work_of(s, offset[rows[i] + 1] - offset[rows[i]]);
        if (work < SEARCH_WORK)
            continue;
        work = 0;
        if (i + 1 < count && search_stops(s))
            return false;
    }
    return true;
}

void search_note_trigrams(struct str text, uint64_t *trigrams)
{
    for (size_t i = 0; i + 3 <= text.n; i++)
        bit_set(trigrams, search_trigram((const uint8_t *)text.p + i));
}

bool search_lacks(const struct search *s, const uint64_t *trigrams)
{
    for (size_t i = 0; i < s->trigram_count; i++)
        if (!bit_test(trigrams, s->trigrams[i]))
            return true;
    return false;
}

bool search_matches(const struct search *s, struct str text)
{
    struct pair pair;
    const uint8_t *from = (const uint8_t *)text.p;
    if (s->never || text.n < s->pattern.n)
        return false;
    pair_of(s, &pair);
    const uint8_t *last = from + (text.n - s->pattern.n);
    return find(s, &pair, from, last) <= last;
}

uint32_t search_word(const struct search *s, const uint8_t *words, const uint32_t *offset,
                     uint32_t from, uint32_t count)
{
    struct pair pair;
    size_t n = s->pattern.n;
    if (from >= count || offset[count] < n)
        return count;
    pair_of(s, &pair);
    const uint8_t *at = words + offset[from], *last = words + offset[count] - n;
    for (; (at = find(s, &pair, at, last)) <= last; at++) {
        size_t place = (size_t)(at - words);
        while (offset[from + 1] <= place)
            from++;
        if (place + n <= offset[from + 1])
            return from;
    }
    return count;
}

void search_end(struct search *s)
{
    free(s->allocated);
    free(s->letters);
    s->allocated = NULL;
    s->letters = NULL;
}
