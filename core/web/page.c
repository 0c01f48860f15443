#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "core/web/page.h"

#include "core/http/http.h"
#include "core/text/form.h"
#include "core/web/pages.h"

#include <inttypes.h>

const char *const page_languages[] = {"en", "de", NULL};

/* `lang` in the query; LANGUAGES: it is missing or unknown. */
static enum language asked_language(struct request *r)
{
    struct form query = {r->query};
    struct str name, value;
    char plain[sizeof("%64%65")]; /* a longer value is no language */
    while (form_next(&query, &name, &value))
        if (str_eq(name, STR("lang")))
            return value.n > sizeof(plain) ? LANGUAGES
                                           : language_of(form_decode(value, true, plain));
    return LANGUAGES;
}

enum language page_language(struct request *r)
{
    struct str header;
    enum language asked = asked_language(r);
    if (asked < LANGUAGES)
        return asked;
    return request_header(r, "accept-language", &header) ? language_accepted(header) : LANGUAGE_EN;
}

struct str page_query(struct request *r)
{
    enum language asked = asked_language(r);
    struct str code = asked < LANGUAGES ? text_tables[asked].code : (struct str){0};
    return asked == LANGUAGES ? code : request_printf(r, "lang=%.*s", (int)code.n, code.p);
}

static void *alloc(void *of, size_t size)
{
    return request_alloc(of, size);
}

struct view_memory page_memory(struct request *r)
{
    return (struct view_memory){alloc, r};
}

static struct str asset(struct request *r, struct str base, uint64_t version, const char *name)
{
    return request_printf(r, "%.*s/assets/%016" PRIx64 "/%s", (int)base.n, base.p, version, name);
}

/* The page at ${path} in the languages other than ${language}. */
static struct language_list other_languages(struct request *r, enum language language,
                                            struct str path, struct str query)
{
    struct str base = request_base_path(r);
    struct language_view *at = request_alloc(r, LANGUAGES * sizeof(*at));
    size_t n = 0;
    for (enum language l = 0; l < LANGUAGES; l++) {
        struct str code = text_tables[l].code;
        if (l != language)
            at[n++] = (struct language_view){
                .code = code,
                .name = text_find(l, "language", STR("name"), NULL),
                .address = request_printf(r, "%.*s%.*s?lang=%.*s%s%.*s", (int)base.n, base.p,
                                          (int)path.n, path.p, (int)code.n, code.p,
                                          query.n > 0 ? "&" : "", (int)query.n, query.p),
            };
    }
    return (struct language_list){at, n};
}

void page_fill(struct request *r, struct page_view *view, enum language language, struct str path,
               struct str query)
{
    struct str base = request_base_path(r);
    *view = (struct page_view){
        .language = text_tables[language].code,
        .base = base,
        .stylesheet = asset(r, base, web_stylesheet.version, "assay.css"),
        .script = asset(r, base, web_script.version, "page.js"),
        .version = STR(PACKAGE_VERSION),
    };
    if (path.n > 0)
        view->languages = other_languages(r, language, path, query);
}

void page_reply(struct request *r, int status, const struct buf *html)
{
    struct str part = buf_view(html);
    if (buf_ok(html))
        reply_parts(r, status, "text/html; charset=utf-8", &part, 1);
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
}
