/*
 * Fuzz: the page of a report whose results are any bytes, in each language. The page has the one
 * script and the tags of its template: nothing in the results opens a tag or leaves an attribute.
 */
#include "core/web/report_view.h"
#include "core/web/templates.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool so)
{
    if (!so)
        abort();
}

/* ---- memory of a view ---- */

struct block {
    struct block *next;
    _Alignas(max_align_t) char bytes[];
};

static void *block_new(void *of, size_t size)
{
    struct block **first = of, *b = malloc(sizeof(*b) + size);
    must(b != NULL);
    b->next = *first;
    *first = b;
    return b->bytes;
}

static void blocks_free(struct block *b)
{
    while (b != NULL) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
}

/* ---- the page ---- */

static size_t count(struct str page, const char *what)
{
    size_t times = 0, n = strlen(what);
    const char *at = page.p, *end = page.p + page.n;
    while ((at = memmem(at, (size_t)(end - at), what, n)) != NULL) {
        times++;
        at += n;
    }
    return times;
}

/* Tags open and close as often, whatever the results have. */
static void look(struct str page)
{
    static const char *const pairs[][2] = {{"<bdi>", "</bdi>"},        {"<code>", "</code>"},
                                           {"<ul", "</ul>"},           {"<dl", "</dl>"},
                                           {"<section", "</section>"}, {"<h3>", "</h3>"}};
    must(count(page, "<script") == 1 && count(page, "<html") == 1 && count(page, "</body>") == 1);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        must(count(page, pairs[i][0]) == count(page, pairs[i][1]));
    must(count(page, "<") == count(page, ">"));
}

static void render(enum language language, struct str results, struct str url)
{
    struct block *blocks = NULL;
    struct view_memory memory = {block_new, &blocks};
    const struct store_report report = {.id = 7,
                                        .status = REPORT_DONE,
                                        .score = 41,
                                        .result = RESULT_BAD,
                                        .generated_at = 1700000000000,
                                        .url = url,
                                        .results = results};
    const struct report_source source = {.report = &report, .language = language};
    struct report_view view = {.page = {.language = text_tables[language].code,
                                        .stylesheet = STR("/a.css"),
                                        .script = STR("/a.js"),
                                        .link = url}};
    struct buf out = {0};
    report_view_make(&view, &source, &memory);
    template_report(&out, language, &view);
    must(buf_ok(&out));
    look(buf_view(&out));
    buf_free(&out);
    blocks_free(blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    size_t url = size < 16 ? size : 16;
    for (enum language l = 0; l < LANGUAGES; l++)
        render(l, in, (struct str){in.p, url});
    must(language_accepted(in) < LANGUAGES);
    return 0;
}
