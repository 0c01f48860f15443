/*
 * The checks that follow Lighthouse, with Lighthouse's test cases: its artifacts become a page and
 * headers, and the verdicts are the same. robots.txt is in audit_lighthouse_robots.c. A case names
 * each intended difference.
 * Omitted are cases that no page can produce: anchors whose resolved href is empty
 * (crawlable-anchors); doctypes whose mode contradicts their text, and modes of frames (doctype);
 * images of style sheets, of shadow roots and of unfinished gathering (unsized-images); a URL that
 * was never requested, and URLs of localhost (redirects-http; assay requests the http URL itself,
 * see audit_checks.c).
 */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/text.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define URL "https://example.com/"
#define PAGE URL "test/page.html"
#define H(html) "<head>" html "</head>"
#define ROBOTS(content) H("<meta name=robots content='" content "'>")
#define CANONICAL(href) "<link rel=canonical href='" href "'>"
#define ALTERNATE(lang, href) "<link rel=alternate hreflang='" lang "' href='" href "'>"
#define HTTP "http://example.com/"
#define IMG(width, height, style)                                                                  \
    "<img src=a width='" width "' height='" height "' style='" style "'>"

/* check, outcome, required text (NULL: any), URL, headers, HTML */
static const struct audit_case cases[] = {
    /* is-crawlable */
    {"noindex", FAIL, NULL, URL, "", ROBOTS("noindex")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("none")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("foo, noindex, bar")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("all, none, all")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("     noindex      ")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("all, unavailable_after: 25 Jun 2010 15:00:00 PST")},
    {"noindex", FAIL, NULL, URL, "", ROBOTS(" Unavailable_after: 25-Aug-2007 15:00:00 EST, all")},
    {"noindex", PASS, NULL, URL, "", ROBOTS("all, noarchive")},
    {"noindex", PASS, NULL, URL, "", ROBOTS("noindexed")},
    {"noindex", PASS, NULL, URL, "", ""},
    {"noindex", PASS, NULL, URL, "", "<body><meta name=robots content=noindex>"},
    {"noindex", FAIL, NULL, URL, "x-robots-tag: noindex", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: all\nx-robots-tag: none", ""},
    {"noindex", FAIL, NULL, URL, "X-ROBOTS-TAG: all, none", ""},
    {"noindex", FAIL, NULL, URL, "x-robots-tag:     noindex    ", ""},
    {"noindex", FAIL, NULL, URL, "x-robots-tag: unavailable_after: 25 Jun 2010 15:00:00 PST, all",
     ""},
    {"noindex", FAIL, NULL, URL, "x-robots-tag: all, unavailable_after: 25-Jun-2010 15:00:00 PST",
     ""},
    {"noindex", PASS, NULL, URL,
     "X-Robots-Tag: all, nofollow\nX-Robots-Tag: unavailable_after: 25 Jun 2045 15:00:00 PST", ""},
    {"noindex", PASS, NULL, URL,
     "x-robots-tag: googlebot: unavailable_after: 25 Jun 2007 15:00:00 PST", ""},
    {"noindex", PASS, "bingbot", URL, "x-robots-tag: bingbot: noindex", ""},
    {"noindex", PASS, "archive.org_bot", URL, "", H("<meta name=archive.org_bot content=noindex>")},
    {"noindex", PASS, "some search engines", URL, "",
     H("<meta name=robots content=noindex><meta name=bingbot content=all>")},
    {"noindex", PASS, "archive.org_bot", URL, "x-robots-tag: bingbot: noindex",
     H("<meta name=archive.org_bot content=none>")},
    /*
     * assay accepts dates with a comma (RFC 822) and with a zone, and bot names in any case, as the
     * bots do
     */
    {"noindex", FAIL, NULL, URL,
     "x-robots-tag: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, all", ""},
    {"noindex", FAIL, NULL, URL, "", ROBOTS("unavailable_after: 2027-01-15T10:00:00.5+02:30")},
    {"noindex", PASS, NULL, URL, "", ROBOTS("unavailable_after: 2027-01-15T08:00:01Z")},
    {"noindex", PASS, NULL, URL, "", ROBOTS("unavailable_after: 2027-01-15T07:30:01-00:30")},
    {"noindex", PASS, "googlebot", URL, "x-robots-tag: GOOGLEBOT: noindex", ""},
    {"noindex", FAIL, NULL, URL,
     "x-robots-tag: Googlebot: none\nx-robots-tag: bingbot: none\nx-robots-tag: DuckDuckBot: "
     "none\nx-robots-tag: archive.org_bot: none",
     ROBOTS("noindex")},
    {"noindex", PASS, NULL, URL,
     "x-robots-tag: Googlebot: none\nx-robots-tag: bingbot: none\nx-robots-tag: DuckDuckBot: "
     "none\nx-robots-tag: archive.org_bot: none",
     ""},

    /* canonical */
    {"canonical", NA, NULL, URL, "", ""},
    {"canonical", FAIL, "several different", HTTP, "Link: <https://example.com>; rel=canonical",
     H(CANONICAL("https://www.example.com"))},
    {"canonical", FAIL, NULL, HTTP, "", H(CANONICAL("https:// example.com"))},
    {"canonical", FAIL, "relative", HTTP, "", H(CANONICAL("I am not a URL"))},
    {"canonical", FAIL, "relative", URL "de/", "Link: </>; rel=canonical", ""},
    {"canonical", FAIL, "relative", URL "de/", "", H(CANONICAL("//example.com/de/"))},
    {"canonical", FAIL, "another language", URL,
     "Link: <https://example.com/>; rel=alternate; hreflang=xx",
     H(CANONICAL("https://example.com/fr") ALTERNATE("fr", "https://example.com/fr"))},
    {"canonical", PASS, NULL, URL, "",
     H(CANONICAL("https://example.com/fr") ALTERNATE("fr", "https://example.com/fr"))},
    {"canonical", PASS, NULL, URL, "", H(CANONICAL("https://example.com"))},
    {"canonical", FAIL, "home page", URL "articles/cats-and-you", "",
     H(CANONICAL("https://example.com"))},
    {"canonical", PASS, NULL, URL "articles/cats-and-you", "", H(CANONICAL("http://example.com"))},
    {"canonical", PASS, NULL, HTTP, "Link: <https://example.com>; rel=canonical",
     H(CANONICAL("https://example.com"))},
    {"canonical", PASS, NULL, HTTP "articles/cats-and-you?utm_source=twitter", "",
     H(CANONICAL("https://example.com/articles/cats-and-you"))},
    {"canonical", PASS, NULL, HTTP "articles/cats?utm_source=twitter",
     "link: <https://example.com/articles/cats>; rel=canonical", ""},
    {"canonical", PASS, NULL, PAGE,
     "Link: <https://example.com/a>; rel=\"prev Canonical\"; title=\"<x>, y; rel=z\"", ""},
    {"canonical", NA, NULL, PAGE, "", "<body>" CANONICAL("https://foo.com")},
    {"canonical", NA, NULL, PAGE, "", H(CANONICAL(""))},
    {"canonical", FAIL, "relative", PAGE, "", H("<link rel=canonical href=' '>")},
    {"canonical", FAIL, "valid", PAGE, "", H(CANONICAL("https://256.1.1.1/"))},
    {"canonical", PASS, NULL, PAGE,
     "Content-Type: text/html; charset=utf-8\nLink: <https://example.com/%C3%A4>; rel=canonical",
     H(CANONICAL("https://example.com/\xC3\xA4"))},
    {"canonical", FAIL, "home page", "https://xn--r8jz45g.jp/x",
     "Content-Type: text/html; charset=utf-8",
     H(CANONICAL("https://\xE4\xBE\x8B\xE3\x81\x88.jp/"))},
    {"canonical", FAIL, "another language", URL "en", "Link: </en>; rel=alternate; hreflang=en",
     "<head><base href=https://example.org/>" CANONICAL("https://example.com/de")
         ALTERNATE("de", "https://example.com/de")},

    /* hreflang */
    {"hreflang", FAIL, "5 of 5", URL,
     "Link: <http://example.com/>; rel=alternate; hreflang=xx1, <http://example.com/>; "
     "rel=alternate; hreflang=XX-be\n"
     "Link: <http://example.com/>; rel=\"alternate\"; hreflang=\"  es\"",
     H(ALTERNATE("XX-be-Hans", "http://example.com/") ALTERNATE("  es", "http://example.com/"))},
    {"hreflang", PASS, "0", URL, "",
     "<body>" ALTERNATE("xx", "https://example.com") ALTERNATE("  es", "https://example.com")},
    {"hreflang", PASS, "3", URL, "",
     H(ALTERNATE("pl", "https://example.com") ALTERNATE("zh-Hans", "https://example.com")
           ALTERNATE("FR-BE", "https://example.com"))},
    {"hreflang", PASS, "2", URL,
     "Link: <https://example.com>; rel=alternate; hreflang=nl-be, <https://example.com>; "
     "rel=alternate; hreflang=\"X-Default\"",
     ""},
    {"hreflang", PASS, "0", URL, "", H(ALTERNATE("", "https://example.com"))},
    {"hreflang", FAIL, "2 of 2", URL, "Link: <//example.com>; rel=alternate; hreflang=es",
     H(ALTERNATE("es", "example.com"))},
    {"hreflang", FAIL, "3 of 4", URL, "",
     H(ALTERNATE("@@", "example.com") ALTERNATE("fr", "example.com")
           ALTERNATE("@@", "https://example.com") ALTERNATE("fr", "HTTPS://example.com"))},
    {"hreflang", FAIL, "4 of 4", URL,
     "Link: <http://xx1.example.com/>; rel=alternate; hreflang=xx1\nLink: "
     "<http://xx2.example.com/>; rel=alternate; hreflang=xx2",
     H(ALTERNATE("xx3", "http://xx3.example.com/") ALTERNATE("xx4", "http://xx4.example.com/"))},
    {"hreflang", FAIL, "2 of 2", URL, "Link: <//example.com>; rel=alternate; hreflang=xx1",
     H(ALTERNATE(" es", "example.com"))},
    {"hreflang", PASS, "3", URL, "",
     H(ALTERNATE("aam", URL) ALTERNATE("zkb", URL) ALTERNATE("hmn", URL))},
    {"hreflang", FAIL, "3 of 3", URL, "",
     H(ALTERNATE("bih", URL) ALTERNATE("deu", URL) ALTERNATE("abcd", URL))},
    /* assay accepts all private-use codes, qaa to qtz */
    {"hreflang", PASS, "1", URL, "", H(ALTERNATE("qbc", URL))},

    /* link-text */
    {"link_text", FAIL, "5 of 8", URL "page.html", "Content-Type: text/html; charset=utf-8",
     "<p lang=en><a href=/o>legit link text</a><a href=/o>click here</a><a href=/o>legit</a></p><p "
     "lang=de><a href=/o>klicke hier</a>"
     "<a href=/o>legitimer Link-Text</a></p><p lang=es><a href=/o>click aqu\xC3\xAD</a></p><p "
     "lang=en-US><a href=/o>click here</a></p>"
     "<p lang=de-DE><a href=/o>klicke hier</a></p>"},
    {"link_text", FAIL, "3 of 4", URL "page.html", "Content-Type: text/html; charset=utf-8",
     "<a href=/o>legit link text</a><a href=/o>click here</a><a href=/o>klicke hier</a><a "
     "href=/o>click aqu\xC3\xAD</a>"},
    {"link_text", PASS, NULL, URL "page.html", "",
     "<a href=page.html>click here</a><a href=/page.html#test>click here</a><a href=''>click "
     "here</a>"},
    {"link_text", PASS, NULL, URL "a/page.html", "",
     "<base href=/a/><a href=//example.com/a/page.html>here</a><a href=page.html#x>here</a>"},
    {"link_text", FAIL, "2 of 2", URL "page.html", "",
     "<base href=https://example.org/><a href=/page.html>here</a><a href=page.html>here</a>"},
    {"link_text", FAIL, "2 of 3", URL "page.html", "",
     "<a href=/page.html?x>here</a><a href=/x/../page.html>here</a><a href=//page.html>here</a>"},
    {"link_text", PASS, NULL, URL "page.html", "",
     "<a href='javascript:alert(1)'>click here</a><a "
     "href='JavaScript:window.location=\"/o\"'>click here</a><a "
     "href='JAVASCRIPT:void(0)'>click here</a>"},
    {"link_text", PASS, NULL, URL, "",
     "<a href=mailto:info@example.com>click here</a><a href=MAILTO:mailmaster@localhost>click "
     "here</a>"},
    {"link_text", PASS, NULL, URL, "",
     "<a>click here</a><a href=/o rel='noopener nofollow'>click here</a>"},
    {"link_text", PASS, NULL, URL, "",
     "<html lang=fr><a href=/o>click here</a><a href=/o>hier</a>"},
    {"link_text", FAIL, "1 of 1", URL, "", "<html lang=''><a href=/o>hier</a>"},
    {"link_text", FAIL, "1 of 1", URL, "",
     "<html lang=fr><a href=/o><span lang=de>hier</span></a>"},
    {"link_text", FAIL, "1 of 1", URL, "",
     "<html lang=fr><a href=/o><i lang=de>klicke</i> <i lang=en>hier</i></a>"},
    {"link_text", PASS, NULL, URL, "", "<html lang=fr><a href=/o><i>klicke</i> <b>hier</b></a>"},
    {"link_text", FAIL, "1 of 1", URL, "Content-Type: text/html; charset=utf-8",
     "<a href=/o>&nbsp;here\xC2\xA0</a>"},
    {"link_text", FAIL, "Read More", URL, "", "<a href=/o> Read\n<b>More</b> </a>"},
    {"link_text", PASS, NULL, URL "page.html", "",
     "<p lang=en><a href=/o>legit link text</a><a "
     "href='http://example.com/page.html?test=test'>legit link text</a>"
     "<a href=file://Users/user/Desktop/file.png>legit link text</a>"},
    {"link_text", PASS, NULL, URL "a/page", "", "<a href=#x>here</a><a href='?#x'></a>"},
    {"link_text", FAIL, "1 of 1", URL "a/page", "", "<a href=?x>here</a>"},
    {"link_text", FAIL, "1 of 1", URL, "", "<svg><a xlink:href=/o><text>here</text></a></svg>"},
    {"link_text", PASS, NULL, URL "%C3%A4", "Content-Type: text/html; charset=utf-8",
     "<a href=/\xC3\xA4#x>here</a>"},

    /* crawlable-anchors */
    {"crawlable_links", PASS, "0", URL, "",
     "<a href=#top>a</a><a href=mailto:name@example.com>a</a><a href=https://example.com>a</a><a "
     "href=foo>a</a><a href=/foo>a</a>"
     "<a href='#:~:text=string'>a</a><a href=ftp://myname@host.dom>a</a><a "
     "href=http://172.217.20.78>a</a><a href=//example.com>a</a>"
     "<a href=tel:5555555>a</a><a href=#>a</a><a>a</a><a href='?query=string'>a</a><a "
     "href=''>a</a><a href=' '>a</a>"},
    {"crawlable_links", FAIL, "1", URL, "", "<a href=ftp://>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "",
     "<a href='' id=example>a</a><a name=name>a</a><a id=x rel=y>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "",
     "<a role=some-role href='javascript:void(0)'>a</a><a role=a onclick='x'>a</a>"},
    {"crawlable_links", FAIL, "1", URL, "", "<a role=' ' rel=a>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "",
     "<a href=/validPath onclick='window.open()'>a</a><a href=mailto:a@b.c "
     "onclick='window.open()'>a</a>"},
    {"crawlable_links", FAIL, "1", URL, "", "<a href='javascript:void(0)' onclick='x()'>a</a>"},
    {"crawlable_links", FAIL, "1", URL, "", "<a onmouseover='x()'>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "", "<a href=' ' onclick=' '>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "",
     "<a href=http:foo>a</a><a href='https:\\\\a.com\\b'>a</a><a href=https:>a</a>"},
    {"crawlable_links", FAIL, "4", URL, "",
     "<a href=http://256.1.1.1>a</a><a href=//a%b/>a</a><a href=http://>a</a><a "
     "href='//a|b'>a</a>"},
    {"crawlable_links", FAIL, "4", URL, "",
     "<a target=_blank>a</a><a download>a</a><a href=file:///image.png>a</a><a name=' ' rel>a</a>"},
    {"crawlable_links", FAIL, "7", URL, "",
     "<a href='javascript:void(0)'>a</a><a href='javascript: void(0)'>a</a><a href='javascript : "
     "void(0)'>a</a><a href='javascript : void "
     "( 0 )'>a</a>"
     "<a href='javascript: void 0'>a</a><a href='javascript:void 0'>a</a><a "
     "href='javascript:void0'>a</a>"},
    {"crawlable_links", PASS, NULL, URL, "", "<svg><a xlink:href=/x target=_blank>a</a></svg>"},

    /*
     * has-hsts; assay accepts an empty directive (RFC 6797, 6.1) and refuses a max-age that is not
     * a number
     */
    {"hsts", PASS, NULL, URL,
     "Strict-Transport-Security: max-age=63072000; includeSubDomains; preload", ""},
    {"hsts", PASS, NULL, URL, "Strict-Transport-Security: MAX-AGE = 31536000 ;INCLUDESUBDOMAINS",
     ""},
    {"hsts", FAIL, NULL, URL, "Strict-Transport-Security:", ""},
    {"hsts", FAIL, NULL, URL, "Strict-Transport-Security:   \t", ""},
    {"hsts", FAIL, "foo-directive", URL,
     "Strict-Transport-Security: max-age=31536000; foo-directive; includesubdomains; preload", ""},
    {"hsts", FAIL, "fooDirective", URL,
     "Strict-Transport-Security: max-age=63072000; fooDirective; preload", ""},
    {"hsts", FAIL, "1337 seconds", URL,
     "Strict-Transport-Security: max-age=1337; includeSubDomains; preload", ""},
    {"hsts", PASS, NULL, URL, "Strict-Transport-Security: max-age=63072000; preload", ""},
    {"hsts", PASS, NULL, URL, "Strict-Transport-Security: max-age=63072000; includeSubDomains", ""},
    {"hsts", FAIL, "is missing", URL, "Foo-Header: max-age=63072000; includeSubDomains; preload",
     ""},
    {"hsts", FAIL, "no max-age", URL, "Strict-Transport-Security: includesubdomains; preload", ""},
    {"hsts", FAIL, "max-age", URL, "Strict-Transport-Security: max-age=abc", ""},

    /*
     * clickjacking-mitigation; assay accepts a list of which each member forbids frames, as
     * browsers do
     */
    {"clickjacking", PASS, NULL, URL,
     "X-Frame-Options: SAMEORIGIN\nContent-Security-Policy: frame-ancestors 'self'", ""},
    {"clickjacking", PASS, NULL, URL, "Content-Security-Policy:\nX-Frame-Options: deny", ""},
    {"clickjacking", PASS, NULL, URL, "Content-Security-Policy:   \t\nX-Frame-Options: DENY", ""},
    {"clickjacking", PASS, NULL, URL, "X-Frame-Options: foo-directive\nX-Frame-Options: deny", ""},
    {"clickjacking", PASS, NULL, URL,
     "Content-Security-Policy: default-src 'self', frame-ancestors 'none'", ""},
    {"clickjacking", PASS, NULL, URL, "X-Frame-Options: SAMEORIGIN, SAMEORIGIN", ""},
    {"clickjacking", FAIL, NULL, URL, "X-Frame-Options: foo-directive", ""},
    {"clickjacking", FAIL, NULL, URL,
     "Content-Security-Policy: foo-directive 'none'; report-uri https://csp.example.com", ""},
    {"clickjacking", FAIL, NULL, URL,
     "X-Frame-Options: fooDirective\nContent-Security-Policy: foo-directive 'none'", ""},
    {"clickjacking", FAIL, NULL, URL, "Foo-Header: same-origin", ""},
    {"clickjacking", PASS, NULL, URL,
     "Content-Security-Policy: script-src 'none'; frame-ancestors 'self'; report-uri "
     "https://a.example",
     ""},
    {"clickjacking", FAIL, NULL, URL, "X-Frame-Options: SAMEORIGIN, ALLOWALL", ""},
    {"clickjacking", FAIL, NULL, URL, "", ""},

    /* csp-xss, only its "an enforced policy" */
    {"csp", PASS, "default-src", URL, "",
     H("<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">")},
    {"csp", PASS, NULL, URL, "Content-Security-Policy:\nContent-Security-Policy: object-src 'none'",
     ""},
    {"csp", PASS, NULL, URL,
     "Content-Security-Policy:   \t\nContent-Security-Policy: object-src 'none'", ""},
    {"csp", PASS, "No object-src", URL,
     "Content-Security-Policy: script-src 'none'; foo-bar 'none'", ""},
    {"csp", PASS, "No base-uri", URL,
     "Content-Security-Policy: script-src 'nonce-12345678'; foo-bar 'none'", ""},
    {"csp", PASS, "No script-src", URL, "Content-Security-Policy: object-src 'none'", ""},
    {"csp", PASS, "No script-src", URL, "Content-Security-Policy: upgrade-insecure-requests", ""},
    {"csp", PASS, "inline scripts may run", URL,
     "Content-Security-Policy: script-src 'unsafe-inline'; object-src 'none'", ""},
    {"csp", PASS, "inline scripts may run", URL,
     "Content-Security-Policy: default-src 'self' 'unsafe-inline'", ""},
    {"csp", PASS, "event handlers", URL,
     "Content-Security-Policy: default-src 'none'; script-src-attr 'unsafe-hashes' 'sha256-a'", ""},
    {"csp", PASS, "https: allows scripts", URL, "Content-Security-Policy: default-src https:", ""},
    {"csp", PASS, "* allows plugins", URL,
     "Content-Security-Policy: script-src 'strict-dynamic' *; object-src *", ""},
    {"csp", PASS, "https: allows plugins", URL,
     "Content-Security-Policy: script-src 'strict-dynamic' https:; object-src https:", ""},
    {"csp", PASS, "* lets an injected <base>", URL,
     "Content-Security-Policy: default-src 'none'; base-uri *", ""},
    {"csp", PASS, "https://example.com may serve", URL,
     "Content-Security-Policy: script-src https://example.com; object-src 'none'", ""},
    {"csp", PASS, "inline scripts may run", URL,
     "Content-Security-Policy: object-src 'none'\nContent-Security-Policy: script-src "
     "'unsafe-inline'",
     ""},
    {"csp", PASS, "No base-uri", URL,
     "Content-Security-Policy: script-src 'nonce-abcdefgh' 'unsafe-inline'; object-src 'none'", ""},
    {"csp", FAIL, NULL, URL, "Content-Security-Policy:   \t", ""},
    {"csp", FAIL, NULL, URL, "Content-Security-Policy: , ,",
     H("<meta http-equiv=content-security-policy content=' , '>")},
    {"csp", FAIL, NULL, URL, "", ""},

    /* doctype */
    {"doctype", FAIL, "no doctype", URL, "", "<p>"},
    {"doctype", FAIL, "quirks mode", URL, "", "<!DOCTYPE html foo>"},
    {"doctype", FAIL, "limited quirks", URL, "",
     "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01 Transitional//EN' "
     "'http://www.w3.org/TR/html4/loose.dtd'>"},
    {"doctype", FAIL, NULL, URL, "", "<!DOCTYPE xml>"},
    {"doctype", PASS, NULL, URL, "", "<!DOCTYPE html>"},
    {"doctype", PASS, NULL, URL, "",
     "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01//EN' 'http://www.w3.org/TR/html4/strict.dtd'>"},

    /* charset; assay refuses one that no browser supports, and accepts one in quotes */
    {"charset", PASS, "meta tag", URL, "Content-Type: text/html",
     "<!doctype html><head><meta charset=\"utf-8\" >"},
    {"charset", PASS, "meta tag", URL, "", "<!doctype html><head><meta cHaRsEt=\"uTf-8\" >"},
    {"charset", PASS, "meta tag", URL, "", "<!doctype html><head><meta   charset=utf-8  />"},
    {"charset", PASS, "meta tag", URL, "",
     "<!doctype html><head><meta http-equiv=\"Content-type\" content=\"text/html; charset=utf-8\" "
     "/>"},
    {"charset", PASS, "meta tag", URL, "",
     "<!doctype html><meta content=\"text/html; charset=utf-8\" "
     "http-equiv=\"Content-type\"/><body>"},
    {"charset", PASS, "Content-Type header", URL, "Content-Type: text/html; charset=UTF-8",
     "<meta http-equiv=\"Content-type\" content=\"text/html\" />"},
    {"charset", PASS, "Content-Type header", URL, "Content-Type: text/html; charset = UTF-8", ""},
    {"charset", PASS, "Content-Type header", URL, "Content-Type: text/html; charset=\"utf-8\"", ""},
    {"charset", PASS, "byte order mark", URL, "", "\xEF\xBB\xBF<!doctype html>"},
    {"charset", FAIL, NULL, URL, "",
     "<!doctype html><meta http-equiv=\"Content-type\" content=\"text/html\" />"},
    {"charset", FAIL, NULL, URL, "",
     "<!doctype html><meta http-equiv=\"Content-type\" content=\"text/html; nope-tf8\" />"},
    {"charset", FAIL, NULL, URL, "", "<!doctype html><meta description=hello><body>"},
    {"charset", FAIL, NULL, URL, "Content-Type: text/html; charset=", ""},
    {"charset", FAIL, NULL, URL, "Content-Type: text/html; charset=x", ""},
    {"charset", FAIL, NULL, URL, "Content-Type: text/html; charset=  ", ""},
    {"charset", FAIL, NULL, URL, "", "<!doctype html><meta charset=utf-8<body>"},
    {"charset", PASS, NULL, URL, "",
     /* so browsers */
     "<!doctype html><meta http-equiv=Content-type content='text/html; charset=utf-8' <body>"},
    {"charset", FAIL, NULL, URL, "", "<meta charset=utf-16*>"},

    /* viewport */
    {"meta_viewport", FAIL, NULL, URL, "", ""},
    {"meta_viewport", FAIL, NULL, URL, "", H("<meta name=viewport content=''>")},
    {"meta_viewport", FAIL, NULL, URL, "", H("<meta name=viewport content='nonsense=true'>")},
    {"meta_viewport", FAIL, NULL, URL, "",
     H("<meta name=viewport content='width=device-width, initial-scale=0.9'>")},
    {"meta_viewport", FAIL, NULL, URL, "",
     "<body><meta name=viewport content='width=device-width'>"},
    {"meta_viewport", PASS, NULL, URL, "", H("<meta name=Viewport content='width=device-width'>")},
    {"meta_viewport", PASS, NULL, URL, "",
     H("<meta name=viewport content='width = device-width, initial-scale = 1'>")},
    {"meta_viewport", PASS, NULL, URL, "", H("<meta name=viewport content='initial-scale=1'>")},

    {"meta_viewport", PASS, NULL, URL, "", H("<meta name=viewport content='initial-scale=yes'>")},
    {"meta_viewport", PASS, NULL, URL, "",
     H("<meta name=viewport content='initial-scale=device-width'>")},
    {"meta_viewport", FAIL, "neither", URL, "",
     H("<meta name=viewport content='initial-scale=no, width=auto'>")},

    /* image-alt (from axe); assay checks images of any role, and accepts any aria-labelledby */
    {"image_alt", FAIL, "6 of 6", URL, "",
     "<img src=a><img src=b aria-label=''><img src=c aria-labelledby=''><img src=d title=''><img "
     "src=e alt=' '><img src=f role=button>"},
    {"image_alt", PASS, "0", URL, "",
     "<img src=a alt=monkeys><img src=b aria-label=monkeys><img src=c aria-labelledby=monkeys><img "
     "src=d alt=''><img src=e title=monkeys>"
     "<img src=f role=presentation><img src=g role=none><img src=h role=button aria-label=foo><img "
     "src=i role=checkbox title=bar>"},
    {"image_alt", FAIL, "4 of 4", URL, "",
     "<img src=a role=presentation aria-live=assertive><img src=b role=none "
     "aria-live=assertive><img src=c role=presentation tabindex=0>"
     "<img src=d role=none tabindex=0>"},
    {"image_alt", FAIL, "4 of 4", URL, "",
     "<img src=a role=separator tabindex=0><img src=b role=option aria-label=''><img src=c "
     "role=progressbar title=''>"
     "<img role=button>"},
    {"image_alt", FAIL, NULL, URL, "", "<img src=a>"},
    {"image_alt", FAIL, NULL, URL, "", "<img src=a alt=' '>"},
    {"image_alt", FAIL, NULL, URL, "", "<img src=a alt=' ' aria-label=b>"},
    {"image_alt", FAIL, NULL, URL, "", "<img src=a alt='&nbsp;'>"},
    {"image_alt", PASS, NULL, URL, "",
     "<img src=a alt><img src=a aria-label=b><img src=a title=b><img src=a role=presentation>"},
    {"image_alt", NA, NULL, URL, "",
     "<div aria-hidden=true><p><img src=a></div><div hidden><img src=b></div><i style='display: "
     "none'><img src=c></i>"},
    {"image_alt", FAIL, "1 of 1", URL, "",
     "<div aria-hidden=false></div><div hidden>x</div><img src=a style='display:nothing; "
     "color:none'>"},
    {"image_alt", NA, NULL, URL, "", "<img src=a aria-hidden=true><img src=b hidden>"},

    /* unsized-images */
    {"unsized_images", PASS, NULL, URL, "", ""},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "position: absolute")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "position:fixed")},
    {"unsized_images", PASS, NULL, URL, "", "<img src='data:image/svg+xml;base64,x'>"},
    {"unsized_images", PASS, NULL, URL, "",
     "<img src='data:image/svg+xml,%3csvg%20xmlns=%27http://www.w3.org/2000/svg%27/%3e'>"},
    {"unsized_images", FAIL, NULL, URL, "", "<img src=a.svg height=100 style='height:100px'>"},
    {"unsized_images", PASS, NULL, URL, "",
     "<div hidden><img src=a></div><div style='display:none'><p><img src=a></div>"},
    {"unsized_images", FAIL, "1 of 1", URL, "", "<div hidden></div><img src=a>"},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "height:100px")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "100", "height:100px")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("100", "", "width:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "100", "width:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("-200", "-200", "width:100px;height:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "width:80%;height:-20")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "width:three;height:0")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "width:initial;height:unset")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "width:100px;aspect-ratio:1 / 1")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("s-5", "1", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("100", "", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "100", "")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100", "100", "")},
    {"unsized_images", PASS, NULL, URL, "", IMG("0", "0", "")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100", "", "height:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("", "", "width:100px;height:7vw")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("-200", "100", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("100", "-200", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "width:auto;height:100px")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "width:100px;height:inherit")},
    {"unsized_images", PASS, NULL, URL, "", IMG("-200", "100", "width:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100", "", "width:auto;height:100px")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100", "100", "width:auto;height:auto")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("-200", "-200", "width:auto;height:auto")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("", "", "aspect-ratio:1/1")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("100", "", "aspect-ratio:auto")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100", "", "aspect-ratio:1/1")},
    {"unsized_images", PASS, NULL, URL, "", IMG("1002$", "3,000", "")},
    {"unsized_images", PASS, NULL, URL, "", IMG("100.0", "2/3", "")},
    {"unsized_images", FAIL, NULL, URL, "", IMG("zero", "+2020", "")},
    {"unsized_images", FAIL, "2 of 3", URL, "",
     "<img src=image1.png><img src=image2.png width=100 height=150><img src=image3.png>"},

    /* meta-description */
    {"meta_description", FAIL, NULL, URL, "", ""},
    {"meta_description", FAIL, "empty", URL, "", H("<meta name=description content=''>")},
    {"meta_description", FAIL, "empty", URL, "", H("<meta name=description content='\t&nbsp;'>")},
    {"meta_description", PASS, NULL, URL, "",
     H("<meta name=description content='description text'>")},
};

