/* How the words of a question find documents: synonyms, relatives, and what each counts. */
#include "t/kit/answers.h"
#include "t/kit/suite.h"

#include <check.h>

/* Also a hit that does not answer. */
static struct answers_hit best(struct answers_reader *r, const char *question, const char *language)
{
    struct answers_hit hit = {0};
    unsigned count;
    const struct answers_question asked = {
        .text = str_of(question), .language = str_of(language), .limit = 1};
    ck_assert_int_eq(answers_ask(r, &asked, &hit, &count), STORE_OK);
    return hit;
}

/* One letter missing, added, wrong, or swapped; not the first one, and not two. */
START_TEST(a_misspelled_word_is_found)
{
    static const char *const found[] = {"gogles", "goggless", "gpggles", "googgles", "gogglse"};
    static const char *const other[] = {"poggles", "gpgglez", "gogless1"};
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "", "Goggles", "Goggles for swimming.");
    put_document(w, 2, 1, "", "Waffles", "Waffles for breakfast.");
    commit_to(w, 1);
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++)
        must_answer(r, found[i], 1);
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
        must_answer(r, other[i], 0);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(a_synonym_of_shops_is_found)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "en", "Delivery", "Delivery takes two days.");
    put_document(w, 2, 1, "de", "Versand", "Der Versand dauert zwei Tage.");
    put_document(w, 3, 1, "en", "Opening hours", "Monday to Friday.");
    commit_to(w, 1);
    must_answer(r, "Do you ship?", 1);
    must_answer(r, "Lieferung", 2);
    must_answer(r, "Do you knit?", 0);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

/*
 * A page about parcels to other countries answers for France; soap from Italy answers neither for
 * France nor for other countries. "back" asks for returns and refunds, which are not the same.
 */
START_TEST(a_word_asks_for_a_wider_one_but_not_the_other_way_round)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "en", "Soap", "Soap from Italy in returned boxes.");
    commit_to(w, 1);
    ck_assert_uint_eq(best(r, "abroad", "en").id, 0);
    ck_assert_uint_eq(best(r, "France", "en").id, 0);
    ck_assert_uint_eq(best(r, "refunds", "en").id, 0);
    put_document(w, 2, 1, "en", "Parcels", "We also go abroad.");
    commit_to(w, 2);
    must_answer(r, "Do you go to France?", 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(a_compound_has_two_words_of_a_question)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "de", "Winterdecke", "Decke mit Daunen.");
    put_document(w, 2, 1, "de", "Sommerdecke", "Aus Leinen.");
    commit_to(w, 1);
    must_answer(r, "Decke, Sommer", 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(a_token_is_a_synonym_of_two_words_of_a_question)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "fr", "Atelier", "Les horaires de l'atelier.");
    put_document(w, 2, 1, "fr", "Boutique", "Nous sommes ouverts, ouverts mardi, ouverts samedi.");
    commit_to(w, 1);
    ck_assert_uint_eq(best(r, "fermeture, horaire, stationnement", "fr").id, 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(a_policy_means_more_than_an_article)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "en", "Pan", "A pan of iron.");
    put_document(w, 2, 1, "en", "Returns", "Within thirty days.");
    commit_to(w, 1);
    ck_assert_uint_eq(best(r, "Can I return a pan?", "en").id, 2);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

START_TEST(a_mention_in_the_text_counts_less_than_the_title)
{
    struct answers_writer *w = create_file();
    struct answers_reader *r = open_reader();
    put_document(w, 1, 1, "en", "Massage", "Oil of arnica. Vanilla and vanilla, and perfume.");
    commit_to(w, 1);
    ck_assert_double_gt(best(r, "massage", "en").share, 0.99);
    ck_assert_double_gt(best(r, "vanilla", "en").share, 0.99);
    ck_assert_double_lt(best(r, "perfume", "en").share, 0.8);
    answers_reader_close(r);
    answers_close(w);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_misspelled_word_is_found,
        a_synonym_of_shops_is_found,
        a_word_asks_for_a_wider_one_but_not_the_other_way_round,
        a_compound_has_two_words_of_a_question,
        a_token_is_a_synonym_of_two_words_of_a_question,
        a_policy_means_more_than_an_article,
        a_mention_in_the_text_counts_less_than_the_title,
    };
    Suite *suite = suite_create("answers_words");
    TCase *t = tcase_create("words");
    tcase_add_checked_fixture(t, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
