/* Reading a page: markup as browsers see it, style sheets, facts, language tags. */
#include "core/audit/css_internal.h"
#include "core/audit/facts_internal.h"
#include "core/audit/language_internal.h"
#include "core/audit/page_internal.h"
#include "core/audit/page_runs_internal.h"
#include "core/audit/page_text_internal.h"
#include "core/audit/text.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define FFFD "\xEF\xBF\xBD"

/* ---- the input of the parser ---- */

/* The input, and the texts that marks stand for. */
struct gathered {
    struct buf fed;
    struct page_run runs[64];
    size_t count;
};

static bool gather(void *arg, const char *p, size_t n)
{
    struct gathered *g = arg;
    buf_add(&g->fed, p, n);
    return true;
}

static char gather_text(void *arg, struct page_run run)
{
    struct gathered *g = arg;
    ck_assert_uint_lt(g->count, sizeof(g->runs) / sizeof(*g->runs));
    g->runs[g->count++] = run;
    return (char)('?' + g->count); /* @, A, B … */
}

static void scan(struct str html, struct str *doctype, struct gathered *out)
{
    ck_assert(page_scan(html, doctype, &(struct page_sink){gather, gather_text, out}));
}

/*
 * The input with [text] for each mark, _ before a spaced mark, {} around an undecoded one; | at the
 * end of the head.
 */
static void show(const struct gathered *g, struct buf *out)
{
    for (struct str rest = buf_view(&g->fed); rest.n > 0;) {
        if (!text_starts(rest, "<!--")) {
            buf_add(out, rest.p, 1);
            rest = text_from(rest, 1);
            continue;
        }
        if (rest.p[4] == PAGE_MARK_BODY) {
            buf_adds(out, "|");
        } else {
            const struct page_run *run = &g->runs[rest.p[4] - '@'];
            bool decoded = (run->flags & RUN_DECODED) != 0;
            buf_printf(out, "%s%s%.*s%s", (run->flags & RUN_AFTER_SPACE) != 0 ? "_" : "",
                       decoded ? "[" : "{", (int)run->text.n, run->text.p, decoded ? "]" : "}");
        }
        rest = text_from(rest, 8);
    }
    buf_add(out, "", 1);
}

/* html, the output in show()'s notation, doctype */
static const char *const scan_cases[][3] = {
    {"<p>a</p>", "|<p>[a]</p>", ""},
    {"<!DOCTYPE html>\n<p>a", "|<p>_[a]", "DOCTYPE html"},
    {"<!-- x --><!doctype html><p>", "|<p>", "doctype html"},
    {"x<!doctype html>", "|[x]", ""},
    {"<p><!doctype html>", "|<p>", ""},
    {"a<!-- b -->c", "|[a][c]", ""},
    {"a<!-->b", "|[a][b]", ""},
    {"a<!--->b", "|[a][b]", ""},
    {"a<!-- b --!>c", "|[a][c]", ""},
    {"a<!-- b ---->c", "|[a][c]", ""},
    {"a<!-- b > c", "|[a]", ""},
    {"a<!x>b<?php x ?>c</ x>d", "|[a][b][c][d]", ""},
    {"a < b <3 <", "|[a < b <3 <]", ""},
    {"a</", "|[a</]", ""},
    {"a <b>b</b> <i> c</i>\n", "|[a ]<b>[b]</b><i>_[ c]</i>", ""},
    {"<a title=\"a>b\">c", "|<a title=\"a>b\">[c]", ""},
    {"<a title='a>b'c=d>e", "|<a title='a>b'c=d>[e]", ""},
    {"<a title=a\"b>c", "|<a title=a\"b>[c]", ""},
    {"<a \"a>b", "|<a \"a>[b]", ""},
    {"<p class=a id='>'>b", "|<p>[b]", ""},
    {"<p class=a STYLE='b>' data-lang=c lang=d e>f", "|<p STYLE='b>'  lang=d >[f]", ""},
    {"<p style lang style=a stylex=b>c", "|<p style  lang >[c]", ""},
    {"<path d='x'/><p/>", "|<path/><p/>", ""},
    {"<p title=\"never closed>b", "", ""},
    {"a<p", "|[a]", ""},
    {"<i></p class=x>", "|<i></p>", ""},
    {"</p class=x></i>", "", ""},
    {"</br>", "|<br>", ""},
    {"<p></BODY></html>a", "|<p>[a]", ""},
    {"<script>if (a<b) '</p>';</script>c", "<script></script>|[c]", ""},
    {"<SCRIPT>a</ScRiPt >c", "<SCRIPT></ScRiPt>|[c]", ""},
    {"<script>a</scripts>b</script>c", "<script></script>|[c]", ""},
    {"<script>a", "<script></script>", ""},
    {"<script type='application/ld+json'>{\"a\":\"</p>\"}</script>",
     "<script type='application/ld+json'>{\"a\":\"<\\/p>\"}</script>", ""},
    {"<style>p>a{}</style>b", "<style>p>a{}</style>|[b]", ""},
    {"<noscript><img></noscript>b", "<noscript></noscript>|[b]", ""},
    {"<title>a<b>c&amp;</b></title>", "<title>[a<b>c&amp;</b>]</title>", ""},
    {"<textarea><p></textarea>", "|<textarea>[<p>]</textarea>", ""},
    {"<xmp>&lt;<p></xmp>", "|<xmp>{&lt;<p>}</xmp>", ""},
    {"<plaintext>a<p>b</plaintext>c", "|<pre>{a<p>b</plaintext>c}</pre>", ""},
    {"<title>a", "<title>[a]</title>", ""},
    {"<html><head><meta a><link b></head><meta c><x-y>",
     "<html><head><meta a><link b></head><meta c>|<x-y>", ""},
    {"<head><template><p>a</template><title>b</title><p>",
     "<head><template><p>[a]</template><title>[b]</title>|<p>", ""},
    {"", "", ""},
};

