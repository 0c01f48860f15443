#include "core/web/texts.h"

#include "core/http/accept.h"
#include "core/text/chars.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX 96

static int compare_key(const void *key, const void *row)
{
    return strcmp(key, ((const struct text_row *)row)->key.p);
}

struct str text_find(enum language l, const char *group, struct str id, const char *field)
{
    char key[KEY_MAX];
    const struct text_table *table = &text_tables[l];
    int n = snprintf(key, sizeof(key), "%s.%.*s%s%s", group, (int)id.n, id.p,
                     field == NULL ? "" : ".", field == NULL ? "" : field);
    const struct text_row *row =
        n < 0 || (size_t)n >= sizeof(key)
            ? NULL
            : bsearch(key, table->rows, table->count, sizeof(table->rows[0]), compare_key);
    return row == NULL ? (struct str){0} : row->text;
}

enum language language_of(struct str code)
{
    enum language l = 0;
    while (l < LANGUAGES && !chars_equal(text_tables[l].code, code))
        l++;
    return l;
}

enum language language_accepted(struct str header)
{
    enum language best = 0;
    int most = 0;
    for (enum language l = 0; l < LANGUAGES; l++) {
        int quality = accept_language(header, text_tables[l].code);
        if (quality > most) {
            most = quality;
            best = l;
        }
    }
    return best;
}
