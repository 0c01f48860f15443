/*
 * Sentences of core/audit, which are English, in the languages of pages. Pure functions.
 * Texts sentence.ID.NAME of core/web/texts/en.txt are the patterns, those of another language their
 * translations. ID is that of a check or an error.
 */
#ifndef ASSAY_WEB_SENTENCES_H
#define ASSAY_WEB_SENTENCES_H

#include "core/web/texts.h"
#include "core/web/view_memory.h"

/*
 * sentence_in(l, id, english, memory): the sentence or words ${english} of ${id}, with the numbers
 * and texts of the page that they contain; n 0: language ${l} does not have them.
 */
struct str sentence_in(enum language l, struct str id, struct str english,
                       const struct view_memory *memory);

#endif