START_TEST(the_parser_reads_markup_as_browsers_do)
{
    struct gathered g = {.count = 0};
    struct buf out = {0};
    struct str doctype;
    scan(str_of(scan_cases[_i][0]), &doctype, &g);
    show(&g, &out);
    ck_assert_str_eq(out.p, scan_cases[_i][1]);
    ck_assert(str_eq(doctype, str_of(scan_cases[_i][2])));
    buf_free(&out);
    buf_free(&g.fed);
}
END_TEST

START_TEST(a_mark_finds_its_run_after_other_marks_are_lost)
{
    struct page_runs runs = {0};
    struct page_run run;
    char marks[200];
    for (unsigned i = 0; i < 200; i++)
        marks[i] = page_runs_add(&runs, (struct page_run){STR("x"), i});
    ck_assert(page_runs_take(&runs, marks[0], &run));
    ck_assert_uint_eq(run.flags, 0);
    ck_assert(page_runs_take(&runs, marks[40], &run)); /* 39 were lost */
    ck_assert_uint_eq(run.flags, 40);
    ck_assert(!page_runs_take(&runs, '?', &run));
    for (unsigned i = 41; i < 200; i++) {
        ck_assert(page_runs_take(&runs, marks[i], &run));
        ck_assert_uint_eq(run.flags, i);
    }
    ck_assert(!page_runs_take(&runs, marks[199], &run));
    char next = page_runs_add(&runs, (struct page_run){STR("y"), 7});
    ck_assert(!page_runs_take(&runs, next == 'A' ? 'B' : 'A', &run));
    ck_assert(page_runs_take(&runs, next, &run));
    ck_assert_uint_eq(run.flags, 7);
    ck_assert(!runs.failed);
    page_runs_free(&runs);
}
END_TEST

/* text, its decoded form */
static const char *const decode_cases[][2] = {
    {"a", "a"},
    {"a & b && c", "a & b && c"},
    {"&amp;&lt;&gt;&quot;&apos;&nbsp;", "&<>\"'\xC2\xA0"},
    {"&uuml;&Uuml;&hearts;&thetasym;", "\xC3\xBC\xC3\x9C\xE2\x99\xA5\xCF\x91"},
    {"&copy 1 &ampx &hearts &nope; &;", "\xC2\xA9 1 &ampx &hearts &nope; &;"},
    {"&#65;&#x42;&#X43;&#68 &#;&#x;&#xZ;", "ABCD &#;&#x;&#xZ;"},
    {"&#146;&#x80;&#0;&#xD800;&#x110000;&#99999999999;",
     "\xE2\x80\x99\xE2\x82\xAC" FFFD FFFD FFFD FFFD},
    {"&#128512;&", "\xF0\x9F\x98\x80&"},
};

