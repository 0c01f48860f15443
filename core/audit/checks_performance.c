#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

#define LOAD_MAX_MS 2000
#define PAGE_MAX_BYTES 330000
#define DOM_MAX_ELEMENTS 1500
#define COMPRESSION_MIN_SAVING 1400

void check_text_compression(struct facts *f, struct verdict *v)
{
    static const char *const good[] = {"gzip", "x-gzip", "br", "zstd", "deflate"};
    struct str encoding = text_trim(facts_header_first(f, "content-encoding"));
    const struct fact_response *r = &f->response;
    for (struct str rest = encoding, one; text_token(&rest, ", \t", &one);) {
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
            if (!text_eq(one, good[i]))
                continue;
            verdict_text(v, one);
            verdict_detail(v, "%llu bytes sent, %llu decompressed",
                           (unsigned long long)r->wire_bytes, (unsigned long long)r->decoded_bytes);
            verdict_pass(v);
            return;
        }
    }
    if (r->gzip_bytes == 0 || r->gzip_bytes + COMPRESSION_MIN_SAVING > r->decoded_bytes)
        return;
    verdict_text(v, STR("none"));
    verdict_detail(v, "%llu bytes sent, %llu with gzip", (unsigned long long)r->decoded_bytes,
                   (unsigned long long)r->gzip_bytes);
    verdict_fail(v,
                 "The page is sent uncompressed. Enable gzip or brotli in the web server: gzip "
                 "would save %llu bytes.",
                 (unsigned long long)(r->decoded_bytes - r->gzip_bytes));
}

void check_load_time(struct facts *f, struct verdict *v)
{
    verdict_number(v, (double)f->response.load_ms / 1000);
    if (f->response.load_ms > LOAD_MAX_MS)
        verdict_fail(v,
                     "The page took %.2f seconds to load. Reduce this to at most %d, with caching "
                     "or faster hosting.",
                     (double)f->response.load_ms / 1000, LOAD_MAX_MS / 1000);
    else
        verdict_pass(v);
}

void check_page_size(struct facts *f, struct verdict *v)
{
    verdict_number(v, (double)f->response.wire_bytes);
    if (f->response.wire_bytes > PAGE_MAX_BYTES)
        verdict_fail(v,
                     "The HTML takes %llu bytes to send. Reduce it to at most %d: compress it, and "
                     "move inline images, styles and scripts to files.",
                     (unsigned long long)f->response.wire_bytes, PAGE_MAX_BYTES);
    else
        verdict_pass(v);
}

void check_doctype(struct facts *f, struct verdict *v)
{
    static const char *const modes[] = {"standards mode", "limited quirks mode", "quirks mode"};
    if (f->page.doctype.n > 0)
        verdict_text(v, arena_printf(&f->arena, "<!%.*s>", STR_ARG(f->page.doctype)));
    verdict_detail(v, "%s", modes[f->page.mode]);
    if (f->page.doctype.n == 0)
        verdict_fail(
            v,
            "The page has no doctype, so browsers use quirks mode. Begin it with <!DOCTYPE html>.");
    else if (f->page.mode != PAGE_NO_QUIRKS)
        verdict_fail(v, "The doctype puts browsers into %s. Use <!DOCTYPE html>.",
                     modes[f->page.mode]);
    else
        verdict_pass(v);
}

void check_dom_size(struct facts *f, struct verdict *v)
{
    verdict_number(v, (double)f->page.element_count);
    verdict_detail(v, "Depth: %zu levels", f->page.depth);
    if (f->page.element_count > DOM_MAX_ELEMENTS)
        verdict_fail(
            v,
            "The page has %zu elements. Reduce them to at most %d: large pages are slow to show.",
            f->page.element_count, DOM_MAX_ELEMENTS);
    else
        verdict_pass(v);
}
