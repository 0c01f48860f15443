/* Sentences of checks in the languages of pages. */
#include "core/web/sentences.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void *allocated[16];
static size_t allocations;

static void *alloc(void *of, size_t size)
{
    (void)of;
    ck_assert_uint_lt(allocations, COUNT(allocated));
    return allocated[allocations++] = calloc(1, size);
}

static const struct view_memory memory = {alloc, NULL};

static struct str in(enum language l, struct str id, struct str text)
{
    const struct sentences of = sentences_of(l, id);
    return sentence_in(&of, text, &memory);
}

static void free_all(void)
{
    while (allocations > 0)
        free(allocated[--allocations]);
}

/* Columns: check; what core/audit writes; German, NULL: none. */
static const struct {
    const char *check, *english, *german;
} cases[] = {
    {"title", "The page has 12 titles. Keep one <title>.",
     "Die Seite hat 12 Titel. Behalten Sie einen <title>."},
    {"title", "The title has 61 characters. Shorten it to at most 60, or search engines cut it.",
     "Der Titel hat 61 Zeichen. Kürzen Sie ihn auf höchstens 60, sonst schneiden Suchmaschinen ihn "
     "ab."},
    {"title", "Another title: <b>7 characters</b>", "Ein weiterer Titel: <b>7 characters</b>"},
    {"title", "Another title: {{t1}} {{n1}} %s", "Ein weiterer Titel: {{t1}} {{n1}} %s"},
    {"title", "Another title: ", "Ein weiterer Titel: "},
    {"title", "7 characters", "7 Zeichen"},
    {"title", "x7 characters", NULL},
    {"title", " characters", NULL},
    {"title", "7 characters.", NULL},
    {"title", "7 character", "7 Zeichen lang"},
    {"title", "7", NULL},
    {"title", "7. characters", NULL},
    {"title", ".7 characters", NULL},
    {"title", "7.5 characters", "7,5 Zeichen"},
    {"page_size",
     "The HTML takes 9 bytes to send. Reduce it to at most 5: compress it, and move inline images, "
     "styles and scripts to files",
     NULL},
    {"title", "", ""},
    {"image_alt",
     "1 of 2 images has no alternative text. Add an alt attribute to each, empty if "
     "the image is decoration.",
     "1 von 2 Bildern hat keinen Alternativtext. Ergänzen Sie das Attribut alt, leer bei reiner "
     "Dekoration."},
    {"load_time",
     "The page took 2.51 seconds to load. Reduce this to at most 2, with caching or faster "
     "hosting.",
     "Die Seite brauchte 2,51 Sekunden zum Laden. Verkürzen Sie das auf höchstens 2, durch Caching "
     "oder schnelleres Hosting."},
    {"robots", "Line 3: Disallow: /a", "Zeile 3: Disallow: /a"},
    {"robots_txt_valid", "Line 3: unknown directive: Line 4: unknown directive: x",
     "Zeile 3: unbekannte Anweisung: Line 4: unknown directive: x"},
    {"https_encryption",
     "Browsers warn about the certificate: certificate has expired. Install one that is valid for "
     "this host name.",
     "Browser warnen vor dem Zertifikat: Es ist abgelaufen. Installieren Sie eines, das für diesen "
     "Hostnamen gültig ist."},
    {"https_encryption",
     "Browsers warn about the certificate: CA signature digest algorithm too weak. Install one "
     "that is valid for this host name.",
     "Browser warnen vor dem Zertifikat (CA signature digest algorithm too weak). Installieren Sie "
     "eines, das für diesen Hostnamen gültig ist."},
    {"text_compression", "none", "keine"},
    {"headings", "7 characters", NULL},
    {"http_error", "The page answers with status 503. Grade a URL that answers 200.",
     "Die Seite antwortet mit dem Statuscode 503. Prüfen Sie eine URL, die mit 200 antwortet."},
    {"check_of_another_version", "7 characters", NULL},
};