START_TEST(character_references_decode_as_in_browsers)
{
    struct buf out = {0};
    page_decode(str_of(decode_cases[_i][0]), &out);
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.p, decode_cases[_i][1]);
    buf_free(&out);
}
END_TEST

START_TEST(a_tag_is_cut_between_attributes_at_64_kib)
{
    struct gathered g = {.count = 0};
    struct buf html = {0};
    struct str doctype;
    buf_adds(&html, "<a");
    for (unsigned i = 0; i < 800; i++)
        buf_printf(&html, " a%u=\"%0100u\"", i, i);
    buf_adds(&html, ">after");
    ck_assert_uint_gt(html.n, PAGE_TAG_BYTES);
    scan(buf_view(&html), &doctype, &g);
    ck_assert_uint_le(g.fed.n, PAGE_TAG_BYTES + 32);
    ck_assert_uint_gt(g.fed.n, PAGE_TAG_BYTES - 200);
    ck_assert(text_ends(buf_view(&g.fed), "\"><!--@-->"));
    buf_free(&html);
    buf_free(&g.fed);
}
END_TEST

/* ---- CSS: text, its URLs separated by spaces, ! before an imported one ---- */

static const char *const css_cases[][2] = {
    {"", ""},
    {"p{color:red}", ""},
    {"a:url(b)", "b"},
    {"a: URL( 'b c' ) , url(\"d\")", "b c d"},
    {"a:url( b )", "b"},
    {"a:url(b", "b"},
    {"a:url('b", "b"},
    {"a:url()", ""},
    {"a:curl(b) url (c) url2(d)", ""},
    {"/* url(a) */b:url(c)/* d", "c"},
    {"a:'url(b)' \"url(c)\" 'it\\'s url(d)';e:url(f)", "f"},
    {"a:'never closed\nb:url(c)", "c"},
    {"@import 'a';b{c:url(d)}", "!a d"},
    {"@IMPORT url(a) screen; 'b'", "!a"},
    {"@import;'a'", ""},
    {"@namespace url(a); @media x{b:url(c)}", "c"},
    {"@import/**/'a'", "!a"},
    {"\\", ""},
    {"'\\", ""},
    {"/*", ""},
    {"/", ""},
    {"@", ""},
};

START_TEST(urls_are_extracted_from_css)
{
    struct buf out = {0};
    struct css_url one;
    for (struct str rest = str_of(css_cases[_i][0]); css_url(&rest, &one);)
        if (one.url.n > 0)
            buf_printf(&out, "%s%s%.*s", out.n > 0 ? " " : "", one.is_import ? "!" : "",
                       (int)one.url.n, one.url.p);
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.p, css_cases[_i][1]);
    buf_free(&out);
}
END_TEST

/* ---- modes ---- */

static const struct {
    const char *doctype;
    enum page_mode mode;
} modes[] = {
    {"", PAGE_QUIRKS},
    {"DOCTYPE html", PAGE_NO_QUIRKS},
    {"doctype HTML ", PAGE_NO_QUIRKS},
    {"DOCTYPE html SYSTEM \"about:legacy-compat\"", PAGE_NO_QUIRKS},
    {"DOCTYPE html SYSTEM 'http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd'",
     PAGE_QUIRKS},
    {"DOCTYPE html foo", PAGE_QUIRKS},
    {"DOCTYPE", PAGE_QUIRKS},
    {"DOCTYPE svg", PAGE_QUIRKS},
    {"DOCTYPE html PUBLIC", PAGE_QUIRKS},
    {"DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN", PAGE_QUIRKS},
    {"DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\"",
     PAGE_NO_QUIRKS},
    {"DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\" "
     "\"http://www.w3.org/TR/html4/loose.dtd\"",
     PAGE_LIMITED_QUIRKS},
    {"DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\"", PAGE_QUIRKS},
    {"DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.0 Transitional//EN\"", PAGE_QUIRKS},
    {"DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\"", PAGE_QUIRKS},
    {"DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \"x\"", PAGE_LIMITED_QUIRKS},
    {"DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\"", PAGE_NO_QUIRKS},
    {"DOCTYPE html PUBLIC \"HTML\"", PAGE_QUIRKS},
};

