/*
 * What the server says to visitors in its own words, by language, and the small talk it replies to.
 * Pure functions; the LC_CTYPE of the process is UTF-8.
 */
#ifndef ASSAY_API_PHRASES_H
#define ASSAY_API_PHRASES_H

#include "store/bytes.h"

enum phrase {
    PHRASE_HELLO,
    PHRASE_WELCOME, /* the reply to thanks */
    PHRASE_GOODBYE,
    PHRASE_NOTHING, /* no answer was found */
    PHRASE_REGULAR_PRICE,
    PHRASE_IN_STOCK,
    PHRASE_OUT_OF_STOCK,
    PHRASE_BACKORDER,
    PHRASES
};

/*
 * phrase_of(language, which): static text in the language of the tag ${language}, such as "pt-BR";
 * in English where the table lacks the language.
 */
struct str phrase_of(struct str language, enum phrase which);

/*
 * phrase_small_talk(language, message, reply): whether ${message} is nothing but greetings, thanks
 * and goodbyes. ${reply}: static, to the last of them, in its language. Where several languages
 * have it:
 * in ${language}, the agent's, if that is one of them.
 */
bool phrase_small_talk(struct str language, struct str message, struct str *reply);

#endif
