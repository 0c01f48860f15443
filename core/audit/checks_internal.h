/*
 * The checks: one table, a row each; a check is a pure function from facts to a verdict (audits.md has the rules).
 */
#ifndef ASSAY_CHECKS_INTERNAL_H
#define ASSAY_CHECKS_INTERNAL_H

#include "core/audit/facts_internal.h"

enum check_category { CATEGORY_SEO, CATEGORY_PERFORMANCE, CATEGORY_SECURITY, CATEGORY_MISC };
enum check_importance { IMPORTANCE_HIGH, IMPORTANCE_MEDIUM, IMPORTANCE_LOW };
enum outcome { OUTCOME_NOT_APPLICABLE, OUTCOME_PASS, OUTCOME_FAIL };

#define VERDICT_DETAILS_MAX 50
#define VERDICT_TEXT_POINTS 200

enum value_kind { VALUE_NULL, VALUE_TEXT, VALUE_NUMBER };

/* What a check says. Everything lives in the facts' arena or is static. */
struct verdict {
    enum outcome outcome;
    enum value_kind value_kind;
    struct str text;    /* VALUE_TEXT */
    double number;      /* VALUE_NUMBER */
    struct str message; /* what to do, for people; never text of the page; empty: none */
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

/* The words of the API. */
const char *check_category_name(enum check_category category);
const char *check_importance_name(enum check_importance importance);

/* For the checks themselves. A pass has no message unless it advises; the value and details stand with any outcome. */
void verdict_pass(struct verdict *v);
void verdict_fail(struct verdict *v, const char *message, ...) __attribute__((format(printf, 2, 3)));
void verdict_advise(struct verdict *v, const char *message, ...) __attribute__((format(printf, 2, 3)));
void verdict_text(struct verdict *v, struct str value);
void verdict_number(struct verdict *v, double value);
void verdict_detail(struct verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For printf: STR_ARG(s) with "%.*s"; at most 800 bytes, since a text is cut at 200 characters anyway. */
#define STR_ARG(s) (int)((s).n > 800 ? 800 : (s).n), ((s).p == NULL ? "" : (s).p)

/* verdict_plural(n, one, many): the words that fit ${n}. */
static inline const char *verdict_plural(size_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

/* An element as people know it: its tag and the attributes that tell which it is. verdict_element adds it to the details. */
void verdict_element(struct verdict *v, const struct page_element *e);

/* The functions of the table, by subject in checks_<subject>.c. */
check_fn check_title, check_meta_description, check_headings, check_content_keywords, check_image_alt, check_seo_friendly_url,
    check_not_found_page, check_robots, check_noindex, check_robots_txt_valid, check_canonical, check_hreflang, check_link_text,
    check_crawlable_links, check_in_page_links, check_language, check_favicon;
check_fn check_text_compression, check_load_time, check_ttfb, check_page_size, check_http_requests, check_image_format, check_doctype,
    check_redirects, check_defer_javascript, check_render_blocking_css, check_dom_size, check_unsized_images;
check_fn check_https_encryption, check_https_redirect, check_mixed_content, check_server_signature, check_http2,
    check_unsafe_cross_origin_links, check_hsts, check_clickjacking, check_csp, check_nosniff, check_plaintext_email;
check_fn check_structured_data, check_meta_viewport, check_charset, check_sitemap, check_social, check_content_length,
    check_text_html_ratio, check_inline_css, check_deprecated_html_tags;

#endif
