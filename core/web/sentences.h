/*
 * Sentences of core/audit, which are English, in the languages of pages. Pure functions.
 * Texts sentence.ID.NAME of core/web/texts/en.txt are the patterns, those of another language their
 * translations. ID is that of a check or an error.
 */
#ifndef ASSAY_WEB_SENTENCES_H
#define ASSAY_WEB_SENTENCES_H

#include "core/web/texts.h"
#include "core/web/view_memory.h"

/* Those of a check or an error, and what they are in a language. */
struct sentences {
    enum language language;
    const struct text_row *patterns, *own;
    size_t count;
};

/*
 * sentences_of(l, id): those of ${id} in language ${l}.
 * sentence_in(of, english, memory): the sentence or words ${english}, with the numbers and texts of
 * the page that they contain; n 0: the language does not have them.
 * sentence_in_html(of, english, memory): so, too, as HTML.
 */
struct sentences sentences_of(enum language l, struct str id);
struct str sentence_in(const struct sentences *of, struct str english,
                       const struct view_memory *memory);
struct html sentence_in_html(const struct sentences *of, struct html english,
                             const struct view_memory *memory);

#endif
