/* The tokenizer of the answer index: words, stop words, stems and accents by language; bigrams. */
#include "store/answers/tokenizer_internal.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct tokens {
    char text[1024];
    struct str source;
};

static int take(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct tokens *t = arg;
    size_t at = strlen(t->text);
    ck_assert_int_ge(from, 0);
    ck_assert_int_lt(from, to);
    ck_assert_uint_le((size_t)to, t->source.n);
    snprintf(t->text + at, sizeof(t->text) - at, "%s%.*s",
             (flags & FTS5_TOKEN_COLOCATED) != 0 ? "|"
             : at > 0                            ? " "
                                                 : "",
             n, token);
    return SQLITE_OK;
}

static void tokenize(const char *language, int flags, const char *text, struct tokens *out)
{
    sqlite3 *db;
    fts5_api *api;
    struct tokenizer *t;
    *out = (struct tokens){.source = str_of(text)};
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(tokenizer_register(db, &api), SQLITE_OK);
    ck_assert_int_eq(tokenizer_new(api, language_find(str_of(language)), &t), SQLITE_OK);
    ck_assert_int_eq(tokenizer_run(t, flags, out->source, take, out), SQLITE_OK);
    tokenizer_free(t);
    sqlite3_close(db);
}

/* Language; text; its tokens in a document, colocated ones after "|". */
static const struct {
    const char *language, *text, *tokens;
} cases[] = {
    {"en", "How many days do refunds take?", "mani day refund take"},
    {"en", "Free SHIPPING, 30-day returns!", "free ship 30 day return"},
    {"en-GB", "the retailer's don't", "retail"},
    {"EN_us", "Cafés", "cafe"},
    {"de", "Rücksendungen für Größe", "rucksend gross"},
    {"de", "die Straße", "strass"},
    {"fr", "L’échange des commandes livrées", "echang command livr|livre"},
    {"es", "devolución devoluciones", "devolu|devolucion devolu"},
    {"pt-BR", "devolução", "devolu|devoluca"},
    {"ru", "возвраты и возврат", "возврат возврат"},
    {"xx", "refunds The", "refunds the"},
    {"", "refunds", "refunds"},
    {"ja", "東京都", "東京|東 京都|京 都"},
    {"ja", "iPhoneの充電", "iphone の充|の 充電|充 電"},
    {"zh", "退货", "退货|退 货"},
    {"th", "กาแฟ", "กา|ก าแ|า แฟ|แ ฟ"},
    {"en", "", ""},
    {"en", " .,;— … ", ""},
    {"en", "\xff\xfe \xc3", NULL},
};

START_TEST(words_are_folded_and_stemmed_by_table_language)
{
    struct tokens t;
    tokenize(cases[_i].language, FTS5_TOKENIZE_DOCUMENT, cases[_i].text, &t);
    if (cases[_i].tokens != NULL)
        ck_assert_str_eq(t.text, cases[_i].tokens);
}
END_TEST

START_TEST(a_question_has_bigrams_and_a_document_unigrams_too)
{
    struct tokens t;
    tokenize("ja", FTS5_TOKENIZE_QUERY, "東京都", &t);
    ck_assert_str_eq(t.text, "東京 京都");
    tokenize("ja", FTS5_TOKENIZE_QUERY, "茶", &t);
    ck_assert_str_eq(t.text, "茶");
}
END_TEST

START_TEST(a_question_is_split_around_hiragana)
{
    struct tokens t;
    tokenize("ja", FTS5_TOKENIZE_QUERY, "革が濡れたら修理", &t);
    ck_assert_str_eq(t.text, "革 濡 れた たら 修理");
}
END_TEST

/* Forms of one word: each pair shares a token. */
static const char *const forms[][3] = {
    {"en", "refund", "refunds"},
    {"en", "delivered", "delivering"},
    {"de", "Rückgabe", "rückgaben"},
    {"de", "Versandkosten", "versandkosten"},
    {"fr", "remboursement", "remboursements"},
    {"es", "envío", "envios"},
    {"pt", "entrega", "entregas"},
    {"it", "spedizione", "spedizioni"},
    {"nl", "bestelling", "bestellingen"},
    {"sv", "retur", "returer"},
};

START_TEST(word_forms_share_a_token)
{
    struct tokens a, b;
    tokenize(forms[_i][0], FTS5_TOKENIZE_DOCUMENT, forms[_i][1], &a);
    tokenize(forms[_i][0], FTS5_TOKENIZE_DOCUMENT, forms[_i][2], &b);
    a.text[strcspn(a.text, "|")] = '\0';
    b.text[strcspn(b.text, "|")] = '\0';
    ck_assert_str_eq(a.text, b.text);
}
END_TEST

START_TEST(a_long_word_is_cut_at_a_character_boundary)
{
    char text[1001];
    struct tokens t;
    memset(text, 'x', 63);
    memcpy(text + 63, "éé", 5);
    tokenize("xx", FTS5_TOKENIZE_DOCUMENT, text, &t);
    ck_assert_uint_le(strlen(t.text), 3 * TOKENIZER_WORD_MAX);
    memset(text, 'y', 1000);
    text[1000] = '\0';
    tokenize("en", FTS5_TOKENIZE_DOCUMENT, text, &t);
    ck_assert_uint_eq(strlen(t.text), TOKENIZER_WORD_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("answers_tokenizer");
    TCase *t = tcase_create("words");
    tcase_add_loop_test(t, words_are_folded_and_stemmed_by_table_language, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(t, a_question_is_split_around_hiragana);
    tcase_add_test(t, a_question_has_bigrams_and_a_document_unigrams_too);
    tcase_add_loop_test(t, word_forms_share_a_token, 0, sizeof(forms) / sizeof(*forms));
    tcase_add_test(t, a_long_word_is_cut_at_a_character_boundary);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
