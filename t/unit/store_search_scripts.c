/*
 * Searches in any script. URLs are stored in ASCII, percent-encoded; a search pattern stands for
 * its encoding. Results are compared with an oracle that compares character by character, over
 * reports in segments and in the in-memory tail.
 */
#include "t/kit/store.h"

#include "store/index/search_internal.h"

#include <strings.h>

#define URLS 220
#define LETTERS_MOST 24

static struct kit k;
static uint64_t w, seed;

/* Columns: a letter in its cases, as UTF-8; twice the same if it has one case. */
static const struct {
    const char *lower, *upper;
} letters[] = {
    {"a", "A"},
    {"k", "K"},
    {"s", "S"},
    {"i", "I"},
    {"7", "7"},
    {"-", "-"},
    {"/", "/"},
    {"_", "_"},
    {"б", "Б"},
    {"д", "Д"},
    {"я", "Я"},
    {"ё", "Ё"},
    {"σ", "Σ"},
    {"λ", "Λ"},
    {"ί", "Ί"},
    {"ü", "Ü"},
    {"é", "É"},
    {"ñ", "Ñ"},
    {"ß", "ß"},
    {"ı", "ı"},
    {"İ", "İ"},
    {"ş", "Ş"},
    {"ő", "Ő"},
    {"ա", "Ա"},
    {"ა", "ა"},
    {"漢", "漢"},
    {"字", "字"},
    {"カ", "カ"},
    {"م", "م"},
    {"ر", "ر"},
    {"ש", "ש"},
    {"ก", "ก"},
    {"ह", "ह"},
    {"😀", "😀"},
    {"👍🏽", "👍🏽"},
    {"e\xCC\x81", "E\xCC\x81"},
    {"𐐨", "𐐀"},
    {"ⲁ", "Ⲁ"},
    {"ḁ", "Ḁ"},
    {"ѣ", "Ѣ"},
};
#define LETTERS (sizeof(letters) / sizeof(*letters))

static const char *letter(size_t i, bool upper)
{
    return upper ? letters[i].upper : letters[i].lower;
}

/* The escapes of a letter in a URL. */
static void encode(const char *utf8, bool high, char *out)
{
    for (; *utf8 != '\0'; utf8++)
        out += (unsigned char)*utf8 < 0x80
                   ? sprintf(out, "%c", *utf8)
                   : sprintf(out, high ? "%%%02X" : "%%%02x", (unsigned char)*utf8);
}

static void random_letters(uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(kit_random(&seed) % LETTERS);
}

static struct form {
    char text[64];
    size_t n;
} forms[LETTERS][2];

static bool begins(const char *url, const uint8_t *pattern, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct form *form = forms[pattern[i]];
        int at = strncasecmp(url, form[0].text, form[0].n) == 0   ? 0
                 : strncasecmp(url, form[1].text, form[1].n) == 0 ? 1
                                                                  : -1;
        if (at < 0)
            return false;
        url += form[at].n;
    }
    return true;
}

static bool has(const char *url, const uint8_t *pattern, size_t n)
{
    for (; *url != '\0'; url++)
        if (begins(url, pattern, n))
            return true;
    return false;
}

static uint64_t total_of(const char *pattern)
{
    struct store_list_query q = {.workspace = w,
                                 .sort = REPORT_BY_URL,
                                 .ascending = true,
                                 .page = 1,
                                 .per_page = 10,
                                 .search = str_of(pattern)};
    struct kit_list l = kit_reports(k.s, &q);
    ck_status(l.status, STORE_OK);
    store_read_end(k.s);
    return l.total;
}

static void setup(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 8;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    for (size_t i = 0; i < LETTERS; i++) {
        for (int upper = 0; upper < 2; upper++) {
            encode(letter(i, upper), false, forms[i][upper].text);
            forms[i][upper].n = strlen(forms[i][upper].text);
        }
    }
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}