START_TEST(a_lighthouse_case_has_its_verdict)
{
    audit_kit_judge(&cases[_i]);
}
END_TEST

START_TEST(every_indexing_block_is_reported)
{
    struct facts f;
    struct verdict v = {.outcome = OUTCOME_PASS};
    audit_kit_facts(&f, URL,
                    "x-robots-tag: none\nx-robots-tag: noindex\nx-robots-tag: bingbot: none",
                    ROBOTS("noindex"));
    v.arena = &f.arena;
    check_noindex(&f, &v);
    ck_assert_int_eq(v.outcome, OUTCOME_FAIL);
    ck_assert_uint_eq(v.detail_count, 4);
    ck_assert(text_has(v.details[0], "any bot: noindex in <meta") &&
              text_has(v.details[1], "any bot: none in X-Robots-Tag"));
    ck_assert(text_has(v.details[2], "any bot: noindex in X-Robots-Tag") &&
              text_has(v.details[3], "bingbot: none in"));
    facts_free(&f);
}
END_TEST

/* the meta tag after that many spaces: whole, cut in the middle, or past the first 1,024 bytes */
START_TEST(a_charset_counts_within_the_first_1024_bytes)
{
    static const struct {
        int spaces;
        enum expected outcome;
    } pages[] = {{900, PASS}, {1024 - 21 - 24 / 2, FAIL}, {1024, FAIL}};
    char html[2048];
    struct facts f;
    snprintf(html, sizeof(html),
             "<!doctype html><head>%*s<meta charset=\"utf-8\" /></head><body><h1>hello",
             pages[_i].spaces, "");
    audit_kit_facts(&f, URL, "Content-Type: text/html", html);
    audit_kit_expect(&f, "charset", pages[_i].outcome, NULL);
    facts_free(&f);
}
END_TEST

