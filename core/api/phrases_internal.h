/*
 * Phrases that the server sends to visitors, by language, and replies to small talk. Pure
 * functions; the LC_CTYPE of the process is UTF-8.
 */
#ifndef ASSAY_API_PHRASES_H
#define ASSAY_API_PHRASES_H

#include "store/bytes.h"

enum phrase {
    PHRASE_HELLO,
    PHRASE_WELCOME, /* the reply to thanks */
    PHRASE_GOODBYE,
    PHRASE_NOT_FOUND, /* no answer was found */
    PHRASE_REGULAR_PRICE,
    PHRASE_IN_STOCK,
    PHRASE_OUT_OF_STOCK,
    PHRASE_BACKORDER,
    PHRASES
};

/*
 * phrase_of(language, which): static text in the language of the tag ${language}, such as "pt-BR";
 * English if the table lacks the language.
 */
struct str phrase_of(struct str language, enum phrase which);

/*
 * phrase_small_talk(language, message, reply): true if ${message} has only greetings, thanks and
 * goodbyes. ${reply}: the static reply to the last one, in its language. If several languages have
 * the phrase, the agent's ${language} is preferred.
 */
bool phrase_small_talk(struct str language, struct str message, struct str *reply);

#endif
