/* Searches of an n-gram block, made without a store, compared with a scan of its texts. */
#include "t/kit/store.h"

#include "store/index/bitmap_internal.h"
#include "store/index/ngram_block_internal.h"

#include <ctype.h>
#include <strings.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

enum { ROWS_MAX = 1 << NGRAM_BLOCK_ROWS_SHIFT, URL_MAX = 400 };

static char texts[ROWS_MAX][URL_MAX];
static struct str urls[ROWS_MAX];
static struct buf part;
static struct ngram_block block;

/*
 * Columns: rows; words to choose from; ${steep}: the n-th word occurs in one of n rows, otherwise
 * each equally often; letters per word.
 */
static const struct shape {
    uint32_t rows, words;
    bool steep;
    unsigned letters;
} shapes[] = {
    {1, 4, false, 26},         {63, 20, true, 26},      {64, 20, false, 3},
    {65, 5, true, 2},          {500, 300, true, 26},    {1000, 80, false, 4},
    {ROWS_MAX, 600, true, 26}, {ROWS_MAX, 60, true, 6}, {ROWS_MAX, 900, false, 5},
    {ROWS_MAX, 40, false, 26},
};

static size_t word(char *to, uint32_t number, unsigned letters)
{
    uint64_t seed = number + 77;
    size_t n = 2 + kit_random(&seed) % 9;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)('a' + kit_random(&seed) % letters);
    return n;
}

static void make_url(const struct shape *shape, uint32_t row, uint64_t *seed)
{
    static const char marks[] = "/-.?=&%_";
    char *p = texts[row];
    for (uint64_t left = 1 + kit_random(seed) % 12; left > 0; left--) {
        uint64_t of = kit_random(seed) % shape->words + 1;
        p += word(p, (uint32_t)(shape->steep ? shape->words / of : of), shape->letters);
        *p++ = marks[kit_random(seed) % (kit_random(seed) % 4 == 0 ? sizeof(marks) - 1 : 1)];
    }
    p += sprintf(p, "%u", row % 2 == 0 ? row : row % 97);
    if (kit_random(seed) % 8 == 0)
        texts[row][0] = (char)(texts[row][0] - ('a' - 'A'));
    urls[row] = (struct str){texts[row], (size_t)(p - texts[row])};
}

static void make_block(uint32_t rows)
{
    buf_free(&part);
    part = (struct buf){0};
    ngram_block_make(urls, rows, sizeof(*urls), &part);
    kit_assert(buf_ok(&part));
    struct part_reader r = {(const uint8_t *)part.p, (const uint8_t *)part.p + part.n, false};
    kit_assert(ngram_block_read(&r, &block) && block.head->rows == rows);
}

static void make(const struct shape *shape, uint64_t seed)
{
    memset(texts, 0, sizeof(texts));
    for (uint32_t i = 0; i < shape->rows; i++)
        make_url(shape, i, &seed);
    make_block(shape->rows);
}

static void teardown(void)
{
    buf_free(&part);
}

/* ---- patterns ---- */

/*
 * From a text, or from frequent words that follow each other nowhere else; sometimes with one
 * letter changed.
 */
static struct str pattern_of(uint64_t *seed, char out[URL_MAX])
{
    struct str from = urls[kit_random(seed) % block.head->rows];
    if (block.head->word_bytes != 0 && kit_random(seed) % 4 == 0)
        from = (struct str){(const char *)block.words, block.head->word_bytes};
    size_t most = kit_random(seed) % 4 == 0 ? 120 : 9, n = 1 + kit_random(seed) % most;
    n = n > from.n ? from.n : n;
    memcpy(out, from.p + kit_random(seed) % (from.n - n + 1), n);
    out[n] = '\0';
    if (kit_random(seed) % 8 == 0)
        out[kit_random(seed) % n] = (char)('a' + kit_random(seed) % 26);
    if (kit_random(seed) % 8 == 0 && *out >= 'a' && *out <= 'z')
        *out = (char)(*out - ('a' - 'A'));
    return (struct str){out, n};
}

/* It ends at the first check that stops it, with a part of its usual result. */
static void expect_stop(struct search *s, const uint64_t *bits)
{
    struct kit_stop stop = {.at = 1};
    uint64_t some[NGRAM_BLOCK_WORDS] = {0};
    s->stop = kit_stop;
    s->stop_arg = &stop;
    bool whole = ngram_block_match(&block, s, some);
    kit_assert(stop.asked == (whole ? 0 : 1));
    for (size_t i = 0; i < NGRAM_BLOCK_WORDS; i++)
        kit_assert(whole ? some[i] == bits[i] : (some[i] & ~bits[i]) == 0);
}

