#include "core/web/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LITERAL_MAX 3000 /* bytes of a string in C, below what ISO C requires compilers to take */
#define COLUMN 76
#define CHECK "check." /* the keys of a check: check.ID.FIELD */

/* As in struct check_texts. */
static const char *const check_fields[] = {"name", "wrong", "why", "mend"};

static void indent(unsigned depth)
{
    printf("%*s", (int)depth * 4, "");
}

/* ${n} bytes as a string of C, in lines. */
static void put_string(const char *p, size_t n, unsigned depth)
{
    size_t column = 0;
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (column >= COLUMN) {
            printf("\"\n");
            indent(depth);
            putchar('"');
            column = 0;
        }
        if (c == '\n')
            column += (size_t)printf("\\n");
        else if (c == '"' || c == '\\' || c == '?')
            column += (size_t)printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7F)
            column += (size_t)printf("\\%03o", c);
        else
            column += (size_t)printf("%c", c);
    }
    putchar('"');
}

static void put_literal(const char *p, size_t n, unsigned depth)
{
    for (size_t part; n > 0; p += part, n -= part) {
        part = n < LITERAL_MAX ? n : LITERAL_MAX;
        indent(depth);
        printf("buf_add(out, ");
        put_string(p, part, depth + 1);
        printf(", %zu);\n", part);
    }
}

static const char *const puts_of[] = {
    [ESCAPE_TEXT] = "PUT_TEXT", [ESCAPE_URL] = "PUT_URL", [ESCAPE_URL_PART] = "PUT_URL_PART"};

/* Literals that follow each other are one. */
static const struct node *put_literals(const struct node *node, unsigned depth)
{
    size_t n = 0;
    const struct node *end = node;
    for (; end != NULL && end->kind == NODE_LITERAL; end = end->next)
        n += strlen(end->text);
    char *all = compile_alloc(n + 1), *to = all;
    for (; node != end; node = node->next)
        to = stpcpy(to, node->text);
    put_literal(all, n, depth);
    return end;
}

static void put_nodes(const struct node *node, unsigned depth);

static void put_section(const struct node *node, unsigned depth)
{
    const char *name = node->item;
    indent(depth);
    if (node->list)
        printf("for (size_t i_%s = 0; i_%s < (%s).n; i_%s++) {\n", name, name, node->text, name);
    else
        printf("if (%sIS_SET(%s)) {\n", node->inverted ? "!" : "", node->text);
    if (node->list) {
        indent(depth + 1);
        printf("const __auto_type %s = &(%s).at[i_%s];\n", name, node->text, name);
    }
    put_nodes(node->first, depth + 1);
    indent(depth);
    printf("}\n");
}

static void put_nodes(const struct node *node, unsigned depth)
{
    while (node != NULL) {
        if (node->kind == NODE_LITERAL) {
            node = put_literals(node, depth);
            continue;
        }
        if (node->kind == NODE_SECTION) {
            put_section(node, depth);
        } else {
            indent(depth);
            printf("%s(out, %s);\n", puts_of[node->escape], node->text);
        }
        node = node->next;
    }
}

void emit_page(const struct page *page, const char *language)
{
    printf("\nstatic void %s_%s(struct buf *out, const struct %s *view)\n{\n", page->name, language,
           page->view);
    put_nodes(page->first, 1);
    printf("}\n");
}

/* The row check.ID.FIELD; ${name} is check.ID.name. */
static void put_check_row(const struct texts *texts, const struct text *name, const char *field)
{
    const struct source at = {.file = texts->file, .line = name->line};
    const char *dot = strrchr(name->key, '.');
    const char *key = compile_print("%.*s.%s", (int)(dot - name->key), name->key, field);
    const struct text *row = texts_find(texts, key);
    if (row == NULL)
        compile_fail(&at, "the key %s is missing", key);
    printf(", &%s_texts[%td]", texts->language, row - texts->rows);
}

static int compare_lines(const void *a, const void *b)
{
    unsigned first = (*(const struct text *const *)a)->line,
             second = (*(const struct text *const *)b)->line;
    return (first > second) - (first < second);
}

/* The keys check.ID.name, in the order of the file; their number. */
static size_t list_checks(const struct texts *texts, const struct text **names)
{
    size_t count = 0;
    for (size_t i = 0; i < texts->count; i++) {
        const char *key = texts->rows[i].key;
        if (strncmp(key, CHECK, strlen(CHECK)) == 0 && strcmp(strrchr(key, '.'), ".name") == 0)
            names[count++] = &texts->rows[i];
    }
    qsort(names, count, sizeof(*names), compare_lines);
    return count;
}

static void emit_checks(const struct texts *texts)
{
    const struct text **names = compile_alloc(texts->count * sizeof(const struct text *));
    size_t count = list_checks(texts, names);
    printf("\nstatic const struct check_texts %s_checks[] = {\n", texts->language);
    for (size_t i = 0; i < count; i++) {
        const char *id = names[i]->key + strlen(CHECK);
        printf("    {STR(\"%.*s\")", (int)strcspn(id, "."), id);
        for (size_t f = 0; f < sizeof(check_fields) / sizeof(check_fields[0]); f++)
            put_check_row(texts, names[i], check_fields[f]);
        printf("},\n");
    }
    printf("};\n");
}

void emit_texts(const struct texts *texts)
{
    printf("\nstatic const struct text_row %s_texts[] = {\n", texts->language);
    for (size_t i = 0; i < texts->count; i++) {
        const struct text *row = &texts->rows[i];
        const char *html = compile_escaped(row->value, strlen(row->value));
        printf("    {STR(\"%s\"),\n     {", row->key);
        put_string(row->value, strlen(row->value), 2);
        printf(", %zu},\n     {", strlen(row->value));
        put_string(html, strlen(html), 2);
        printf(", %zu}},\n", strlen(html));
    }
    printf("};\n");
    emit_checks(texts);
}
