/*
 * Small talk: which messages are only a greeting, thanks or a goodbye, the language of the reply,
 * and which are questions.
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>

#include "core/api/phrases_internal.h"
#include "t/kit/suite.h"

/* Columns: the agent's language, the visitor's text, the reply; NULL: it is a question. */
static const struct {
    const char *language, *message, *reply;
} messages[] = {
    {"en", "Hello", "Hello! What would you like to know?"},
    {"en", "hi", "Hello! What would you like to know?"},
    {"en", "  HEY there!! :-) \xf0\x9f\x91\x8b", "Hello! What would you like to know?"},
    {"en", "Good morning everyone", "Hello! What would you like to know?"},
    {"en", "Thanks", "You are welcome!"},
    {"en", "ok, thank you very much for your help.", "You are welcome!"},
    {"en", "Hi, thanks!", "You are welcome!"},
    {"en", "Thanks, bye", "Goodbye!"},
    {"en", "Goodbye", "Goodbye!"},
    {"de", "Hallo!", "Guten Tag! Was möchten Sie wissen?"},
    {"de-AT", "hi", "Guten Tag! Was möchten Sie wissen?"},
    {"en", "Guten Tag", "Guten Tag! Was möchten Sie wissen?"},
    {"en", "GRÜSS GOTT", NULL}, /* no upper case of ß folds back to it */
    {"en", "Vielen Dank", "Gern geschehen!"},
    {"en", "Tschüss!", "Auf Wiedersehen!"},
    {"en", "Bonjour", "Bonjour ! Que souhaitez-vous savoir ?"},
    {"en", "Merci beaucoup !", "Avec plaisir !"},
    {"en", "À BIENTÔT", "Au revoir !"},
    {"en", "¡Hola! ¿Qué tal?", "¡Hola! ¿Qué le gustaría saber?"},
    {"en", "muchas gracias", "¡De nada!"},
    {"en", "Adiós", "¡Hasta luego!"},
    {"en", "Olá", "Olá! O que gostaria de saber?"},
    {"pt-BR", "Muito obrigada!", "De nada!"},
    {"en", "tchau", "Até logo!"},
    {"en", "こんにちは！", "こんにちは。何をお知りになりたいですか？"},
    {"en", "どうもありがとうございます。", "どういたしまして。"},
    {"ja", "さようなら", "さようなら。"},
    {"it", "Ciao", "Salve! Che cosa desidera sapere?"},
    {"de", "ciao", "Auf Wiedersehen!"},
    {"nl", "hallo", "Hallo! Wat wilt u weten?"},
    {"tlh", "hello", "Hello! What would you like to know?"},
    {"", "hello", "Hello! What would you like to know?"},
    {"en", "hello, what does shipping cost?", NULL},
    {"en", "Hi, Kenya", NULL},
    {"en", "thanks for nothing", NULL},
    {"en", "all there", NULL}, /* no greeting among them */
    {"en", "ok", NULL},
    {"en", "", NULL},
    {"en", "?!", NULL},
    {"en", "hellos", NULL},
    {"en", "hell", NULL},
    {"en", "|hello|hi|", "Hello! What would you like to know?"},
    {"en", "hi hi hi hi hi hi hi hi hi hi hi hi", "Hello! What would you like to know?"},
    {"en", "hi hi hi hi hi hi hi hi hi hi hi hi hi", NULL},
    {"de", "Hallo, was kostet der Versand?", NULL},
    {"ja", "こんにちは、送料はいくらですか？", NULL},
};

START_TEST(only_small_talk_gets_a_phrase)
{
    struct str reply;
    bool is =
        phrase_small_talk(str_of(messages[_i].language), str_of(messages[_i].message), &reply);
    ck_assert_msg(is == (messages[_i].reply != NULL), "\"%s\"", messages[_i].message);
    ck_assert_msg(!is || str_eq(reply, str_of(messages[_i].reply)), "\"%s\": %.*s",
                  messages[_i].message, (int)reply.n, reply.p);
}
END_TEST

START_TEST(every_language_has_every_phrase)
{
    static const char *const languages[] = {"en", "de", "fr", "es", "pt", "ja", "it", "nl"};
    for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
        for (enum phrase which = 0; which < PHRASES; which++) {
            struct str phrase = phrase_of(str_of(languages[i]), which);
            ck_assert_msg(phrase.n > 0 && (i == 0 || !str_eq(phrase, phrase_of(STR("en"), which))),
                          "%s, %d", languages[i], (int)which);
        }
}
END_TEST

int main(void)
{
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
        return EXIT_FAILURE;
    Suite *suite = suite_create("phrases");
    TCase *tcase = tcase_create("phrases");
    tcase_add_loop_test(tcase, only_small_talk_gets_a_phrase, 0,
                        sizeof(messages) / sizeof(*messages));
    tcase_add_test(tcase, every_language_has_every_phrase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