/* ${other}: the rows whose statistics decide the order of trigrams; NULL: none. */
static void expect_match(struct str pattern, const struct ngram_block *other, bool stops)
{
    struct search s;
    uint64_t bits[NGRAM_BLOCK_WORDS] = {0};
    kit_assert(search_begin(&s, pattern));
    if (other != NULL)
        ngram_block_order(other, &s);
    kit_assert(ngram_block_match(&block, &s, bits));
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        bool has = i < block.head->rows && strcasestr(texts[i], pattern.p) != NULL;
        if (bit_test(bits, i) != has)
            ck_abort_msg("\"%s\" is %s of \"%s\"", pattern.p, has ? "a part" : "no part", texts[i]);
    }
    if (stops)
        expect_stop(&s, bits);
    search_end(&s);
}

START_TEST(a_block_search_finds_the_rows_with_the_pattern)
{
    enum { NEEDLES = 600 };
    char pattern[URL_MAX];
    uint64_t seed = 3 + (uint64_t)_i;
    make(&shapes[_i], seed);
    for (int i = 0; i < NEEDLES; i++)
        expect_match(pattern_of(&seed, pattern), i % 3 == 0 ? NULL : &block, i % 5 == 0);
}
END_TEST

START_TEST(the_order_of_ngrams_does_not_change_the_result)
{
    enum { NEEDLES = 300 };
    static struct buf first;
    char pattern[URL_MAX];
    uint64_t seed = 9;
    make(&shapes[COUNT(shapes) - 2], 1);
    first = part;
    struct ngram_block other = block;
    part = (struct buf){0};
    make(&shapes[_i], 2);
    for (int i = 0; i < NEEDLES; i++)
        expect_match(pattern_of(&seed, pattern), &other, false);
    buf_free(&first);
}
END_TEST

/* A pattern has the same number of trigrams in any order. */
START_TEST(an_order_has_each_ngram_once)
{
    char pattern[URL_MAX];
    uint64_t seed = 4;
    make(&shapes[_i], 3);
    for (int i = 0; i < 300; i++) {
        struct search s;
        kit_assert(search_begin(&s, pattern_of(&seed, pattern)));
        struct search before = s;
        ngram_block_order(&block, &s);
        kit_assert(s.trigram_count == before.trigram_count);
        for (size_t j = 0; j < s.trigram_count; j++) {
            int left = 0;
            for (size_t l = 0; l < s.trigram_count; l++)
                left += (s.trigrams[l] == s.trigrams[j]) - (before.trigrams[l] == s.trigrams[j]);
            kit_assert(left == 0);
        }
        search_end(&s);
    }
}
END_TEST

/* Words end where the next one starts: the end of one and the start of the next are in neither. */
START_TEST(a_word_is_the_first_that_contains_the_pattern)
{
    static const char *const words[] = {"ab/",  "abab", "/ba",  "bbbb", "b-",
                                        "-aab", "a",    "ba-b", "b"};
    static const char *const patterns[] = {"ab",    "ba",   "b/a", "/a",  "bb", "bbbb",
                                           "bbbbb", "b-a",  "-",   "--",  "a",  "aab",
                                           "B",     "abab", "-b",  "bab", "c"};
    uint8_t all[256] = {0};
    uint32_t offset[COUNT(words) + 1] = {0};
    for (int i = 0; i < COUNT(words); i++) {
        memcpy(all + offset[i], words[i], strlen(words[i]));
        offset[i + 1] = offset[i] + (uint32_t)strlen(words[i]);
    }
    for (int i = 0; i < COUNT(patterns); i++) {
        struct search s;
        kit_assert(search_begin(&s, str_of(patterns[i])));
        for (uint32_t count = 0; count <= COUNT(words); count++) {
            for (uint32_t from = 0; from <= count; from++) {
                uint32_t want = from;
                while (want < count && strcasestr(words[want], patterns[i]) == NULL)
                    want++;
                ck_assert_msg(search_word(&s, all, offset, from, count) == want,
                              "\"%s\" from %u to %u", patterns[i], from, count);
            }
        }
        search_end(&s);
    }
}
END_TEST

/* ---- frequent words ---- */

/* The recorded number of rows; 0: it is not a frequent word. */
static uint32_t rows_of_frequent(const char *text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < block.head->words; i++)
        if (strlen(text) == block.word_at[i + 1] - block.word_at[i] &&
            strncasecmp((const char *)block.words + block.word_at[i], text, strlen(text)) == 0)
            for (uint32_t j = 0; j < block.bitmap; j++)
                n += bit_count(block.word_bits[(size_t)i * block.bitmap + j]);
    return n;
}

/*
 * Words that are rare, as only two rows share a number: their prefix or suffix, how many have it,
 * and the threshold to store it as a frequent word.
 */
