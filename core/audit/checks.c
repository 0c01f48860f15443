#include "core/audit/checks_internal.h"

/* id (member of results), category, importance (weight), function; in the order of the results */
const struct check checks[] = {
    {"title", CATEGORY_SEO, IMPORTANCE_HIGH, check_title},
    {"meta_description", CATEGORY_SEO, IMPORTANCE_HIGH, check_meta_description},
    {"headings", CATEGORY_SEO, IMPORTANCE_HIGH, check_headings},
    {"content_keywords", CATEGORY_SEO, IMPORTANCE_HIGH, check_content_keywords},
    {"image_alt", CATEGORY_SEO, IMPORTANCE_HIGH, check_image_alt},
    {"seo_friendly_url", CATEGORY_SEO, IMPORTANCE_HIGH, check_seo_friendly_url},
    {"not_found_page", CATEGORY_SEO, IMPORTANCE_HIGH, check_not_found_page},
    {"robots", CATEGORY_SEO, IMPORTANCE_HIGH, check_robots},
    {"noindex", CATEGORY_SEO, IMPORTANCE_HIGH, check_noindex},
    {"robots_txt_valid", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_robots_txt_valid},
    {"canonical", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_canonical},
    {"hreflang", CATEGORY_SEO, IMPORTANCE_LOW, check_hreflang},
    {"link_text", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_link_text},
    {"crawlable_links", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_crawlable_links},
    {"in_page_links", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_in_page_links},
    {"language", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_language},
    {"favicon", CATEGORY_SEO, IMPORTANCE_MEDIUM, check_favicon},
    {"text_compression", CATEGORY_PERFORMANCE, IMPORTANCE_HIGH, check_text_compression},
    {"load_time", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_load_time},
    {"ttfb", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_ttfb},
    {"page_size", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_page_size},
    {"http_requests", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_http_requests},
    {"image_format", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_image_format},
    {"doctype", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_doctype},
    {"redirects", CATEGORY_PERFORMANCE, IMPORTANCE_MEDIUM, check_redirects},
    {"defer_javascript", CATEGORY_PERFORMANCE, IMPORTANCE_LOW, check_defer_javascript},
    {"render_blocking_css", CATEGORY_PERFORMANCE, IMPORTANCE_LOW, check_render_blocking_css},
    {"dom_size", CATEGORY_PERFORMANCE, IMPORTANCE_LOW, check_dom_size},
    {"unsized_images", CATEGORY_PERFORMANCE, IMPORTANCE_LOW, check_unsized_images},
    {"https_encryption", CATEGORY_SECURITY, IMPORTANCE_HIGH, check_https_encryption},
    {"https_redirect", CATEGORY_SECURITY, IMPORTANCE_MEDIUM, check_https_redirect},
    {"mixed_content", CATEGORY_SECURITY, IMPORTANCE_MEDIUM, check_mixed_content},
    {"server_signature", CATEGORY_SECURITY, IMPORTANCE_MEDIUM, check_server_signature},
    {"http2", CATEGORY_SECURITY, IMPORTANCE_MEDIUM, check_http2},
    {"unsafe_cross_origin_links", CATEGORY_SECURITY, IMPORTANCE_MEDIUM,
     check_unsafe_cross_origin_links},
    {"hsts", CATEGORY_SECURITY, IMPORTANCE_LOW, check_hsts},
    {"clickjacking", CATEGORY_SECURITY, IMPORTANCE_LOW, check_clickjacking},
    {"csp", CATEGORY_SECURITY, IMPORTANCE_LOW, check_csp},
    {"nosniff", CATEGORY_SECURITY, IMPORTANCE_LOW, check_nosniff},
    {"plaintext_email", CATEGORY_SECURITY, IMPORTANCE_LOW, check_plaintext_email},
    {"structured_data", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_structured_data},
    {"meta_viewport", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_meta_viewport},
    {"charset", CATEGORY_MISC, IMPORTANCE_MEDIUM, check_charset},
    {"sitemap", CATEGORY_MISC, IMPORTANCE_LOW, check_sitemap},
    {"social", CATEGORY_MISC, IMPORTANCE_LOW, check_social},
    {"content_length", CATEGORY_MISC, IMPORTANCE_LOW, check_content_length},
    {"text_html_ratio", CATEGORY_MISC, IMPORTANCE_LOW, check_text_html_ratio},
    {"inline_css", CATEGORY_MISC, IMPORTANCE_LOW, check_inline_css},
    {"deprecated_html_tags", CATEGORY_MISC, IMPORTANCE_LOW, check_deprecated_html_tags},
};
const size_t checks_count = sizeof(checks) / sizeof(*checks);

const char *check_category_name(enum check_category category)
{
    static const char *const names[] = {"seo", "performance", "security", "misc"};
    return names[category];
}

const char *check_importance_name(enum check_importance importance)
{
    static const char *const names[] = {"high", "medium", "low"};
    return names[importance];
}
