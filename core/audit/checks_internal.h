/* The table of checks. A check is a pure function from facts to a verdict. */
#ifndef ASSAY_CHECKS_INTERNAL_H
#define ASSAY_CHECKS_INTERNAL_H

#include "core/audit/facts_internal.h"

enum check_category { CATEGORY_SEO, CATEGORY_PERFORMANCE, CATEGORY_SECURITY, CATEGORY_MISC };
enum check_importance { IMPORTANCE_HIGH, IMPORTANCE_MEDIUM, IMPORTANCE_LOW };
enum outcome { OUTCOME_NOT_APPLICABLE, OUTCOME_PASS, OUTCOME_FAIL };

#define VERDICT_DETAILS_MAX 50
#define VERDICT_TEXT_POINTS 200

enum value_kind { VALUE_NULL, VALUE_TEXT, VALUE_NUMBER };

/* The result of one check. Its strings are static or live in the facts' arena. */
struct verdict {
    enum outcome outcome;
    enum value_kind value_kind;
    struct str text; /* VALUE_TEXT */
    double number;   /* VALUE_NUMBER */
    /* what is wrong and what to do; contains no text of the page; empty: none */
    struct str message;
    struct str details[VERDICT_DETAILS_MAX];
    size_t detail_count;
    struct arena *arena;
};

typedef void check_fn(struct facts *facts, struct verdict *v);

struct check {
    const char *id;
    enum check_category category;
    enum check_importance importance;
    check_fn *run;
};

extern const struct check checks[];
extern const size_t checks_count;

/* Names used by the API. */
const char *check_category_name(enum check_category category);
const char *check_importance_name(enum check_importance importance);

/*
 * For the functions of the table. Only verdict_fail and verdict_advise set a message; an advised
 * check still passes. Value and details are reported with any outcome.
 */
void verdict_pass(struct verdict *v);
void verdict_fail(struct verdict *v, const char *message, ...)
    __attribute__((format(printf, 2, 3)));
void verdict_advise(struct verdict *v, const char *message, ...)
    __attribute__((format(printf, 2, 3)));
void verdict_text(struct verdict *v, struct str value);
void verdict_number(struct verdict *v, double value);
void verdict_detail(struct verdict *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For printf: "%.*s" with STR_ARG(s). At most 800 bytes, since texts are cut at 200 characters. */
#define STR_ARG(s) (int)((s).n > 800 ? 800 : (s).n), ((s).p == NULL ? "" : (s).p)

/* verdict_plural(n, one, many): the wording that fits ${n}. */
static inline const char *verdict_plural(size_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

/*
 * verdict_element(v, e): add ${e} to the details, as its tag with the attribute that identifies it
 * best.
 */
void verdict_element(struct verdict *v, const struct page_element *e);

/* The functions of the table, grouped by file: checks_<subject>.c. */
check_fn check_title, check_meta_description, check_headings, check_content_keywords,
    check_image_alt, check_seo_friendly_url, check_not_found_page, check_robots, check_noindex,
    check_robots_txt_valid, check_canonical, check_hreflang, check_link_text, check_crawlable_links,
    check_in_page_links, check_language, check_favicon;
check_fn check_text_compression, check_load_time, check_ttfb, check_page_size, check_http_requests,
    check_image_format, check_doctype, check_redirects, check_defer_javascript,
    check_render_blocking_css, check_dom_size, check_unsized_images;
check_fn check_https_encryption, check_https_redirect, check_mixed_content, check_server_signature,
    check_http2, check_unsafe_cross_origin_links, check_hsts, check_clickjacking, check_csp,
    check_nosniff, check_plaintext_email;
check_fn check_structured_data, check_meta_viewport, check_charset, check_sitemap, check_social,
    check_content_length, check_text_html_ratio, check_inline_css, check_deprecated_html_tags;

#endif
