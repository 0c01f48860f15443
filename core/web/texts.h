/* The texts of pages in each language, made from core/web/texts by make_templates. */
#ifndef ASSAY_WEB_TEXTS_H
#define ASSAY_WEB_TEXTS_H

#include "core/web/put.h"

/* In the order of WEB_LANGUAGES in subdir.am. */
enum language { LANGUAGE_EN, LANGUAGE_DE, LANGUAGES };

struct text_row {
    struct str key, text;
    struct html html; /* ${text}, escaped */
};
struct text_table {
    struct str code;             /* "en" */
    const struct text_row *rows; /* sorted by key */
    size_t count;
};
extern const struct text_table text_tables[LANGUAGES];

/*
 * texts_of(l, group, id, rows): the rows GROUP.ID.FIELD, which follow each other; their number.
 * texts_field(rows, count, field): the row of such a FIELD; an empty one: none.
 */
size_t texts_of(enum language l, const char *group, struct str id, const struct text_row **rows);
const struct text_row *texts_field(const struct text_row *rows, size_t count, struct str field);

/* text_find(l, group, id, field): the text GROUP.ID or GROUP.ID.FIELD (field NULL); n 0: none. */
struct str text_find(enum language l, const char *group, struct str id, const char *field);

/* language_of(code): the language "de"; LANGUAGES: unknown. */
enum language language_of(struct str code);

/* language_accepted(header): the best language for an Accept-Language header. */
enum language language_accepted(struct str header);

#endif
