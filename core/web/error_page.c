/* Errors as pages: core/http/error_html.h. */
#include "core/http/error_html.h"
#include "core/http/request.h"
#include "core/web/page.h"
#include "core/web/page_headers.h"
#include "core/web/templates.h"

/* Errors with texts of their own; the others show their message, which is English. */
static const char *const ids[ERRS] = {
    [ERR_NOT_FOUND] = "not_found",
    [ERR_ORIGIN_FORBIDDEN] = "forbidden",
    [ERR_RATE_LIMITED] = "rate_limited",
    [ERR_UNAVAILABLE] = "unavailable",
};

static bool make(struct request *r, enum err err, const char *message, unsigned retry_after_s,
                 struct buf *out)
{
    enum language language = page_language(r);
    const char *id = ids[err] == NULL ? "other" : ids[err];
    struct error_view view = {
        .status = (unsigned)err_row(err)->status,
        .name = text_find(language, "error_name", str_of(id), NULL),
        .message = ids[err] == NULL ? str_of(message)
                                    : text_find(language, "error_text", str_of(id), NULL),
        .message_language = text_tables[ids[err] == NULL ? LANGUAGE_EN : language].code,
        .wait_s = retry_after_s,
        .request_id = r->id,
    };
    page_fill(r, &view.page, language, (struct str){0}, (struct str){0});
    page_headers(r);
    reply_header(r, "vary", STR("accept-language"));
    reply_header(r, "content-language", text_tables[language].code);
    template_error(out, language, &view);
    return buf_ok(out);
}

error_page_fn *const error_page = make;
