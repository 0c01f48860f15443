/* Errors as pages: core/http/error_html.h. */
#include "core/http/error_html.h"
#include "core/http/request.h"
#include "core/web/page_headers.h"
#include "core/web/pages.h"

#include <inttypes.h>

static void put_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '&':
            buf_adds(out, "&amp;");
            break;
        case '<':
            buf_adds(out, "&lt;");
            break;
        case '>':
            buf_adds(out, "&gt;");
            break;
        case '"':
            buf_adds(out, "&quot;");
            break;
        default:
            buf_add(out, text, 1);
        }
}

static void put_head(struct request *r, const char *title, struct buf *out)
{
    struct str base = request_base_path(r);
    buf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"robots\" content=\"noindex\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    put_text(out, title);
    buf_printf(out,
               " – Assay</title>\n<link rel=\"stylesheet\" href=\"%.*s/assets/%016" PRIx64
               "/assay.css\">\n</head>\n",
               (int)base.n, base.p, web_stylesheet.version);
}

/* What the person reads; the messages of the other errors suit people and programs. */
static void put_message(enum err err, const char *message, unsigned retry_after_s, struct buf *out)
{
    buf_adds(out, "<p>");
    put_text(out, err == ERR_RATE_LIMITED ? "Too many requests were sent." : message);
    buf_adds(out, "</p>\n");
    if (retry_after_s > 0)
        buf_printf(out, "<p>Try again in %u second%s.</p>\n", retry_after_s,
                   retry_after_s == 1 ? "" : "s");
}

static bool make(struct request *r, enum err err, const char *message, unsigned retry_after_s,
                 struct buf *out)
{
    const char *title = err_row(err)->reason;
    struct str base = request_base_path(r);
    page_headers(r);
    put_head(r, title, out);
    buf_printf(out,
               "<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n"
               "<header class=\"bar\"><a class=\"brand\" href=\"%.*s/\">Assay</a></header>\n"
               "<main id=\"main\">\n<h1>",
               (int)base.n, base.p);
    put_text(out, title);
    buf_adds(out, "</h1>\n");
    put_message(err, message, retry_after_s, out);
    buf_adds(out, "</main>\n</body>\n</html>\n");
    return buf_ok(out);
}

error_page_fn *const error_page = make;