START_TEST(a_doctype_sets_the_mode_by_the_html_standard)
{
    ck_assert_msg(page_mode_of(str_of(modes[_i].doctype)) == modes[_i].mode, "%s",
                  modes[_i].doctype);
}
END_TEST

/* ---- facts ---- */

static struct page page;

static enum page_status read_page(const char *html)
{
    return page_read(&page, str_of(html), 1000);
}

static const struct page_element *first(enum page_tag tag)
{
    size_t at = 0;
    const struct page_element *e = page_next(&page, tag, &at);
    ck_assert_ptr_nonnull(e);
    return e;
}

START_TEST(elements_keep_attributes_text_and_position)
{
    ck_assert_int_eq(read_page("<!DOCTYPE html><html lang=en><head><title> A &amp; <b>B</b>\n "
                               "C</title><LINK REL=icon HREF=\"/f?a=1&amp;b=2\"></head>"
                               "<body><svg><title>no</title><image href=x></svg><h1>One <a href=# "
                               "Hidden>two</a>\n three</h1><p lang=de><img alt>"
                               "<picture><source srcset=s><img src=i></picture><video><source "
                               "src=v></video></p><a>late</a></body></html>"),
                     PAGE_OK);
    ck_assert(str_eq(first(TAG_TITLE)->text, STR("A & <b>B</b> C")));
    ck_assert_uint_eq(first(TAG_TITLE)->flags, ELEMENT_IN_HEAD);
    ck_assert(str_eq(page_value(first(TAG_LINK), "href"), STR("/f?a=1&b=2")));
    ck_assert(str_eq(first(TAG_H1)->text, STR("One two three")));
    ck_assert(str_eq(first(TAG_A)->text, STR("two")));
    struct str value;
    ck_assert(page_attribute(first(TAG_A), "hidden", &value));
    ck_assert_ptr_null(value.p);
    ck_assert(!page_attribute(first(TAG_A), "rel", &value));
    ck_assert(str_eq(first(TAG_A)->lang, STR("en")));
    ck_assert(str_eq(first(TAG_IMG)->lang, STR("de")));
    ck_assert_uint_eq(first(TAG_SVG_IMAGE)->flags, ELEMENT_IN_SVG);
    size_t at = 0;
    page_next(&page, TAG_TITLE, &at);
    ck_assert_uint_eq(page_next(&page, TAG_TITLE, &at)->flags, ELEMENT_IN_SVG);
    ck_assert_uint_eq(first(TAG_SOURCE)->flags, ELEMENT_IN_PICTURE);
    page_free(&page);
}
END_TEST

START_TEST(text_is_the_visible_text)
{
    ck_assert_int_eq(read_page("<title>no</title><style>no</style><body>One<b>half</"
                               "b><p>two<script>no</script></p><noscript>no</noscript>"
                               "<template><p>no</p><h1>no</h1></"
                               "template><ul><li>three<li>fo&uuml;r</ul><!-- no -->&lt;five"),
                     PAGE_OK);
    struct str words[] = {STR("Onehalf"), STR("two"), STR("three"), STR("fo\xC3\xBCr"),
                          STR("five")};
    struct str rest = buf_view(&page.text), word;
    for (int i = 0; i < COUNT(words); i++) {
        ck_assert(text_word(&rest, &word));
        ck_assert_msg(str_eq(word, words[i]), "%.*s", (int)word.n, word.p);
    }
    ck_assert(!text_word(&rest, &word));
    size_t at = 0;
    ck_assert_ptr_null(page_next(&page, TAG_H1, &at));
    page_free(&page);
}
END_TEST

