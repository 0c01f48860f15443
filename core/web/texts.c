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
    if (id.n == 0 || !make_key(key, group, id, field))
        return (struct str){0};
    const struct text_row *row =
        bsearch(key, table->rows, table->count, sizeof(table->rows[0]), compare_key);
    return row == NULL ? (struct str){0} : row->text;
}

enum language language_of(struct str code)
{
    enum language l = 0;
    while (l < LANGUAGES && !chars_equal(text_tables[l].code, code))
        l++;
    return l;
}

/* The quality of ${code} or of its variants ("de-AT"), the most that is named. */
static int quality_of(struct str header, struct str code)
{
    int best = accept_quality(header, code, STR("*"));
    for (size_t i = 0; i + code.n < header.n; i++) {
        struct str tag = {header.p + i, 0};
        bool begins = i == 0 || header.p[i - 1] == ',' || header.p[i - 1] == ' ';
        if (!begins || !chars_equal((struct str){tag.p, code.n}, code) || tag.p[code.n] != '-')
            continue;
        while (i + tag.n < header.n && memchr(",; \t", tag.p[tag.n], 4) == NULL)
            tag.n++;
        int quality = accept_quality(header, tag, tag);
        best = quality > best ? quality : best;
    }
    return best;
}

enum language language_accepted(struct str header)
{
    enum language best = 0;
    int most = 0;
    for (enum language l = 0; l < LANGUAGES; l++) {
        int quality = quality_of(header, text_tables[l].code);
        if (quality > most) {
            most = quality;
            best = l;
        }
    }
    return best;
}
