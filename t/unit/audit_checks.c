/* The verdict of every check: a page and the verdict, three lines a case. */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/results_internal.h"

#include <check.h>
#include <json-c/json.h>
#include <locale.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define URL "https://example.com/"
#define T60 "123456789 123456789 123456789 123456789 123456789 1234567890"
#define T500 T60 T60 T60 T60 T60 T60 T60 T60 "12345678901234567890"
#define T5000 T500 T500 T500 T500 T500 T500 T500 T500 T500 T500
#define VIEWPORT(content) "<meta name=viewport content='" content "'>"
#define D(n) "<!DOCTYPE html><title>t</title><body>" n

/* check, outcome, required value, message or details (NULL: any); URL; headers; HTML */
static const struct audit_case cases[] = {
    {"title", PASS, "6 characters", URL, "Content-Type: text/html; charset=utf-8",
     "<title> Good\n\xC3\xA4 </title>"},
    {"title", PASS, "60 characters", URL, "", "<title>" T60 "</title>"},
    {"title", FAIL, "61 characters", URL, "", "<title>" T60 "x</title>"},
    {"title", FAIL, "no title", URL, "", "<h1>x</h1>"},
    {"title", FAIL, "empty", URL, "", "<title> \n </title>"},
    {"title", FAIL, "2 titles", URL, "", "<title>a</title><title>b</title>"},
    {"title", PASS, "a", URL, "", "<title>a</title><svg><title>b</title></svg>"},
    {"title", FAIL, "no title", URL, "", "<svg><title>b</title></svg>"},
    {"meta_description", PASS, "11 characters", URL, "",
     "<meta name=DESCRIPTION content=' What it is. '>"},
    {"meta_description", PASS,
     "5 characters. Any text passes; search results show 120 to 160 characters best", URL, "",
     "<meta name=description content=short>"},
    {"meta_description", FAIL,
     "says what the page is about. Search results show 120 to 160 characters best", URL, "", ""},
    {"meta_description", FAIL, "The description is empty. Say what the page is about.", URL, "",
     "<meta name=description content=\" \">"},
    {"meta_description", FAIL, "no description", URL, "",
     "<meta property=og:description content=x>"},
    {"meta_description", FAIL, "empty", URL, "", "<meta name=description content=' '>"},
    {"meta_description", FAIL, "empty", URL, "",
     "<meta name=description><meta name=description content=x>"},
    {"headings", PASS, "h2: two", URL, "", "<title>t</title><h1>one</h1><h2>two</h2>"},
    {"headings", FAIL, "no h1", URL, "", "<h2>x</h2>"},
    {"headings", FAIL, "2 h1", URL, "", "<h1>a</h1><h1>b</h1>"},
    {"headings", FAIL, "identical", URL, "", "<title>Same</title><h1> Same</h1>"},
    {"image_alt", PASS, "0", URL, "", "<img alt=x src=a><img alt='' src=b><img alt src=c>"},
    {"image_alt", PASS, NULL, URL, "",
     "<img aria-label=x><img aria-labelledby=y><img title=z><img role=none><img "
     "role=presentation>"},
    {"image_alt", FAIL, "src=\"b.png\"", URL, "", "<img alt=x><img src=b.png>"},
    {"image_alt", FAIL, "1 of 1", URL, "", "<img alt=' '>"},
    {"image_alt", FAIL, NULL, URL, "", "<img aria-label='' role=img title=' '>"},
    {"image_alt", NA, NULL, URL, "", "<p>x"},
    {"image_alt", NA, NULL, URL, "", "<noscript><img></noscript><template><img></template>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content='index, follow'>"},
    {"noindex", PASS, NULL, URL, "", "<p>noindex"},
    {"noindex", FAIL, "noindex in <meta", URL, "", "<meta name=ROBOTS content='follow, NoIndex'>"},
    {"noindex", FAIL, "none", URL, "", "<meta name=robots content=none>"},
    {"noindex", PASS, "googlebot", URL, "", "<meta name=googlebot content=noindex>"},
    {"noindex", PASS, NULL, URL, "",
     "<meta name=robots content=noindex><meta name=googlebot content=index>"},
    {"noindex", FAIL, "X-Robots-Tag", URL, "X-Robots-Tag: noindex", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: nofollow\nX-Robots-Tag: none", ""},
    {"noindex", PASS, NULL, URL, "X-Robots-Tag: bingbot: noindex", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: bingbot: noindex",
     "<meta name=robots content=noindex>"},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT",
     ""},
    {"noindex", FAIL, NULL, URL, "", "<meta name=robots content='unavailable_after: 2010-06-25'>"},
    {"noindex", PASS, NULL, URL, "",
     "<meta name=robots content='unavailable_after: 2090-06-25T10:00:00Z'>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content='unavailable_after: never'>"},
    {"language", PASS, "en-GB", URL, "", "<html lang=en-GB>"},
    {"language", FAIL, "does not declare", URL, "", "<html>"},
    {"language", FAIL, "does not declare", URL, "", "<html lang=' '>"},
    {"language", FAIL, "not a known", URL, "", "<html lang=english>"},
    {"text_compression", PASS, "br", URL, "Content-Encoding: br", ""},
    {"text_compression", PASS, NULL, URL, "Content-Encoding: GZIP", ""},
    {"text_compression", PASS, NULL, URL, "Content-Encoding: identity, zstd", ""},
    {"text_compression", NA, NULL, URL, "", "<p>short"},
    {"doctype", PASS, "standards mode", URL, "", "<!doctype html><p>"},
    {"doctype", FAIL, "no doctype", URL, "", "<p>"},
    {"doctype", FAIL, "no doctype", URL, "", "<p><!doctype html>"},
    {"doctype", FAIL, "limited quirks", URL, "",
     "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \"x\">"},
    {"doctype", FAIL, "into quirks mode", URL, "",
     "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 3.2//EN\">"},
    {"dom_size", PASS, "6", URL, "",
     "<html><head><title>t</title></head><body><p><br></body></html>"},
    {"https_encryption", PASS, "https", URL, "", ""},
    {"https_encryption", FAIL, "not encrypted", "http://example.com/", "", ""},
    {"mixed_content", NA, NULL, "http://example.com/", "", "<img src=http://a/>"},
    {"mixed_content", PASS, "0", URL, "",
     "<img src=https://a/><img src=//a/><img src=/a><img src=data:image/gif;base64,x><a "
     "href=http://a/>x</a>"},
    {"mixed_content", PASS, NULL, URL, "",
     "<link rel=canonical href=http://a/><link rel=alternate href=http://a/>"},
    {"mixed_content", FAIL, "<img src=\"HTTP://a/\">", URL, "", "<img src=HTTP://a/>"},
    {"mixed_content", FAIL, "6 elements", URL, "",
     "<script src=http://a/></script><link rel=stylesheet href=http://a/><iframe "
     "src=http://a/></iframe><video "
     "poster=http://a/></video><form action=http://a/></form>"
     "<object data=http://a/></object>"},
    {"mixed_content", FAIL, "1 element is", URL, "",
     "<picture><source srcset='https://a/1 1x, http://a/2 2x'><img src=/a></picture>"},
    {"mixed_content", FAIL, NULL, URL, "", "<svg><image xlink:href=http://a/></svg>"},
    {"mixed_content", FAIL, NULL, URL, "", "<base href=http://a/><img src=b>"},
    {"mixed_content", PASS, NULL, URL, "", "<base href=https://a/><img src=b>"},
    {"mixed_content", FAIL, "2 elements", URL, "",
     "<style>@import 'http://a/x.css'; p{color:red}</style><p style='background: URL( "
     "\"http://a/b.png\" )'>x<i "
     "style='a:url(https://a/)'>"},
    {"mixed_content", FAIL, "<div style=", URL, "", "<div style='background:url(http://a/b.png)'>"},
    {"mixed_content", PASS, "0", URL, "",
     "<style>/* url(http://a/) */ @namespace url(http://www.w3.org/1999/xhtml); "
     "p::after{content:'url(http://a/)'} b{c:url(/d)} "
     "</style><template><p style='a:url(http://b/)'></template>"},
    {"hsts", NA, NULL, "http://example.com/", "Strict-Transport-Security: max-age=31536000", ""},
    {"hsts", PASS, NULL, URL, "strict-transport-security: max-age=31536000", ""},
    {"hsts", PASS, NULL, URL,
     "Strict-Transport-Security: max-age=\"63072000\" ; includeSubDomains; preload;", ""},
    {"hsts", FAIL, "is missing", URL, "", ""},
    {"hsts", FAIL, "31535999 seconds", URL, "Strict-Transport-Security: max-age=31535999", ""},
    {"hsts", FAIL, "no max-age", URL, "Strict-Transport-Security: includeSubDomains", ""},
    {"hsts", FAIL, "Unknown directive: x=1", URL,
     "Strict-Transport-Security: max-age=31536000; x=1", ""},
    {"structured_data", PASS, "Open Graph", URL, "", "<meta property=og:title content=x>"},
    {"structured_data", PASS, "Twitter", URL, "", "<meta name=twitter:card content=summary>"},
    {"structured_data", PASS, "JSON-LD", URL, "",
     "<script type=application/ld+json>\n{\"@type\":\"Thing\",\"x\":\"</p>\"}\n</script>"},
    {"structured_data", PASS, "Open Graph, JSON-LD", URL, "",
     "<meta property=og:type content=x><script type=application/ld+json>[]</script>"},
    {"structured_data", PASS, "not valid JSON", URL, "",
     "<meta property=og:type content=x><script type=application/ld+json>{,}</script>"},
    {"structured_data", FAIL, "not valid JSON", URL, "",
     "<script type=application/ld+json>{\"a\":1,}</script>"},
    {"structured_data", FAIL, "not valid JSON", URL, "",
     "<script type=application/ld+json>{\"a\":1} x</script>"},
    {"structured_data", FAIL, "no structured", URL, "",
     "<script>{\"a\":1}</script><meta property=og:title content=''>"},
    {"meta_viewport", PASS, NULL, URL, "", VIEWPORT("width=device-width")},
    {"meta_viewport", PASS, NULL, URL, "", VIEWPORT("initial-scale = 1.0")},
    {"meta_viewport", PASS, NULL, URL, "",
     VIEWPORT("user-scalable=no;width=320 , initial-scale=2")},
    {"meta_viewport", FAIL, "no viewport", URL, "", "<meta name=view content=width=1>"},
    {"meta_viewport", FAIL, "neither", URL, "", VIEWPORT("user-scalable=no")},
    {"meta_viewport", FAIL, "neither", URL, "", VIEWPORT("width=, height=3")},
    {"meta_viewport", FAIL, "below 1", URL, "", VIEWPORT("width=device-width, initial-scale=.5")},
    {"charset", PASS, "utf-8", URL, "Content-Type: text/html; charset=UTF-8", ""},
    {"charset", PASS, "meta tag", URL, "Content-Type: text/html", "<meta charset=utf-8>"},
    {"charset", PASS, "byte order", URL, "", "\xEF\xBB\xBF<p>"},
    {"charset", FAIL, "does not declare", URL, "Content-Type: text/html", "<p>"},
    {"charset", FAIL, "unknown", URL, "Content-Type: text/html; charset=klingon", "<p>"},
    {"deprecated_html_tags", PASS, "0", URL, "", "<p><b>x</b><i>y</i><small>z</small>"},
    {"deprecated_html_tags", FAIL, "<font>: 2", URL, "",
     "<font>a</font><font>b</font><center>c</center>"},
    {"content_keywords", PASS, "coffee", URL, "",
     "<title>Coffee beans</title><body><p>All about COFFEE."},
    {"content_keywords", PASS, "1", URL, "Content-Type: text/html; charset=utf-8",
     "<title>\xC3\x84pfel</title><p>rote \xC3\xA4pfel"},
    {"content_keywords", PASS, NULL, URL, "Content-Type: text/html; charset=utf-8",
     "<title>\xE5\x92\x96\xE5\x95\xA1</title><p>\xE5\xA5\xBD\xE5\x92\x96\xE5\x95\xA1\xE5\xBA\x97"},
    {"content_keywords", FAIL, "No word", URL, "",
     "<title>Art</title><h1>party</h1><script>art</script>"},
    {"content_keywords", FAIL, "no word that", URL, "", "<p>x"},
    {"seo_friendly_url", PASS, NULL, URL, "", "<title>x</title>"},
    {"seo_friendly_url", PASS, NULL, "https://example.com/shop/green-tea", "",
     "<title>Tea, green</title>"},
    {"seo_friendly_url", FAIL, "no word", "https://example.com/p/1", "", "<title>Tea</title>"},
    {"seo_friendly_url", FAIL, "characters", "https://example.com/tea?id=1", "",
     "<title>Tea</title>"},
    {"seo_friendly_url", FAIL, "characters", "https://example.com/green_tea", "",
     "<title>Tea</title>"},
    {"canonical", NA, NULL, URL, "", "<body><link rel=canonical href=https://example.com/>"},
    {"canonical", PASS, URL, URL, "", "<head><link rel=canonical href=HTTPS://EXAMPLE.com></head>"},
    {"canonical", PASS, NULL, "https://example.com/a",
     "Link: </x>; rel=prev, <https://example.com/b>; rel=\"canonical\"", ""},
    {"canonical", FAIL, "relative", URL, "", "<head><link rel=canonical href=/a></head>"},
    {"canonical", FAIL, "valid", URL, "", "<head><link rel=canonical href=https://[x/></head>"},
    {"canonical", FAIL, "several different", URL, "Link: <https://example.com/b>; rel=canonical",
     "<head><link rel=canonical href=https://example.com/a></head>"},
    {"canonical", FAIL, "home page", "https://example.com/a", "",
     "<head><link rel=canonical href=https://example.com/></head>"},
    {"canonical", PASS, NULL, "https://example.com/a", "",
     "<head><link rel=canonical href=https://example.org/></head>"},
    {"canonical", FAIL, "another language", "https://example.com/en", "",
     "<head><link rel=canonical href=https://example.com/de><link rel=alternate hreflang=de "
     "href=/de><link rel=alternate hreflang=en "
     "href=/en></head>"},
    {"hreflang", PASS, "0", URL, "", "<p>"},
    {"hreflang", PASS, "2", URL, "",
     "<head><link rel=alternate hreflang=en-GB href=https://a/><link rel=alternate "
     "hreflang=x-default href=https://b/></head>"},
    {"hreflang", FAIL, "unknown language: xx", URL, "",
     "<head><link rel=alternate hreflang=xx href=https://a/></head>"},
    {"hreflang", FAIL, "relative URL: de", URL, "Link: </de>; rel=alternate; hreflang=\"de\"", ""},
    {"link_text", PASS, "0", URL, "",
     "<a href=/prices>Our prices</a><a>here</a><a href=#x>here</a><a rel=nofollow "
     "href=/x>here</a><a href=mailto:x>here</a>"},
    {"link_text", FAIL, "Click Here: /x", URL, "",
     "<html lang=en><a href=/x> Click\n<b>Here</b> </a>"},
    {"link_text", FAIL, NULL, URL, "", "<a href=/x>hier</a>"},
    {"link_text", PASS, NULL, URL, "", "<html lang=en><a href=/x>hier</a>"},
    {"link_text", FAIL, NULL, URL, "", "<html lang=en><p lang=de-CH><a href=/x>Hier</a>"},
    {"link_text", PASS, NULL, URL, "", "<a href=/x>https://example.com/x</a>"},
    {"link_text", PASS, NULL, "https://example.com/a", "", "<a href=/a#part>here</a>"},
    {"crawlable_links", PASS, "0", URL, "",
     "<a href=/x>a</a><a href=''>b</a><a name=x>c</a><a id=x>d</a><a role=button>e</a><a "
     "aria-current=page>f</a><a href=mailto:a>g</a>"},
    {"crawlable_links", FAIL, "4 links", URL, "",
     "<a onclick='x()'>a</a><a href='javascript:void(0)'>b</a><a href=' javascript: void "
     "0;'>c</a><a href=file:///x>d</a>"},
    {"crawlable_links", FAIL, NULL, URL, "", "<a href='https://[x'>a</a>"},
    {"in_page_links", PASS, "Internal: 3", URL, "",
     "<a href=/a>a</a><a href=https://EXAMPLE.com/b>b</a><a href=mailto:c>c</a><a href=#d>d</a><a "
     "href=''>e</a><a href=//a.com>f</a>"},
    {"in_page_links", PASS, "External: 2", URL, "",
     "<base href=https://b.com><a href=/a>a</a><a href=http://a.com>f</a>"},
    {"favicon", PASS, "https://example.com/i.png", URL, "",
     "<link rel='shortcut ICON' href=/i.png>"},
    {"favicon", NA, NULL, URL, "", "<link rel=icon>"},
    {"http_requests", PASS, "Images: 2", URL, "",
     "<img src=a><img src=b loading=lazy><img src=data:x><input type=image src=c><link "
     "rel=stylesheet href=d><script "
     "src=e></script><script>f</script>"},
    {"http_requests", PASS, "6", URL, "",
     "<iframe src=a></iframe><iframe src=b loading=LAZY></iframe><video><source "
     "src=c></video><audio src=d></audio><embed src=e><object "
     "data=f></object>"
     "<link rel=stylesheet href=g><link rel='alternate stylesheet' href=h><link rel=icon href=i>"},
    {"http_requests", PASS, "Stylesheets: 2", URL, "",
     "<style>@import url(a.css); @import \"b.css\" screen; p{background:url(c.png)}</style><p "
     "style='background:url(d.png)'><p "
     "style='fill:url(#e)'><p style='background:url(data:image/gif;base64,x)'>"},
    {"http_requests", PASS, "Images: 1", URL, "",
     "<style>@import url(a.css); @import \"b.css\" screen; p{background:url(c.png)}</style><p "
     "style='background:url(d.png)'><p "
     "style='fill:url(#e)'><p style='background:url(data:image/gif;base64,x)'>"},
    {"image_format", NA, NULL, URL, "", "<img src=/image/7><img src=data:image/png;base64,x>"},
    {"image_format", PASS, "0", URL, "", "<img src=a.webp><img src=b.SVG?x#y><img src=c.avif>"},
    {"image_format", FAIL, "1 of 2", URL, "", "<img src=a.webp><img src=/x/b.JPG?v=1.2>"},
    {"image_format", PASS, NULL, URL, "",
     "<picture><source type=image/webp srcset=a><img src=a.jpg></picture>"},
    {"image_format", PASS, NULL, URL, "",
     "<picture><source srcset='a.avif 1x, b.avif 2x'><img src=a.jpg></picture>"},
    {"image_format", FAIL, NULL, URL, "",
     "<picture><source srcset=a.avif></picture><picture><source srcset=b.png><img "
     "src=a.jpg></picture>"},
    {"image_format", PASS, NULL, URL, "", "<img srcset='a.webp 1x' src=a.jpg>"},
    {"defer_javascript", PASS, "0", URL, "",
     "<head><script src=a defer></script><script src=b async></script><script src=c "
     "type=module></script><script>d</script></head><body><script src=e></script>"},
    {"defer_javascript", FAIL, "src=\"a.js\"", URL, "",
     "<head><script src=a.js></script><script type=text/javascript src=b.js></script></head>"},
    {"render_blocking_css", PASS, "3", URL, "",
     "<link rel=stylesheet href=a><link rel=stylesheet href=b><link rel=stylesheet href=c "
     "media=screen><link rel=stylesheet href=d "
     "media=print>"},
    {"render_blocking_css", FAIL, "4", URL, "",
     "<link rel=stylesheet href=a><link rel=stylesheet href=b><link rel=stylesheet href=c><link "
     "rel=stylesheet href=d>"},
    {"unsized_images", PASS, "0", URL, "", "<p>"},
    {"unsized_images", PASS, "0", URL, "",
     "<img src=a width=1 height=0><img src=b style='width:10%;HEIGHT: 2px'><img src=c width=3 "
     "style='aspect-ratio:1'><img "
     "src=data:image/svg+xml,x>"},
    {"unsized_images", PASS, NULL, URL, "", "<img src=a style='position:absolute'>"},
    {"unsized_images", FAIL, "2 of 2", URL, "",
     "<img src=a width=1><img src=b width=1 height=auto style='height:auto'>"},
    {"inline_css", PASS, "1", URL, "", "<p style=a>"},
    {"inline_css", FAIL, "<b style=\"x:y\">", URL, "", "<p style=a><b style=x:y>"},
    {"https_redirect", FAIL, "served over http", "http://example.com/", "", ""},
    {"server_signature", PASS, NULL, URL, "Server: h2o\nX-Powered-By: ASP.NET", ""},
    {"server_signature", FAIL, "Server: nginx/1.22.1", URL, "Server: nginx/1.22.1", ""},
    {"server_signature", FAIL, "PHP/8", URL, "Server: Apache\nX-Powered-By: PHP/8", ""},
    {"http2", PASS, "HTTP/2", URL, "", ""},
    {"unsafe_cross_origin_links", PASS, "0", URL, "",
     "<a href=https://a.com target=_blank rel='noopener x'>a</a><a href=https://a.com>b</a><a "
     "href=/c target=_blank>c</a><a "
     "href=https://d.com target=_blank rel=NoReferrer>d</a>"},
    {"unsafe_cross_origin_links", FAIL, "2 links", URL, "",
     "<a href=//a.com target=_BLANK>a</a><map><area href=https://b.com target=_blank></map>"},
    {"clickjacking", PASS, "'self'", URL,
     "Content-Security-Policy: default-src *; Frame-Ancestors 'self'", ""},
    {"clickjacking", PASS, NULL, URL, "X-Frame-Options: SameOrigin", ""},
    {"clickjacking", FAIL, NULL, URL,
     "X-Frame-Options: ALLOW-FROM https://a.com\nContent-Security-Policy: default-src 'self'", ""},
    {"clickjacking", FAIL, NULL, URL, "Content-Security-Policy-Report-Only: frame-ancestors 'self'",
     "<meta http-equiv=content-security-policy content='frame-ancestors none'>"},
    {"csp", PASS, "default-src", URL, "Content-Security-Policy: default-src 'self'", ""},
    {"csp", PASS, NULL, URL, "",
     "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">"},
    {"csp", FAIL, NULL, URL, "Content-Security-Policy-Report-Only: default-src 'self'", ""},
    {"csp", FAIL, NULL, URL, "Content-Security-Policy: ;", ""},
    {"nosniff", PASS, NULL, URL, "X-Content-Type-Options: NoSniff", ""},
    {"nosniff", FAIL, NULL, URL, "X-Content-Type-Options: sniff", ""},
    {"plaintext_email", PASS, "0", URL, "",
     "<p>me at example.com, @home, a@b, x@-y.com, image@2x.1<a href=mailto:?subject=x>m</a><!-- "
     "a@b.com -->"},
    {"plaintext_email", FAIL, "a.b+c@mail.example.com", URL, "",
     "<p>Write to a.b+c@mail.example.com."},
    {"plaintext_email", FAIL, "1 e-mail address that", URL, "",
     "<a href='mailto:a@b.com?x'>a@b.com</a>"},
    {"social", PASS, "1", URL, "", "<a href=https://www.facebook.com/me>f</a>"},
    {"social", PASS, "2", URL, "",
     "<a href=//x.com/me>x</a><a href=https://uk.linkedin.com/company/y>l</a>"},
    {"social", FAIL, NULL, URL, "",
     "<a href=https://facebook.com/>a</a><a "
     "href=https://www.facebook.com/sharer/sharer.php?u=x>b</a><a href=https://notx.com/me>c</a>"},
    {"content_length", FAIL, "3 words", URL, "", "one</p>two</br>three"},
    {"content_length", FAIL, "1 word.", URL, "", "o</div>n</i>e"},
    {"content_length", FAIL, "2 words", URL, "", "<p>one</p>two"},
    {"dom_size", PASS, "4", URL, "", "<html><body>a</br>b<br>"},
    {"title", FAIL, "5002 characters", URL, "", "<title> " T5000 " \n x</title>"},
    {"text_html_ratio", PASS, NULL, URL, "",
     "<p>All of this is text and hardly anything is markup, so the ratio is good."},
    {"text_html_ratio", FAIL, NULL, URL, "",
     "<p>x<script>var x = 'a long script that is no text at all, and goes on for quite a while to "
     "be longer';</script>"},
};

START_TEST(a_page_gets_its_verdict)
{
    audit_kit_judge(&cases[_i]);
}
END_TEST

/* ---- verdicts without markup: sizes, times, probes ---- */

START_TEST(sizes_and_times_have_limits)
{
    struct facts f;
    audit_kit_facts(&f, URL, "", D("<p>"));
    f.response.load_ms = 2000;
    audit_kit_expect(&f, "load_time", PASS, "2");
    f.response.load_ms = 2001;
    audit_kit_expect(&f, "load_time", FAIL, "2.001");
    f.response.wire_bytes = 330000;
    audit_kit_expect(&f, "page_size", PASS, "330000");
    f.response.wire_bytes++;
    audit_kit_expect(&f, "page_size", FAIL, "330001");
    f.page.element_count = 1500;
    audit_kit_expect(&f, "dom_size", PASS, "1500");
    f.page.element_count++;
    audit_kit_expect(&f, "dom_size", FAIL, "1501");
    facts_free(&f);
}
END_TEST

START_TEST(an_uncompressed_page_fails_when_gzip_would_save_1400_bytes)
{
    struct facts f;
    struct buf html = {0};
    buf_adds(&html, D("<p>"));
    while (html.n < 1600)
        buf_adds(&html, "word ");
    buf_add(&html, "", 1);
    audit_kit_facts(&f, URL, "", html.p);
    ck_assert_uint_gt(f.response.gzip_bytes, 50);
    audit_kit_expect(&f, "text_compression", FAIL, "none");
    f.response.decoded_bytes = f.response.gzip_bytes + 1399;
    audit_kit_expect(&f, "text_compression", NA, NULL);
    f.response.decoded_bytes++;
    audit_kit_expect(&f, "text_compression", FAIL, "1400 bytes");
    facts_free(&f);
    buf_free(&html);
}
END_TEST

START_TEST(a_certificate_is_described_with_its_fault)
{
    struct facts f;
    audit_kit_facts(&f, URL, "", "");
    f.response.certificate = (struct fact_certificate){.verified = true,
                                                       .issuer = STR("C = US, O = Good"),
                                                       .not_before = STR("Jan 1"),
                                                       .not_after = STR("Mar 31")};
    audit_kit_expect(&f, "https_encryption", PASS, "Valid until Mar 31");
    f.response.certificate.verified = false;
    f.response.certificate.reason = STR("certificate has expired");
    audit_kit_expect(&f, "https_encryption", FAIL, "certificate has expired");
    facts_free(&f);
}
END_TEST

START_TEST(robots_txt_decides_by_its_status_and_rules)
{
    struct facts f;
    audit_kit_facts(&f, "https://example.com/private/x?y", "", "");
    audit_kit_expect(&f, "robots", NA, NULL);
    f.robots = (struct fact_probe){
        .state = PROBE_DONE, .status = 404, .body = STR("User-agent: *\nDisallow: /")};
    audit_kit_expect(&f, "robots", PASS, NULL);
    f.robots.status = 503;
    audit_kit_expect(&f, "robots", FAIL, "503");
    f.robots.status = 200;
    audit_kit_expect(&f, "robots", FAIL, "Line 2: Disallow: /");
    f.robots.body = STR("User-agent: *\nDisallow: /\nAllow: /private/");
    audit_kit_expect(&f, "robots", PASS, "Line 3");
    f.robots.state = PROBE_FAILED;
    audit_kit_expect(&f, "robots", NA, NULL);
    facts_free(&f);
}
END_TEST

START_TEST(robots_txt_syntax_is_checked)
{
    static const struct {
        const char *body;
        enum expected outcome;
        const char *says;
    } files[] = {
        {"User-agent: *\nDisallow: /a$\nAllow: *b\n# c\nSitemap: https://a.com/s.xml\nCrawl-delay: "
         "3",
         PASS, "0"},
        {"", NA, NULL},
        {"Disallow: /a", FAIL, "Line 1: no user-agent before it"},
        {"User-agent: *\nDisalow: /a", FAIL, "Line 2: unknown directive: Disalow: /a"},
        {"User-agent:", FAIL, "no user-agent given"},
        {"User-agent: *\nDisallow: a", FAIL, "begin with"},
        {"User-agent: *\nDisallow: /$a", FAIL, "$ is allowed only"},
        {"Sitemap: /s.xml", FAIL, "sitemap"},
        {"Sitemap: data:x", FAIL, "sitemap"},
        {"<html>\nUser-agent: *", FAIL, "Line 1: not understood"},
    };
    for (int i = 0; i < COUNT(files); i++) {
        struct facts f;
        audit_kit_facts(&f, URL, "", "");
        f.robots =
            (struct fact_probe){.state = PROBE_DONE, .status = 200, .body = str_of(files[i].body)};
        audit_kit_expect(&f, "robots_txt_valid", files[i].outcome, files[i].says);
        f.robots.status = 404;
        audit_kit_expect(&f, "robots_txt_valid", NA, NULL);
        f.robots.status = 500;
        audit_kit_expect(&f, "robots_txt_valid", FAIL, "500");
        facts_free(&f);
    }
}
END_TEST

START_TEST(site_probes_have_verdicts)
{
    struct facts f;
    audit_kit_facts(&f, URL, "", "<p>");
    audit_kit_expect(&f, "not_found_page", NA, NULL);
    audit_kit_expect(&f, "sitemap", NA, NULL);
    audit_kit_expect(&f, "https_redirect", NA, NULL);
    f.missing = (struct fact_probe){
        .state = PROBE_DONE, .status = 404, .url = STR("https://example.com/x")};
    audit_kit_expect(&f, "not_found_page", PASS, "https://example.com/x");
    f.missing.status = 410;
    audit_kit_expect(&f, "not_found_page", PASS, "410");
    f.missing.status = 200;
    audit_kit_expect(&f, "not_found_page", FAIL, "200");
    f.favicon = (struct fact_probe){.state = PROBE_DONE, .status = 404};
    audit_kit_expect(&f, "favicon", FAIL, "no icon");
    f.favicon.status = 200;
    audit_kit_expect(&f, "favicon", PASS, NULL);
    f.robots = (struct fact_probe){.state = PROBE_DONE,
                                   .status = 200,
                                   .body = STR("User-agent: *\nSITEMAP: https://a.com/s.xml")};
    audit_kit_expect(&f, "sitemap", PASS, "https://a.com/s.xml");
    f.robots.status = 404;
    audit_kit_expect(&f, "sitemap", FAIL, "no sitemap");
    f.http_form = (struct fact_probe){.state = PROBE_CLOSED};
    audit_kit_expect(&f, "https_redirect", NA, NULL);
    f.http_form =
        (struct fact_probe){.state = PROBE_DONE, .final_url = STR("https://example.com/")};
    audit_kit_expect(&f, "https_redirect", PASS, NULL);
    f.http_form.final_url = STR("http://example.com/");
    audit_kit_expect(&f, "https_redirect", FAIL, "http://example.com/");
    facts_free(&f);
}
END_TEST

START_TEST(counts_have_limits)
{
    struct facts f;
    struct buf html = {0};
    for (unsigned i = 0; i < 51; i++)
        buf_adds(&html,
                 "<img src=a><a href=/x>x</a><a href=/x>x</a><a href=/x>x</a> w w w w w w w w w");
    buf_add(&html, "", 1);
    audit_kit_facts(&f, URL, "", html.p);
    audit_kit_expect(&f, "http_requests", FAIL, "51");
    audit_kit_expect(&f, "in_page_links", FAIL, "153");
    audit_kit_expect(&f, "content_length", PASS, "510");
    facts_free(&f);
    audit_kit_facts(&f, URL, "", "<p>Just a few words.");
    audit_kit_expect(&f, "content_length", FAIL, "4");
    f.response.ttfb_ms = 600;
    audit_kit_expect(&f, "ttfb", PASS, "600");
    f.response.ttfb_ms = 601;
    audit_kit_expect(&f, "ttfb", FAIL, "601");
    f.response.hop_count = 1;
    audit_kit_expect(&f, "redirects", PASS, "1");
    f.response.hop_count = 2;
    audit_kit_expect(&f, "redirects", FAIL, "2");
    f.response.http_version = 11;
    audit_kit_expect(&f, "http2", FAIL, "HTTP/1.1");
    facts_free(&f);
    buf_free(&html);
}
END_TEST

/* ${count} times ${piece} as a page; the finding of ${id} */
static void expect_of_many(const char *id, const char *piece, unsigned count, enum expected outcome,
                           const char *says)
{
    struct facts f;
    struct buf html = {0};
    for (unsigned i = 0; i < count; i++)
        buf_adds(&html, piece);
    buf_add(&html, "", 1);
    audit_kit_facts(&f, URL, "", html.p);
    audit_kit_expect(&f, id, outcome, says);
    facts_free(&f);
    buf_free(&html);
}

/* check, the repeated element, the maximum that passes (for words, the minimum) */
static const struct {
    const char *id, *piece;
    unsigned bound;
    bool at_least;
} bounds[] = {
    {"in_page_links", "<a href=/x>x</a><a href=#y>y</a><a href=''>z</a>", 150, false},
    {"http_requests", "<img src=a><img src=b loading=lazy>", 50, false},
    {"http_requests", "<link rel=stylesheet href=a>", 50, false},
    {"content_length", "word ", 500, true},
    {"content_length", "<p>word", 500, true},
    {"render_blocking_css", "<link rel=stylesheet href=a>", 3, false},
    {"defer_javascript", "<script src=a></script>", 0, false},
    {"inline_css", "<p style=x>", 1, false},
    {"headings", "<h1>x</h1>", 1, false},
    {"mixed_content", "<img src=http://a/>", 0, false},
};

START_TEST(a_count_passes_up_to_its_bound)
{
    unsigned bound = bounds[_i].bound;
    bool least = bounds[_i].at_least;
    expect_of_many(bounds[_i].id, bounds[_i].piece, bound, PASS, NULL);
    expect_of_many(bounds[_i].id, bounds[_i].piece, least ? bound - 1 : bound + 1, FAIL, NULL);
}
END_TEST

START_TEST(a_description_is_advised_on_outside_120_to_160_characters)
{
    static const struct {
        int points;
        bool advised;
    } lengths[] = {{119, true}, {120, false}, {160, false}, {161, true}};
    for (int i = 0; i < COUNT(lengths); i++) {
        struct facts f;
        struct verdict v = {.outcome = OUTCOME_FAIL};
        char html[256];
        snprintf(html, sizeof(html), "<meta name=description content='%0*d'>", lengths[i].points,
                 0);
        audit_kit_facts(&f, URL, "", html);
        v.arena = &f.arena;
        check_meta_description(&f, &v);
        ck_assert_int_eq(v.outcome, OUTCOME_PASS);
        ck_assert_msg((v.message.n > 0) == lengths[i].advised, "%d", lengths[i].points);
        facts_free(&f);
    }
}
END_TEST

START_TEST(deep_or_long_json_ld_is_accepted)
{
    static const struct {
        const char *piece, *end;
        unsigned count;
        enum expected outcome;
    } blocks[] = {{"[", "]", 200, PASS},
                  {"[", "]", 300, FAIL},
                  {"1,", "1", 100000, PASS},
                  {"1,", "1", 140000, PASS}};
    for (int b = 0; b < COUNT(blocks); b++) {
        struct facts f;
        struct buf html = {0};
        buf_adds(&html, "<script type=application/ld+json>[");
        for (unsigned i = 0; i < blocks[b].count; i++)
            buf_adds(&html, blocks[b].piece);
        for (unsigned i = 0; i < (blocks[b].piece[0] == '[' ? blocks[b].count : 1); i++)
            buf_adds(&html, blocks[b].end);
        buf_adds(&html, "]</script>");
        buf_add(&html, "", 1);
        audit_kit_facts(&f, URL, "", html.p);
        audit_kit_expect(&f, "structured_data", blocks[b].outcome, NULL);
        facts_free(&f);
        buf_free(&html);
    }
}
END_TEST

/* A tenth of the bytes are text, or one byte less. */
START_TEST(a_tenth_of_the_html_is_text)
{
    char html[101];
    for (int text = 9; text <= 10; text++) {
        struct facts f;
        snprintf(html, sizeof(html), "<p>%0*d<!--%*s-->", text, 0, 90 - text, "");
        ck_assert_uint_eq(strlen(html), 100);
        audit_kit_facts(&f, URL, "", html);
        audit_kit_expect(&f, "text_html_ratio", text == 10 ? PASS : FAIL, text == 10 ? "10" : "9");
        facts_free(&f);
    }
}
END_TEST

START_TEST(at_most_50_elements_are_listed_with_200_characters_each)
{
    struct facts f;
    struct verdict v = {.outcome = OUTCOME_PASS};
    struct buf html = {0};
    for (unsigned i = 0; i < 60; i++)
        buf_printf(&html, "<img src='%0300u'>", i);
    buf_add(&html, "", 1);
    audit_kit_facts(&f, URL, "", html.p);
    v.arena = &f.arena;
    check_image_alt(&f, &v);
    ck_assert_double_eq(v.number, 60);
    ck_assert_uint_eq(v.detail_count, 50);
    ck_assert_uint_eq(v.details[49].n, 200);
    facts_free(&f);
    buf_free(&html);
}
END_TEST

/* ---- the table and the results ---- */

START_TEST(every_check_has_a_unique_id_and_a_function)
{
    for (size_t i = 0; i < checks_count; i++) {
        ck_assert_ptr_nonnull(checks[i].run);
        ck_assert_uint_gt(strlen(checks[i].id), 2);
        for (const char *p = checks[i].id; *p != '\0'; p++)
            ck_assert((*p >= 'a' && *p <= 'z') || *p == '_' || (*p >= '0' && *p <= '9'));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(checks[i].id, checks[j].id);
    }
}
END_TEST

START_TEST(every_check_is_tested_with_a_pass_and_a_fail)
{
    static const char *const elsewhere[] = {"robots",           "load_time",
                                            "page_size",        "dom_size",
                                            "text_compression", "robots_txt_valid",
                                            "not_found_page",   "favicon",
                                            "sitemap",          "https_redirect",
                                            "http_requests",    "in_page_links",
                                            "content_length",   "ttfb",
                                            "redirects",        "http2"};
    for (size_t i = 0; i < checks_count; i++) {
        bool passes = false, fails = false;
        for (int j = 0; j < COUNT(elsewhere); j++)
            passes = fails = passes || strcmp(elsewhere[j], checks[i].id) == 0;
        for (int j = 0; j < COUNT(cases); j++) {
            passes = passes || (strcmp(cases[j].id, checks[i].id) == 0 && cases[j].outcome == PASS);
            fails = fails || (strcmp(cases[j].id, checks[i].id) == 0 && cases[j].outcome == FAIL);
        }
        ck_assert_msg(passes && fails, "%s", checks[i].id);
    }
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_checks");
    TCase *t = tcase_create("checks");
    tcase_add_loop_test(t, a_page_gets_its_verdict, 0, COUNT(cases));
    tcase_add_test(t, sizes_and_times_have_limits);
    tcase_add_test(t, an_uncompressed_page_fails_when_gzip_would_save_1400_bytes);
    tcase_add_test(t, a_certificate_is_described_with_its_fault);
    tcase_add_test(t, robots_txt_decides_by_its_status_and_rules);
    tcase_add_test(t, robots_txt_syntax_is_checked);
    tcase_add_test(t, site_probes_have_verdicts);
    tcase_add_test(t, counts_have_limits);
    tcase_add_loop_test(t, a_count_passes_up_to_its_bound, 0, COUNT(bounds));
    tcase_add_test(t, a_description_is_advised_on_outside_120_to_160_characters);
    tcase_add_test(t, deep_or_long_json_ld_is_accepted);
    tcase_add_test(t, a_tenth_of_the_html_is_text);
    tcase_add_test(t, at_most_50_elements_are_listed_with_200_characters_each);
    tcase_add_test(t, every_check_has_a_unique_id_and_a_function);
    tcase_add_test(t, every_check_is_tested_with_a_pass_and_a_fail);
    suite_add_tcase(s, t);
    return suite_run(s);
}