START_TEST(a_pattern_in_any_script_is_found_in_any_case)
{
    static char urls[URLS][1200];
    static uint8_t texts[URLS][LETTERS_MOST];
    unsigned found = 0;
    seed = (uint64_t)_i + 1;
    for (int i = 0; i < URLS; i++) {
        strcpy(urls[i], "http://a.test/");
        random_letters(texts[i], LETTERS_MOST);
        for (int j = 0; j < LETTERS_MOST; j++)
            encode(letter(texts[i][j], kit_random(&seed) % 2 != 0), kit_random(&seed) % 2 != 0,
                   urls[i] + strlen(urls[i]));
        kit_create(&k, w, urls[i], "a.test");
        if (i == URLS * 3 / 4)
            kit_purge(&k, 100);
    }
    for (int round = 0; round < 250; round++) {
        uint8_t pattern[LETTERS_MOST];
        char text[LETTERS_MOST * 16] = "";
        size_t n = 1 + kit_random(&seed) % (round % 8 == 0 ? LETTERS_MOST : 4),
               from = kit_random(&seed) % (LETTERS_MOST - n + 1);
        uint64_t wanted = 0;
        memcpy(pattern, texts[kit_random(&seed) % URLS] + from, n);
        if (round % 5 == 0)
            random_letters(pattern, n);
        for (size_t i = 0; i < n; i++)
            strcat(text, letter(pattern[i], kit_random(&seed) % 2 != 0));
        for (int i = 0; i < URLS; i++)
            wanted += has(urls[i], pattern, n);
        found += wanted != 0;
        ck_assert_msg(total_of(text) == wanted, "%s: %llu, not %llu", text,
                      (unsigned long long)total_of(text), (unsigned long long)wanted);
    }
    ck_assert_uint_ge(found, 150);
}
END_TEST

/* Columns: a URL's path as UTF-8, a pattern, whether it matches. */
static const struct {
    const char *path, *pattern;
    bool found;
} pairs[] = {
    {"σίσυφος", "ΣΊΣΥΦΟΣ", true}, /* a last sigma is a sigma */
    {"ΣΊΣΥΦΟΣ", "σίσυφος", true},
    {"σίσυφος", "σισυφος", false}, /* an accent is significant */
    {"μm", "µM", true},            /* the micro sign is a mu */
    {"ǆ", "ǅ", true},              /* and a titlecase letter is the letter */
    {"straße", "STRAßE", true},
    {"straße", "strasse", false}, /* one letter is not two */
    {"ẞ", "ß", false},            /* UTF-8 encodes them with three bytes and two */
    /* dotted and dotless i are different letters */
    {"istanbul", "İSTANBUL", false},
    {"ısparta", "isparta", false},
    {"İzmir", "İZMIR", true},
    {"caf\xC3\xA9", "CAF\xC3\x89", true},
    {"cafe\xCC\x81", "caf\xC3\xA9", false}, /* composed and decomposed forms are different bytes */
    {"cafe\xCC\x81", "E\xCC\x81", true},
    {"日本語", "本", true},
    {"日本語", "木", false},
    {"👩‍👩‍👧", "👩‍👧", true},
    {"مرحبا", "رحب", true},
    {"привет", "РИВЕ", true},
    {"привет", "%D1%80", true}, /* the URL's own text is found as written */
    {"привет", "Прив%D0%b5т", true},
    {"a-b", "a\xFF", false}, /* no UTF-8 */
    {"\xFF", "\xFF", true},
};

START_TEST(letters_are_equal_by_simple_case_folding)
{
    char url[256] = "https://a.test/";
    encode(pairs[_i].path, _i % 2 != 0, url + strlen(url));
    for (int i = 0; i < 40; i++)
        kit_create(&k, w, i == 20 ? url : "https://a.test/nothing", "a.test");
    ck_assert_uint_eq(total_of(pairs[_i].pattern), pairs[_i].found);
    kit_purge(&k, 100);
    ck_assert_uint_eq(total_of(pairs[_i].pattern), pairs[_i].found);
}
END_TEST

