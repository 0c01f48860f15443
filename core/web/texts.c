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

/* The beginning of a key, and its size. */
struct prefix {
    const char *p;
    size_t n;
};

static int compare_prefix(const void *prefix, const void *row)
{
    const struct prefix *wanted = prefix;
    return strncmp(wanted->p, ((const struct text_row *)row)->key.p, wanted->n);
}

size_t texts_of(enum language l, const char *group, struct str id, const struct text_row **rows)
{
    char key[KEY_MAX];
    const struct text_table *table = &text_tables[l];
    if (!make_key(key, group, id, ""))
        return 0;
    const struct prefix wanted = {key, strlen(key)};
    const struct text_row *any =
        bsearch(&wanted, table->rows, table->count, sizeof(table->rows[0]), compare_prefix);
    if (any == NULL)
        return 0;
    const struct text_row *first = any, *last = any;
    while (first > table->rows && compare_prefix(&wanted, first - 1) == 0)
        first--;
    while (last + 1 < table->rows + table->count && compare_prefix(&wanted, last + 1) == 0)
        last++;
    *rows = first;
    return (size_t)(last - first) + 1;
}

const struct text_row *texts_field(const struct text_row *rows, size_t count, struct str field)
{
    static const struct text_row none;
    for (size_t i = 0; i < count; i++) {
        struct str key = rows[i].key;
        if (key.n > field.n && key.p[key.n - field.n - 1] == '.' &&
            memcmp(key.p + key.n - field.n, field.p, field.n) == 0)
            return &rows[i];
    }
    return &none;
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
