#include "core/web/compile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX 1024

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct text *)a)->key, ((const struct text *)b)->key);
}

/* ${line} without white space at both ends. */
static char *trimmed(const char *line, size_t n)
{
    while (n > 0 && isspace((unsigned char)line[n - 1]))
        n--;
    while (n > 0 && isspace((unsigned char)*line)) {
        line++;
        n--;
    }
    return compile_copy(line, n);
}

static void add_row(struct texts *texts, const struct source *s, const char *line, size_t n)
{
    const char *equals = memchr(line, '=', n);
    if (equals == NULL)
        compile_fail(s, "a line needs the form: key = text");
    if (texts->count == TEXTS_MAX)
        compile_fail(s, "there are more than %d texts; raise TEXTS_MAX", TEXTS_MAX);
    texts->rows[texts->count++] = (struct text){
        .key = trimmed(line, (size_t)(equals - line)),
        .value = trimmed(equals + 1, n - (size_t)(equals + 1 - line)),
        .line = s->line,
    };
}

static void continue_row(struct texts *texts, const struct source *s, const char *line, size_t n)
{
    if (texts->count == 0)
        compile_fail(s, "the first line begins with white space; begin it with a key");
    struct text *row = &texts->rows[texts->count - 1];
    const char *space = row->value[0] == '\0' ? "" : " ";
    row->value = compile_print("%s%s%s", row->value, space, trimmed(line, n));
}

static void read_line(struct texts *texts, const struct source *s, const char *line, size_t n)
{
    if (*trimmed(line, n) == '\0' || *line == '#')
        return;
    if (isspace((unsigned char)*line))
        continue_row(texts, s, line, n);
    else
        add_row(texts, s, line, n);
}

static void check_rows(const struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        const struct source at = {.file = texts->file, .line = texts->rows[i].line};
        const char *key = texts->rows[i].key;
        if (*key == '\0' || texts->rows[i].value[0] == '\0')
            compile_fail(&at, "a key or a text is empty");
        if (key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.")] != '\0')
            compile_fail(&at, "%s is not a key: a to z, 0 to 9, _ and .", key);
        if (i > 0 && strcmp(key, texts->rows[i - 1].key) == 0)
            compile_fail(&at, "the key %s is there twice; delete one", key);
    }
}

struct texts texts_read(const char *path, const char *language)
{
    struct source s = compile_read(NULL, path);
    struct texts texts = {.language = language,
                          .file = s.file,
                          .rows = compile_alloc(TEXTS_MAX * sizeof(struct text))};
    for (; *s.at != '\0'; s.line++) {
        size_t n = strcspn(s.at, "\n");
        read_line(&texts, &s, s.at, n);
        s.at += n + (s.at[n] == '\n');
    }
    qsort(texts.rows, texts.count, sizeof(*texts.rows), compare_keys);
    check_rows(&texts);
    return texts;
}

const struct text *texts_find(const struct texts *texts, const char *key)
{
    const struct text wanted = {.key = key};
    return bsearch(&wanted, texts->rows, texts->count, sizeof(wanted), compare_keys);
}

void texts_compare(const struct texts *a, const struct texts *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct source at = {.file = a->file, .line = a->rows[i].line};
        if (texts_find(b, a->rows[i].key) == NULL)
            compile_fail(&at, "the key %s is missing in %s", a->rows[i].key, b->file);
    }
}
