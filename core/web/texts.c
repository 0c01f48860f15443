#include "core/web/texts.h"

#include "core/http/accept.h"
#include "core/text/chars.h"

#include <stdlib.h>

#define KEY_MAX 96

/* GROUP.ID.FIELD in ${key}; false: it is too long to be a key. */
static bool make_key(char key[KEY_MAX], const char *group, struct str id, const char *field)
{
    size_t g = strlen(group), f = field == NULL ? 0 : strlen(field) + 1;
    if (g + 1 + id.n + f >= KEY_MAX)
        return false;
    char *to = mempcpy(key, group, g);
    *to++ = '.';
    to = mempcpy(to, id.p, id.n);
    if (field != NULL) {
        *to++ = '.';
        to = mempcpy(to, field, f - 1);
    }
    *to = '\0';
    return true;
}

static int compare_key(const void *key, const void *row)
{
    return strcmp(key, ((const struct text_row *)row)->key.p);
}

struct str text_find(enum language l, const char *group, struct str id, const char *field)
{
    char key[KEY_MAX];
    const struct text_table *table = &text_tables[l];
    const struct str none = {0};
    if (id.n == 0 || !make_key(key, group, id, field))
        return none;
    const struct text_row *row =
        bsearch(key, table->rows, table->count, sizeof(table->rows[0]), compare_key);
    return row == NULL ? none : row->text;
}

const struct check_texts *texts_of_check(enum language l, struct str id, size_t *next)
{
    const struct text_table *table = &text_tables[l];
    for (size_t tries = table->check_count; tries > 0; tries--) {
        const struct check_texts *check = &table->checks[*next];
        *next = *next + 1 < table->check_count ? *next + 1 : 0;
        if (str_eq(check->id, id))
            return check;
    }
    return NULL;
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