/* html, the words of its text */
static const char *const text_cases[][2] = {
    {"just text", "just text"},
    {"<html><body><p>a</p></body></html>b<p>c</p>d", "a b c d"},
    {"</html>a</body>b", "ab"},
    {"<p>a</p></p></div></body><p>b", "a b"},
    {"one</p>two</br>three", "one two three"},
    {"</div>a</i></p><b>b</b>", "a b"},
    {"</div></body></html><html><head></head><body>a", "a"},
    {"a</div>b</p>c", "ab c"},
    {"<table>a<tr>b<td>c</td>d</table>e", "a b c d e"},
    {"<select>a<option>b<option>c</select>d", "a b c d"},
    {"<b>a</b><i>b</i> <u>c</u>\n<s>d</s>", "ab c d"},
    {"<b>a</b> <template>x<b>y</b></template>b", "a b"},
    {"<b>a</b> <script>x</script> <!-- y --> <b>b</b>", "a b"},
    {"<head><title>x</title>a</head>b<title>y</title>c", "a b c"},
    {"<head>\n<meta a>\n</head>\n<body>\na", "a"},
    {"<svg><title>a</title><text>b</text></svg>c", "b c"},
    {"<noscript>x</noscript>a<iframe>y</iframe>b", "a b"},
    {"<xmp>a <b>c</b></xmp>d", "a b c b d"},
    {"a<plaintext>b</plaintext>c", "a b plaintext c"},
    {"<textarea>a<p>b</textarea>c", "a p b c"},
    {"<pre>\n\na\n</pre>b", "a b"},
    {"<p>caf&eacute; fish&amp;chips x&#x2014;y", "caf\xC3\xA9 fish chips x y"},
    {"<frameset><frame src=a><noframes>x</noframes></frameset>a", "a"},
    {"<style>x</style>a<style>&lt;!--A--&gt;<!--A--></style>b", "a b"},
    {"<script type=application/ld+json>\"<!--A-->\"</script>a b", "a b"},
    {"<p>a<!doctype html>b<!DOCTYPE x [<!ENTITY y 'z'>]>c", "ab c"},
    {"<![CDATA[x]]>a<?xml b?>c", "ac"},
};

START_TEST(no_text_is_lost_in_any_position)
{
    struct buf out = {0};
    ck_assert_int_eq(read_page(text_cases[_i][0]), PAGE_OK);
    for (struct str rest = buf_view(&page.text), word; text_word(&rest, &word);)
        buf_printf(&out, "%s%.*s", out.n > 0 ? " " : "", (int)word.n, word.p);
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.p, text_cases[_i][1]);
    buf_free(&out);
    page_free(&page);
}
END_TEST

/* html, its elements in the head */
static const char *const head_cases[][2] = {
    {"<title>a</title><link a><p><link b>", "title link"},
    {"<html><head><meta a></head><meta b><body><meta c>", "html head meta meta"},
    {"<head><noscript><meta x></noscript><meta a><div></div><meta b></head>", "head meta"},
    {"<meta a>text<meta b>", "meta"},
    {"<meta a><x-b></x-b><meta c>", "meta"},
    {"<header><link a></header>", ""},
    {"<head><template><p>x</p></template><link a></head>", "head link"},
    {"<head><script>x</script><style>y</style><base a><link b>", "head script style base link"},
    {"<!-- a --> \n<head><svg></svg><link a></head>", "head"},
};

START_TEST(the_head_ends_as_in_browsers)
{
    struct buf out = {0};
    ck_assert_int_eq(read_page(head_cases[_i][0]), PAGE_OK);
    for (size_t i = 0; i < page.count; i++)
        if ((page.elements[i]->flags & ELEMENT_IN_HEAD) != 0 &&
            strstr(head_cases[_i][0], page.elements[i]->name) != NULL)
            buf_printf(&out, "%s%s", out.n > 0 ? " " : "", page.elements[i]->name);
    buf_add(&out, "", 1);
    struct str got = text_trim(str_of(out.p)), wanted = str_of(head_cases[_i][1]);
    ck_assert_msg(str_eq(got, wanted), "%s: %s", head_cases[_i][0], out.p);
    buf_free(&out);
    page_free(&page);
}
END_TEST