/* policies without a danger according to Lighthouse: headers, HTML */
static const char *const strong_policies[][2] = {
    {"Content-Security-Policy: script-src 'none'\nContent-Security-Policy: object-src 'none'", ""},
    {"Content-Security-Policy: object-src 'none'\nContent-Security-Policy: script-src 'none'", ""},
    {"Content-Security-Policy: script-src 'none',default-src 'none'\nContent-Security-Policy: "
     "object-src 'none'",
     ""},
    {"Content-Security-Policy: default-src 'unsafe-inline' *, default-src 'none'", ""},
    {"Content-Security-Policy: script-src 'nonce-a'; object-src 'none', base-uri 'none'", ""},
    {"", H("<meta http-equiv=content-security-policy content=\"script-src 'none'; object-src "
           "'none'; report-uri https://example.com\">")},
    {"Content-Security-Policy: script-src 'none'; object-src 'none'; report-uri "
     "https://example.com",
     ""},
    {"Content-Security-Policy: script-src https://example.com; object-src 'none'",
     H("<meta http-equiv=content-security-policy content=\"script-src 'none'; object-src "
       "'none'\">")},
    {"Content-Security-Policy: script-src 'nonce-00000000' 'unsafe-inline'; object-src 'none'; "
     "base-uri 'none'",
     ""},
    {"Content-Security-Policy: script-src 'strict-dynamic' 'sha256-abc' https: 'unsafe-inline'; "
     "object-src 'none'; base-uri 'self'",
     ""},
    {"Content-Security-Policy: img-src *, default-src 'self'", ""},
    {"Content-Security-Policy: default-src 'self'; DEFAULT-SRC *", ""},
};

START_TEST(a_strong_policy_gets_no_advice)
{
    struct facts f;
    struct verdict v = {.outcome = OUTCOME_FAIL};
    audit_kit_facts(&f, URL, strong_policies[_i][0], strong_policies[_i][1]);
    v.arena = &f.arena;
    check_csp(&f, &v);
    ck_assert_int_eq(v.outcome, OUTCOME_PASS);
    ck_assert_msg(v.message.n == 0 && v.detail_count == 0, "%s: %.*s", strong_policies[_i][0],
                  (int)v.details[0].n, v.details[0].p);
    facts_free(&f);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_lighthouse");
    TCase *t = tcase_create("lighthouse");
    tcase_add_loop_test(t, a_lighthouse_case_has_its_verdict, 0, COUNT(cases));
    tcase_add_test(t, every_indexing_block_is_reported);
    tcase_add_loop_test(t, a_charset_counts_within_the_first_1024_bytes, 0, 3);
    tcase_add_loop_test(t, a_strong_policy_gets_no_advice, 0, COUNT(strong_policies));
    suite_add_tcase(s, t);
    return suite_run(s);
}