static const struct {
    const char *form, *affix;
    uint32_t rows, frequent;
} rare[] = {
    {"/%2$s%3$c%1$u", "kitchen", 64, 64},
    {"/%2$s%3$c%1$u", "KitchenShop", 40, 40},
    {"/%2$s%3$c%1$u", "kettle", 40, 60},
    {"/%2$s%3$c%1$u", "kettledrum", 20, 0},
    {"/%2$s%3$c%1$u", "portal", 30, 0},
    {"/%1$u%3$c%2$s/", "bakery", 50, 50},
    {"/%1$u%3$c%2$s/", "herbakery", 33, 33},
    {"/%1$u%3$c%2$s/", "brewery", 31, 0},
    {"/%2$s%3$c%1$u", "cellar", 32, 32},
    {"/%2$s%3$c%1$u", "ham", 40, 0},
    {"/%2$swing%3$c%1$u", "conservatoryconservatory", 40, 40},
};

START_TEST(a_common_prefix_or_suffix_is_stored_as_a_frequent_word)
{
    uint32_t row = 0, frequent = 0;
    for (int i = 0; i < COUNT(rare); i++) {
        frequent += rare[i].frequent != 0;
        for (uint32_t j = 0; j < rare[i].rows; j++, row++) {
            urls[row] =
                (struct str){texts[row], (size_t)sprintf(texts[row], rare[i].form, row / 2,
                                                         rare[i].affix, 'a' + row / 2 % 26)};
            for (size_t at = 0; row % 3 == 0 && at < urls[row].n; at++)
                texts[row][at] = (char)toupper(texts[row][at]);
        }
    }
    make_block(row);
    for (int i = 0; i < COUNT(rare); i++)
        ck_assert_msg(rows_of_frequent(rare[i].affix) == rare[i].frequent, "%s", rare[i].affix);
    ck_assert_uint_eq(block.head->words, frequent);
}
END_TEST

/* In a full block one row in 64 must have it. */
START_TEST(the_frequency_threshold_grows_with_the_block)
{
    for (uint32_t row = 0; row < ROWS_MAX; row++) {
        const char *affix = row < 64 ? "kitchen" : row < 64 + 63 ? "portal" : "";
        urls[row] = (struct str){
            texts[row], (size_t)sprintf(texts[row], "/%s%c%u", affix, 'a' + (int)(row % 26), row)};
    }
    make_block(ROWS_MAX);
    ck_assert_uint_eq(rows_of_frequent("kitchen"), 64);
    ck_assert_uint_eq(rows_of_frequent("portal"), 0);
}
END_TEST

/* Any byte can follow a URL, including the letter that continues others. */
START_TEST(a_word_at_the_end_of_a_url_has_no_continuation)
{
    enum { ROWS = 48, END = 7 };
    for (uint32_t row = 0; row < ROWS; row++) {
        size_t n = (size_t)sprintf(texts[row], "/lardera%u", row);
        urls[row] = (struct str){texts[row], row % 4 == 0 ? END : n};
    }
    make_block(ROWS);
    ck_assert_uint_eq(rows_of_frequent("lardera"), ROWS - ROWS / 4);
    ck_assert_uint_eq(block.head->words, 1);
}
END_TEST

/* 63 words before it, and 64. */
START_TEST(a_word_far_into_a_url_is_found_without_a_posting)
{
    enum { ROWS = 48, FREQUENT = 64 };
    for (int before = FREQUENT - 1; before <= FREQUENT; before++) {
        for (uint32_t row = 0; row < ROWS; row++) {
            char *p = texts[row];
            for (int i = 0; i < before; i++)
                p += sprintf(p, "/b");
            p += sprintf(p, "/%s", row % 3 == 0 ? "larded" : "larder");
            urls[row] = (struct str){texts[row], (size_t)(p - texts[row])};
        }
        make_block(ROWS);
        ck_assert_uint_eq(rows_of_frequent("/larder"), before < FREQUENT ? ROWS - ROWS / 3 : 0);
        expect_match(str_of("larder"), NULL, false);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_ngram_block");
    TCase *tc = tcase_create("n-gram block");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_block_search_finds_the_rows_with_the_pattern, 0, COUNT(shapes));
    tcase_add_loop_test(tc, the_order_of_ngrams_does_not_change_the_result, 0, COUNT(shapes));
    tcase_add_loop_test(tc, an_order_has_each_ngram_once, 0, COUNT(shapes));
    tcase_add_test(tc, a_word_is_the_first_that_contains_the_pattern);
    tcase_add_test(tc, a_common_prefix_or_suffix_is_stored_as_a_frequent_word);
    tcase_add_test(tc, a_word_at_the_end_of_a_url_has_no_continuation);
    tcase_add_test(tc, the_frequency_threshold_grows_with_the_block);
    tcase_add_test(tc, a_word_far_into_a_url_is_found_without_a_posting);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