START_TEST(two_patterns_that_differ_in_a_letter_are_distinct)
{
    kit_create(&k, w, "https://a.test/%d0%b4", "a.test"); /* д */
    /* е, whose two cases differ in the same positions */
    kit_create(&k, w, "https://a.test/%d0%b5", "a.test");
    for (int i = 0; i < 40; i++)
        kit_create(&k, w, "https://a.test/", "a.test");
    kit_purge(&k, 100);
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(total_of("Д"), 1);
        ck_assert_uint_eq(total_of("Е"), 1);
        ck_assert_uint_eq(total_of("де"), 0);
    }
}
END_TEST

/*
 * Columns: two patterns that start with the same bytes or fold to the same letter, and how many of
 * the four URLs below each finds.
 */
static const struct {
    const char *one, *other;
    unsigned ones, others;
} alike[] = {
    {"\xC3\xA9", "%C3%89", 2, 1},           {"\xC3\x89", "%C3%89", 2, 1},
    {"\xE1\xB9\xA1", "\xE1\xBA\x9B", 1, 1}, {"\xE1\xB9\xA0", "%e1%b9%a0", 1, 0},
    {"\xE1\xB2\x88", "\xEA\x99\x8A", 1, 1},
};

/* More rows than are read one by one, so that matches are cached. */
START_TEST(patterns_do_not_share_matches)
{
    static const char *const some[] = {"https://a.test/%c3%a9", "https://a.test/%c3%89",
                                       "https://a.test/%e1%ba%9b", "https://a.test/%e1%b2%88"};
    unsigned i = (unsigned)_i / 2;
    bool turned = _i % 2 != 0;
    kit_close(&k);
    kit_segment_rows = 1024;
    kit_ngram_block_shift = 8;
    kit_log_entries = 512;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    for (unsigned row = 0; row < 600; row++)
        kit_create(&k, w,
                   row >= 100 && row < 104 ? some[row - 100] : "https://a.test/c/3/8/9/a/%aa/e1/b9",
                   "a.test");
    kit_purge(&k, 1000);
    for (int turn = 0; turn < 4; turn++) {
        bool other = (turn % 2 != 0) != turned;
        ck_assert_uint_eq(total_of(other ? alike[i].other : alike[i].one),
                          other ? alike[i].others : alike[i].ones);
    }
}
END_TEST

/* Rows that nearly match at each letter take long, so a block of them is not read in one step. */
START_TEST(a_long_pattern_with_near_matches_stops_within_a_block)
{
    enum { LONG = 80, ROWS = 600, BLOCK = 512, AT_ONCE = 16 };
    char url[1024] = "https://a.test/", pattern[2 * LONG + 3] = "";
    struct kit_stop stop = {0};
    for (int i = 0; i < LONG; i++) {
        strcat(url, "%d0%b1");
        strcat(pattern, "\xD0\xB1");
    }
    strcat(pattern, "\xD0\xB0");
    kit_close(&k);
    kit_segment_rows = 1024;
    kit_ngram_block_shift = 9;
    kit_log_entries = 512;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    for (int i = 0; i < ROWS; i++) {
        url[15 + 6 * LONG] = '\0';
        strcat(url, i % 100 == 99 ? "%d0%90" : "/%d0%90");
        kit_create(&k, w, url, "a.test");
    }
    kit_purge(&k, 1000);
    struct store_list_query q = {.workspace = w,
                                 .sort = REPORT_BY_ID,
                                 .page = 1,
                                 .per_page = 10,
                                 .search = str_of(pattern),
                                 .stop = kit_stop,
                                 .stop_arg = &stop};
    for (stop.at = 1; stop.at < BLOCK / AT_ONCE; stop.at++, stop.asked = 0) {
        ck_status(kit_reports(k.s, &q).status, STORE_AGAIN);
        ck_assert_uint_eq(stop.asked, stop.at);
        store_read_end(k.s);
    }
    stop.at = 0;
    struct kit_list l = kit_reports(k.s, &q);
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, ROWS / 100);
    ck_assert_uint_ge(stop.asked, BLOCK / AT_ONCE);
    store_read_end(k.s);
}
END_TEST

