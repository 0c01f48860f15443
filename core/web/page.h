/* What the handlers of pages share. */
#ifndef ASSAY_WEB_PAGE_H
#define ASSAY_WEB_PAGE_H

#include "core/http/handler.h"
#include "core/web/report_view.h"

/*
 * page_language(r): of `lang` in the query, else of Accept-Language.
 * page_query(r): "lang=de" if the query chooses the language, else empty.
 * page_fill(r, view, language, path, query): ${view} for a page at ${path}, which begins with "/";
 * empty: the page is not offered in other languages. ${query}: its other parameters.
 * page_memory(r): memory of the request.
 */
enum language page_language(struct request *r);
struct str page_query(struct request *r);
void page_fill(struct request *r, struct page_view *view, enum language language, struct str path,
               struct str query);
struct view_memory page_memory(struct request *r);

/* page_reply(r, status, html): ${html} in the language of the page. */
void page_reply(struct request *r, int status, const struct buf *html);

/* Fields of the query of a page: indexes into r->values. */
enum { PAGE_LANG };
extern const char *const page_languages[]; /* choices of PAGE_LANG: enum language */

#endif
