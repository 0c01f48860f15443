#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "core/web/page.h"

#include "core/http/http.h"
#include "core/text/form.h"
#include "core/web/pages.h"

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
    struct view_memory memory = page_memory(r);
    return asked == LANGUAGES ? code : VIEW_JOIN(&memory, STR("lang="), code);
}

static void *alloc(void *of, size_t size)
{
    return request_alloc(of, size);
}

struct view_memory page_memory(struct request *r)
{
    return (struct view_memory){alloc, r};
}

static struct str asset(const struct view_memory *memory, struct str base, uint64_t version,
                        struct str name)
{
    char hex[16];
    for (size_t i = sizeof(hex); i-- > 0; version >>= 4)
        hex[i] = "0123456789abcdef"[version & 15];
    return VIEW_JOIN(memory, base, STR("/assets/"), {hex, sizeof(hex)}, STR("/"), name);
}

/* The page at ${path} in the languages other than ${language}. */
static struct language_list other_languages(struct request *r, enum language language,
                                            struct str path, struct str query)
{
    struct view_memory memory = page_memory(r);
    struct language_view *at = request_alloc(r, LANGUAGES * sizeof(*at));
    size_t n = 0;
    for (enum language l = 0; l < LANGUAGES; l++) {
        struct str code = text_tables[l].code;
        if (l != language)
            at[n++] = (struct language_view){
                .code = code,
                .name = text_find(l, "language", STR("name"), NULL),
                .address = VIEW_JOIN(&memory, request_base_path(r), path, STR("?lang="), code,
                                     query.n > 0 ? STR("&") : STR(""), query),
            };
    }
    return (struct language_list){at, n};
}

void page_fill(struct request *r, struct page_view *view, enum language language, struct str path,
               struct str query)
{
    struct view_memory memory = page_memory(r);
    struct str base = request_base_path(r);
    *view = (struct page_view){
        .language = text_tables[language].code,
        .base = base,
        .stylesheet = asset(&memory, base, web_stylesheet.version, STR("assay.css")),
        .script = asset(&memory, base, web_script.version, STR("page.js")),
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