START_TEST(a_sentence_is_translated_with_its_values)
{
    struct str check = str_of(cases[_i].check), english = str_of(cases[_i].english);
    const char *wanted = cases[_i].german == NULL ? "" : cases[_i].german;
    struct str german = in(LANGUAGE_DE, check, english);
    ck_assert_msg(str_eq(german, str_of(wanted)), "%s: %.*s", english.p, (int)german.n, german.p);
    ck_assert(str_eq(in(LANGUAGE_EN, check, english), english));
    free_all();
}
END_TEST

/* A value of each place, which no other text contains. */
static const char *const values[] = {"81", "82", "83", "«one»", "«two»", "«three»"};

static const char *value_of(char kind, char index)
{
    ck_assert(index >= '1' && index <= '3' && (kind == 'n' || kind == 't'));
    return values[(kind == 'n' ? 0 : 3) + index - '1'];
}

/* ${pattern} with values, zero-terminated. */
static void example(struct buf *out, struct str pattern)
{
    for (size_t i = 0; i < pattern.n; i++)
        if (pattern.p[i] == '{') {
            ck_assert(strncmp(pattern.p + i, "{{", 2) == 0);
            ck_assert(strncmp(pattern.p + i + 4, "}}", 2) == 0);
            buf_adds(out, value_of(pattern.p[i + 2], pattern.p[i + 3]));
            i += sizeof("{{n1}}") - 2;
        } else {
            buf_add(out, &pattern.p[i], 1);
        }
    buf_add(out, "", 1);
}

static void expect_translation(const struct text_row *english, const struct text_row *german)
{
    const char *check = english->key.p + sizeof("sentence.") - 1;
    struct buf given = {0}, wanted = {0};
    example(&given, english->text);
    example(&wanted, german->text);
    struct str text = in(LANGUAGE_DE, (struct str){check, strcspn(check, ".")}, str_of(given.p));
    ck_assert_msg(str_eq(text, str_of(wanted.p)), "%s: %.*s", english->key.p, (int)text.n, text.p);
    for (size_t i = 0; i < COUNT(values); i++)
        ck_assert_msg((strstr(given.p, values[i]) == NULL) == (strstr(wanted.p, values[i]) == NULL),
                      "%s has other values in German", english->key.p);
    buf_free(&given);
    buf_free(&wanted);
    free_all();
}

START_TEST(html_of_a_sentence_is_translated_as_its_text)
{
    struct buf given = {0}, wanted = {0};
    const struct sentences of = sentences_of(LANGUAGE_DE, str_of(cases[_i].check));
    put_text(&given, str_of(cases[_i].english));
    put_text(&wanted, str_of(cases[_i].german));
    struct html german = sentence_in_html(&of, (struct html){given.p, given.n}, &memory);
    ck_assert_msg(str_eq((struct str){german.p, german.n}, buf_view(&wanted)), "%s: %.*s",
                  cases[_i].english, (int)german.n, german.p);
    buf_free(&given);
    buf_free(&wanted);
    free_all();
}
END_TEST

START_TEST(every_sentence_has_its_own_translation)
{
    const struct text_table *english = &text_tables[LANGUAGE_EN],
                            *german = &text_tables[LANGUAGE_DE];
    size_t sentences = 0;
    for (size_t i = 0; i < english->count; i++)
        if (str_starts(english->rows[i].key, STR("sentence."))) {
            expect_translation(&english->rows[i], &german->rows[i]);
            sentences++;
        }
    ck_assert_uint_gt(sentences, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sentences");
    TCase *tcase = tcase_create("sentences");
    tcase_add_loop_test(tcase, a_sentence_is_translated_with_its_values, 0, (int)COUNT(cases));
    tcase_add_loop_test(tcase, html_of_a_sentence_is_translated_as_its_text, 0, (int)COUNT(cases));
    tcase_add_test(tcase, every_sentence_has_its_own_translation);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