START_TEST(a_link_has_the_language_of_its_text)
{
    static const char *const links[][2] = {
        {"<html lang=en><a>x</a>", "en"},
        {"<html lang=en><a lang=de>x</a>", "de"},
        {"<html lang=en><a><b lang=de>x</b></a>", "de"},
        {"<html lang=en><a><b>x</b><b lang=de>y</b></a>", ""},
        {"<html lang=en><a><b lang=de-AT>x</b><b lang=de-CH>y</b></a>", "de-AT"},
        {"<a>x</a>", ""},
        {"<div lang=fr><p>x</div><a>y</a>", ""},
    };
    for (int i = 0; i < COUNT(links); i++) {
        ck_assert_int_eq(read_page(links[i][0]), PAGE_OK);
        struct str lang = first(TAG_A)->lang;
        ck_assert_msg(str_eq(lang, str_of(links[i][1])), "%s: %.*s", links[i][0], (int)lang.n,
                      lang.p);
        page_free(&page);
    }
}
END_TEST

START_TEST(elements_depth_styles_and_obsolete_tags_are_counted)
{
    ck_assert_int_eq(read_page("<html><body><div style='a:b'><p "
                               "style=c><font>x</font><u>y</u><center></center></div>"),
                     PAGE_OK);
    ck_assert_uint_eq(page.element_count, 7);
    ck_assert_uint_eq(page.depth, 5);
    ck_assert_uint_eq(page.style_attributes, 2);
    ck_assert(str_eq(page.style_samples[0], STR("<div style=\"a:b\">")));
    size_t old = 0;
    for (unsigned i = 0; i < PAGE_DEPRECATED_COUNT; i++)
        old += page.deprecated[i];
    ck_assert_uint_eq(old, 3);
    page_free(&page);
}
END_TEST

START_TEST(language_tags_have_a_registered_language)
{
    static const char *const known[] = {"en",  "EN",  "en-US", "de-CH-1996", "zh-Hant-TW", "haw",
                                        "gsw", "yue", "qaa",   "iw",         "sr-Latn"};
    static const char *const unknown[] = {
        "",    "x-default", "i-klingon", "e",   "xx",  "english",          "eng", "en_US",
        "en-", "-en",       "en--US",    "zzz", "123", "de-toolongsubtag", "qzz", " "};
    for (int i = 0; i < COUNT(known); i++)
        ck_assert_msg(language_is_known(str_of(known[i])), "%s", known[i]);
    for (int i = 0; i < COUNT(unknown); i++)
        ck_assert_msg(!language_is_known(str_of(unknown[i])), "%s", unknown[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_page");
    TCase *t = tcase_create("page");
    tcase_add_loop_test(t, the_parser_reads_markup_as_browsers_do, 0, COUNT(scan_cases));
    tcase_add_test(t, a_mark_finds_its_run_after_other_marks_are_lost);
    tcase_add_loop_test(t, character_references_decode_as_in_browsers, 0, COUNT(decode_cases));
    tcase_add_test(t, a_tag_is_cut_between_attributes_at_64_kib);
    tcase_add_loop_test(t, urls_are_extracted_from_css, 0, COUNT(css_cases));
    tcase_add_loop_test(t, a_doctype_sets_the_mode_by_the_html_standard, 0, COUNT(modes));
    tcase_add_test(t, elements_keep_attributes_text_and_position);
    tcase_add_test(t, text_is_the_visible_text);
    tcase_add_loop_test(t, no_text_is_lost_in_any_position, 0, COUNT(text_cases));
    tcase_add_loop_test(t, the_head_ends_as_in_browsers, 0, COUNT(head_cases));
    tcase_add_test(t, a_link_has_the_language_of_its_text);
    tcase_add_test(t, elements_depth_styles_and_obsolete_tags_are_counted);
    tcase_add_test(t, language_tags_have_a_registered_language);
    suite_add_tcase(s, t);
    return suite_run(s);
}
