/* The texts of pages in each language, made from core/web/texts by make_templates. */
#ifndef ASSAY_WEB_TEXTS_H
#define ASSAY_WEB_TEXTS_H

#include "core/web/put.h"

/* In the order of WEB_LANGUAGES in subdir.am. Sentences of results are English. */
enum language { LANGUAGE_EN, LANGUAGE_DE, LANGUAGES };

struct text_row {
    struct str key, text;
    struct html html; /* ${text}, escaped */
};
/* The rows check.ID.FIELD. */
struct check_texts {
    struct str id;
    const struct text_row *name, *wrong, *why, *mend;
};
struct text_table {
    struct str code;             /* "en" */
    const struct text_row *rows; /* sorted by key */
    size_t count;
    const struct check_texts *checks; /* in the order of the file, which is that of the checks */
    size_t check_count;
};
extern const struct text_table text_tables[LANGUAGES];

/*
 * texts_of_check(l, id, next): the texts of a check; NULL: it is unknown. *next: where the search
 * begins, then the check behind the found one; 0 at first. Checks in the order of the results are
 * found at once.
 */
const struct check_texts *texts_of_check(enum language l, struct str id, size_t *next);

/* text_find(l, group, id, field): the text GROUP.ID or GROUP.ID.FIELD (field NULL); n 0: none. */
struct str text_find(enum language l, const char *group, struct str id, const char *field);

/* language_of(code): the language "de"; LANGUAGES: unknown. */
enum language language_of(struct str code);

/* language_accepted(header): the best language for an Accept-Language header. */
enum language language_accepted(struct str header);

#endif