/*
 * Of every length, since many letters are compared at once; in either case, and with another letter
 * at no position.
 */
START_TEST(a_pattern_of_any_length_matches_exactly)
{
    for (size_t n = 1; n <= 5000; n += n < 100 ? 1 : n / 3) {
        static char pattern[5001], text[5001 + 40 + TEXT_PAD];
        struct search s;
        for (size_t i = 0; i < n; i++) {
            pattern[i] = (char)('a' + (i * 7 + i / 26 + n) % 26);
            text[20 + i] = (char)(i % 3 == 0 ? pattern[i] - 32 : pattern[i]);
        }
        memset(text, '-', 20);
        memset(text + 20 + n, '-', 20);
        pattern[n] = '\0';
        ck_assert(search_begin(&s, str_of(pattern)));
        ck_assert(search_matches(&s, (struct str){text, 40 + n}) &&
                  search_matches(&s, (struct str){text + 20, n}));
        ck_assert(!search_matches(&s, (struct str){text, 19 + n}) &&
                  !search_matches(&s, (struct str){text + 21, 19 + n}));
        for (size_t i = 0; i < n; i += n <= 100 ? 1 : n / 8) {
            char was = text[20 + i];
            text[20 + i] = '!';
            ck_assert_msg(!search_matches(&s, (struct str){text, 40 + n}),
                          "length %zu, position %zu", n, i);
            text[20 + i] = was;
        }
        search_end(&s);
    }
}
END_TEST

/* Among consecutive near matches, the rows that match: at any position, in any number. */
START_TEST(rows_with_a_long_pattern_are_found_among_near_matches)
{
    enum { ROWS = 20, ROW = 900, ROUNDS = 12 };
    static char text[ROWS * (ROW + 1) + TEXT_PAD], pattern[ROW + 1];
    uint32_t offset[ROWS + 1];
    unsigned luck = 7;
    for (int round = 0; round < ROUNDS; round++) {
        struct search s;
        uint64_t bits = 0, right = 0;
        size_t n = 30 + (size_t)rand_r(&luck) % (ROW - 30), odd = (size_t)rand_r(&luck) % n;
        memset(pattern, 'z', n);
        pattern[odd] = 'Y';
        pattern[n] = '\0';
        for (uint32_t row = 0; row <= ROWS; row++)
            offset[row] = row * (ROW + 1);
        for (uint32_t row = 0; row < ROWS; row++) {
            char *at = text + offset[row];
            memset(at, row % 2 == 0 ? 'z' : 'Z', ROW);
            at[ROW] = '\0';
            at[(size_t)rand_r(&luck) % ROW] = 'y';
            right |= (uint64_t)(strcasestr(at, pattern) != NULL) << row;
        }
        ck_assert(search_begin(&s, str_of(pattern)));
        search_rows(&s, (const uint8_t *)text, offset, 0, ROWS, &bits);
        ck_assert_uint_eq(bits, right);
        search_end(&s);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_search_scripts");
    TCase *tc = tcase_create("scripts");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_pattern_in_any_script_is_found_in_any_case, 0, 4);
    tcase_add_loop_test(tc, letters_are_equal_by_simple_case_folding, 0,
                        (int)(sizeof(pairs) / sizeof(*pairs)));
    tcase_add_test(tc, two_patterns_that_differ_in_a_letter_are_distinct);
    tcase_add_loop_test(tc, patterns_do_not_share_matches, 0,
                        (int)(2 * sizeof(alike) / sizeof(*alike)));
    tcase_add_test(tc, a_long_pattern_with_near_matches_stops_within_a_block);
    tcase_add_test(tc, a_pattern_of_any_length_matches_exactly);
    tcase_add_test(tc, rows_with_a_long_pattern_are_found_among_near_matches);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
