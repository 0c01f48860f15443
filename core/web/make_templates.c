/*
 * make_templates TEMPLATES TEXTS LANGUAGES PAGE…: writes C for the pages TEMPLATES/PAGE in
 * each of the comma-separated LANGUAGES (TEXTS/LANGUAGE.txt). compile.h describes the templates.
 */
#include "core/web/compile.h"

#include <stdio.h>
#include <string.h>

#define LANGUAGES_MAX 16

static size_t read_languages(const char *folder, const char *names, struct texts *out)
{
    size_t count = 0;
    for (size_t n; *names != '\0'; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        if (count == LANGUAGES_MAX)
            compile_fail(NULL, "make_templates: there are more than %d languages", LANGUAGES_MAX);
        char *name = compile_copy(names, n);
        out[count++] = texts_read(compile_print("%s/%s.txt", folder, name), name);
    }
    for (size_t i = 1; i < count; i++) {
        texts_compare(&out[0], &out[i]);
        texts_compare(&out[i], &out[0]);
    }
    return count;
}

/* The function that others call, which chooses the language. */
static void emit_choice(const struct page *page, const struct texts *texts, size_t languages)
{
    printf("\nvoid template_%s(struct buf *out, enum language language, "
           "const struct %s *view)\n{\n"
           "    static void (*const in[])(struct buf *, const struct %s *) = {",
           page->name, page->view, page->view);
    for (size_t i = 0; i < languages; i++)
        printf("%s%s_%s", i == 0 ? "" : ", ", page->name, texts[i].language);
    printf("};\n    in[language](out, view);\n}\n");
}

static void emit_table(const struct texts *texts, size_t languages)
{
    for (size_t i = 0; i < languages; i++)
        emit_texts(&texts[i]);
    printf("\nconst struct text_table text_tables[] = {\n");
    for (size_t i = 0; i < languages; i++)
        printf("    {STR(\"%s\"), %s_texts, %zu, %s_checks,\n"
               "     sizeof(%s_checks) / sizeof(%s_checks[0])},\n",
               texts[i].language, texts[i].language, texts[i].count, texts[i].language,
               texts[i].language, texts[i].language);
    printf("};\n");
}

int main(int count, char **args)
{
    struct texts texts[LANGUAGES_MAX];
    if (count < 5)
        compile_fail(NULL, "usage: make_templates TEMPLATES TEXTS LANGUAGES PAGE...");
    size_t languages = read_languages(args[2], args[3], texts);
    printf("/* Made by core/web/make_templates; do not edit. */\n"
           "#include \"core/web/put.h\"\n#include \"core/web/templates.h\"\n"
           "#include \"core/web/texts.h\"\n");
    for (int i = 4; i < count; i++) {
        struct page page;
        size_t l = 0;
        do {
            page = page_parse(args[1], args[i], &texts[l]);
            emit_page(&page, texts[l].language);
        } while (++l < languages);
        emit_choice(&page, texts, languages);
    }
    emit_table(texts, languages);
    return 0;
}
