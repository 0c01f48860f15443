#include "core/web/pages.h"

#include "core/web/page_headers.h"

#include <inttypes.h>

static void serve(struct request *r, const char *type, const struct embedded *file,
                  const char *cache_control)
{
    reply_header(r, "cache-control", str_of(cache_control));
    if (!reply_etag(r, file->version))
        reply_fixed(r, type, file->text, file->gzip);
}

static void serve_page(struct request *r, const struct embedded *page)
{
    page_headers(r);
    serve(r, "text/html; charset=utf-8", page, "public, max-age=300");
}

void pages_home(struct request *r)
{
    serve_page(r, &web_home);
}

void pages_docs(struct request *r)
{
    serve_page(r, &web_docs);
}

static void serve_asset(struct request *r, const char *type, const struct embedded *file)
{
    if (str_eq(r->args[0], request_printf(r, "%016" PRIx64, file->version))) {
        serve(r, type, file, "public, max-age=31536000, immutable");
        return;
    }
    reply_header(r, "cache-control", STR("no-store"));
    reply_error(r, ERR_NOT_FOUND, "This server has another version of the file. Reload the page.");
}

void pages_stylesheet(struct request *r)
{
    serve_asset(r, "text/css; charset=utf-8", &web_stylesheet);
}

void pages_script(struct request *r)
{
    serve_asset(r, "text/javascript; charset=utf-8", &web_script);
}
