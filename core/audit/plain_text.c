#include "core/audit/plain_text.h"

#include "core/audit/page_internal.h"
#include "core/audit/page_text_internal.h"
#include "core/audit/text.h"

#include <libxml/parser.h>
#include <time.h>

void plain_text_start(void)
{
    xmlInitParser();
}

/* Append ${s} with white space collapsed, at most ${max} bytes. */
static void collapse(struct str s, size_t max, struct buf *out)
{
    const size_t from = out->n;
    bool space = false, line = false;
    size_t start = 0;
    for (size_t i = 0, wide; i <= s.n && out->n - from <= max; i++) {
        bool no_break = i + 1 < s.n && memcmp(s.p + i, "\xc2\xa0", 2) == 0;
        if (i < s.n && (unsigned char)s.p[i] > ' ' && s.p[i] != 0x7f && !no_break)
            continue;
        wide = no_break;
        if (i > start) {
            if (out->n > from && (space || line))
                buf_add(out, line ? "\n" : " ", 1);
            buf_add(out, s.p + start, i - start);
            space = line = false;
        }
        space = true;
        line = line || (i < s.n && s.p[i] == '\n');
        i += wide;
        start = i + 1;
    }
    if (out->n - from > max)
        out->n = from + text_cut_bytes((struct str){out->p + from, out->n - from}, max).n;
}

/*
 * A fragment is wrapped into an element; otherwise the parser would make paragraphs of bare text.
 */
static enum plain_status parse(struct str html, size_t max, unsigned deadline_ms, struct buf *out)
{
    struct page page = {0};
    struct buf whole = {0};
    buf_adds(&whole, "<!doctype html><body><div>");
    buf_str(&whole, html);
    enum page_status status =
        buf_ok(&whole) ? page_read(&page, buf_view(&whole), deadline_ms) : PAGE_NO_MEMORY;
    if (status == PAGE_OK)
        collapse(buf_view(&page.text), max, out);
    page_free(&page);
    buf_free(&whole);
    return status == PAGE_OK            ? PLAIN_OK
           : status == PAGE_TOO_COMPLEX ? PLAIN_TOO_COMPLEX
                                        : PLAIN_NO_MEMORY;
}

/* Fast path: short texts mostly have no tags, so no parsing is needed. */
static enum plain_status decode(struct str html, size_t max, struct buf *out)
{
    struct buf decoded = {0};
    page_decode(html, &decoded);
    collapse(buf_view(&decoded), max, out);
    bool good = buf_ok(&decoded);
    buf_free(&decoded);
    return good ? PLAIN_OK : PLAIN_NO_MEMORY;
}

static uint64_t spent_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static enum plain_status parse_within(struct str html, size_t max, uint64_t *left_us,
                                      struct buf *out)
{
    if (*left_us < 1000) /* the parser's deadline is in milliseconds */
        return PLAIN_TOO_COMPLEX;
    uint64_t began = spent_us();
    enum plain_status status = parse(html, max, (unsigned)(*left_us / 1000), out);
    uint64_t took = spent_us() - began;
    *left_us -= took < *left_us ? took : *left_us;
    return status;
}

enum plain_status plain_text(struct str html, size_t max, uint64_t *left_us, struct buf *out)
{
    enum plain_status status = PLAIN_OK;
    html = text_cut_bytes(html, PLAIN_HTML_MAX);
    if (html.n == 0)
        return PLAIN_OK;
    if (memchr(html.p, '<', html.n) != NULL)
        status = parse_within(html, max, left_us, out);
    else if (memchr(html.p, '&', html.n) != NULL)
        status = decode(html, max, out);
    else
        collapse(html, max, out);
    return status == PLAIN_OK && !buf_ok(out) ? PLAIN_NO_MEMORY : status;
}
