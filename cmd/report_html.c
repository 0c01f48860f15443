#include "cmd/report_html.h"

#include "config.h"
#include "core/text/printable.h"
#include "core/web/readable_url.h"
#include "core/web/report_view.h"
#include "core/web/templates.h"

#include <stdlib.h>

/* ---- memory of the view ---- */

struct block {
    struct block *next;
    max_align_t bytes[];
};

static void *alloc(void *of, size_t size)
{
    struct block **first = of, *block = malloc(sizeof(*block) + size);
    if (block == NULL)
        abort();
    block->next = *first;
    *first = block;
    return block->bytes;
}

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

/* ---- the view ---- */

static struct store_report record_of(const struct report_html *page)
{
    const struct audit_findings *f = page->findings;
    bool failed = f->error_code != NULL;
    return (struct store_report){
        .status = failed ? REPORT_FAILED : REPORT_DONE,
        .result = page->result,
        .score = failed ? -1 : f->score,
        .issues_high = f->issues.high,
        .issues_medium = f->issues.medium,
        .issues_low = f->issues.low,
        .issues_passed = f->issues.passed,
        .generated_at = page->generated_at,
        .url = page->url,
        .error_code = str_of(f->error_code),
        .error_message = str_of(f->error_message),
        .results = f->results,
    };
}

/* The only grading: the page has facts, and no history. */
static struct store_grading grading_of(const struct report_html *page)
{
    const struct audit_findings *f = page->findings;
    return (struct store_grading){
        .number = 1,
        .score = f->score,
        .result = page->result,
        .generated_at = page->generated_at,
        .facts = f->facts,
        .failed = f->failed,
    };
}

static void put_page(struct buf *out, const struct report_html *page)
{
    struct block *blocks = NULL;
    const struct view_memory memory = {alloc, &blocks};
    struct store_report report = record_of(page);
    struct store_grading grading = grading_of(page);
    struct report_source source = {
        .report = &report, .gradings = &grading, .count = 1, .language = page->language};
    struct report_view view = {
        .page = {.language = text_tables[page->language].code, .version = STR(PACKAGE_VERSION)}};
    report_view_make(&view, &source, &memory);
    struct str final = str_of(page->findings->final_url); /* of a failed grading, too */
    view.final_url = (struct str){0};
    if (!str_eq(final, page->url))
        view.final_url = readable_url(final, &memory);
    template_report(out, page->language, &view);
    free_blocks(blocks);
}

/* ---- characters ---- */

static void put_character(struct buf *out, struct str text, const struct printable *c)
{
    if (c->as_itself || text.p[0] == '\n' || text.p[0] == '\t')
        buf_add(out, text.p, c->taken);
    else if (c->code < 0xa0 || c->code == 0xfffd)
        buf_adds(out, "\xef\xbf\xbd");
    else
        buf_printf(out, "&#x%X;", (unsigned)c->code);
}

void report_html(struct buf *out, const struct report_html *report)
{
    struct buf page = {0};
    struct printable next;
    put_page(&page, report);
    for (struct str rest = buf_view(&page); rest.n > 0;
         rest.p += next.taken, rest.n -= next.taken) {
        printable_next(rest, &next);
        put_character(out, rest, &next);
    }
    out->failed = out->failed || !buf_ok(&page);
    buf_free(&page);
}
