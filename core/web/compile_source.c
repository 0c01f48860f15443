#include "core/web/compile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All memory is in one list until the program ends. */
struct block {
    struct block *next;
    char bytes[];
};
static struct block *blocks;

void *compile_alloc(size_t size)
{
    struct block *b = calloc(1, sizeof(*b) + size);
    if (b == NULL) {
        fputs("make_templates: out of memory\n", stderr);
        exit(1);
    }
    b->next = blocks;
    blocks = b;
    return b->bytes;
}

char *compile_copy(const char *p, size_t n)
{
    return memcpy(compile_alloc(n + 1), p, n);
}

char *compile_print(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *out = compile_alloc((size_t)n + 1);
    vsnprintf(out, (size_t)n + 1, format, again);
    va_end(again);
    return out;
}

char *compile_escaped(const char *text, size_t n)
{
    char *out = compile_alloc(n * 6 + 1), *to = out;
    for (size_t i = 0; i < n; i++) {
        const char *as = text[i] == '&'   ? "&amp;"
                         : text[i] == '<' ? "&lt;"
                         : text[i] == '>' ? "&gt;"
                         : text[i] == '"' ? "&quot;"
                                          : NULL;
        if (as != NULL)
            to += sprintf(to, "%s", as);
        else
            *to++ = text[i];
    }
    return out;
}

void compile_fail(const struct source *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (s != NULL)
        fprintf(stderr, "%s:%u: ", s->file, s->line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static char *read_all(FILE *file)
{
    size_t n = 0, cap = 4096, got;
    char *text = compile_alloc(cap);
    while ((got = fread(text + n, 1, cap - n - 1, file)) > 0)
        if ((n += got) + 1 >= cap) {
            char *larger = compile_alloc(cap *= 2);
            memcpy(larger, text, n);
            text = larger;
        }
    text[n] = '\0';
    return text;
}

struct source compile_read(const struct source *from, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        compile_fail(from, "cannot read %s: %s", path, strerror(errno));
    struct source s = {.file = compile_copy(path, strlen(path)), .text = read_all(file), .line = 1};
    if (ferror(file) != 0)
        compile_fail(from, "cannot read %s: %s", path, strerror(errno));
    fclose(file);
    s.at = s.text;
    return s;
}
