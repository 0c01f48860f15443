/* Charsets of pages: which one is used, and the text as UTF-8. */
#include "core/audit/charset_internal.h"
#include "core/audit/text.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define FFFD "\xEF\xBF\xBD"

/* ---- charsets: body, Content-Type, the charset found and where, the text as UTF-8 ---- */

static const struct {
    struct str body;
    const char *type, *name;
    enum charset_source source;
    bool known;
    const char *utf8;
} charset_cases[] = {
    {{"\xEF\xBB\xBF\xC3\xA4", 5},
     "text/html; charset=iso-8859-1",
     "utf-8",
     CHARSET_BOM,
     true,
     "\xC3\xA4"},
    {{"\xFE\xFF\0a\0\xE4", 6}, "", "utf-16be", CHARSET_BOM, true, "a\xC3\xA4"},
    {{"\xFF\xFE"
      "a\0\xE4\0",
      6},
     "",
     "utf-16le",
     CHARSET_BOM,
     true,
     "a\xC3\xA4"},
    {{"\xE4", 1}, "text/html; charset=ISO-8859-1", "iso-8859-1", CHARSET_HEADER, true, "\xC3\xA4"},
    {{"\x80", 1},
     "text/html;charset=\"iso-8859-1\"",
     "iso-8859-1",
     CHARSET_HEADER,
     true,
     "\xE2\x82\xAC"},
    {{"\x83\x52", 2},
     "text/html; charset=shift_jis",
     "shift_jis",
     CHARSET_HEADER,
     true,
     "\xE3\x82\xB3"},
    {{"\xB0\xA1", 2}, "text/html; charset=EUC-KR", "euc-kr", CHARSET_HEADER, true, "\xEA\xB0\x80"},
    {{"\xE4", 1},
     "text/html; charset=windows-1251",
     "windows-1251",
     CHARSET_HEADER,
     true,
     "\xD0\xB4"},
    {{"\xE4", 1},
     "text/html; charset=no-such-set",
     "no-such-set",
     CHARSET_HEADER,
     false,
     "\xC3\xA4"},
    {{"\xE4", 1},
     "text/html; charset=utf-8//IGNORE",
     "windows-1252",
     CHARSET_DEFAULT,
     true,
     "\xC3\xA4"},
    {{"\xE4", 1}, "text/html; charset=", "windows-1252", CHARSET_DEFAULT, true, "\xC3\xA4"},
    {{"\xE4", 1}, "", "windows-1252", CHARSET_DEFAULT, true, "\xC3\xA4"},
    {{"<meta charset=utf-8>\xC3\xA4", 22},
     "",
     "utf-8",
     CHARSET_META,
     true,
     "<meta charset=utf-8>\xC3\xA4"},
    {{"<META content='text/html; charset=koi8-r' http-equiv=Content-Type>", 66},
     "text/html",
     "koi8-r",
     CHARSET_META,
     true,
     "<META content='text/html; charset=koi8-r' http-equiv=Content-Type>"},
    {{"<!-- <meta charset=koi8-r> -->", 30},
     "",
     "windows-1252",
     CHARSET_DEFAULT,
     true,
     "<!-- <meta charset=koi8-r> -->"},
    {{"<meta name=x content='charset=koi8-r'>", 38},
     "",
     "windows-1252",
     CHARSET_DEFAULT,
     true,
     "<meta name=x content='charset=koi8-r'>"},
    {{"<meta charset=utf-16>", 21}, "", "utf-8", CHARSET_META, true, "<meta charset=utf-16>"},
    {{"a\0b", 3}, "text/html; charset=utf-8", "utf-8", CHARSET_HEADER, true, "a" FFFD "b"},
    {{"a\0b", 3},
     "text/html; charset=windows-1252",
     "windows-1252",
     CHARSET_HEADER,
     true,
     "a" FFFD "b"},
    {{"a\xC0\x80"
      "b\xED\xA0\x80"
      "c\xF5\x80",
      10},
     "text/html; charset=utf-8",
     "utf-8",
     CHARSET_HEADER,
     true,
     "a" FFFD FFFD "b" FFFD FFFD FFFD "c" FFFD FFFD},
    {{"\x93\xFA\x96\x7B", 4},
     "text/html; charset=x-sjis",
     "x-sjis",
     CHARSET_HEADER,
     true,
     "\xE6\x97\xA5\xE6\x9C\xAC"},
    {{"\xC6\xFC\xCB\xDC", 4},
     "text/html; charset=EUC-JP",
     "euc-jp",
     CHARSET_HEADER,
     true,
     "\xE6\x97\xA5\xE6\x9C\xAC"},
    {{"\x1B$BF|K\\\x1B(B.", 11},
     "text/html; charset=iso-2022-jp",
     "iso-2022-jp",
     CHARSET_HEADER,
     true,
     "\xE6\x97\xA5\xE6\x9C\xAC."},
    {{"\xD6\xD0\xB9\xFA", 4},
     "text/html; charset=GBK",
     "gbk",
     CHARSET_HEADER,
     true,
     "\xE4\xB8\xAD\xE5\x9B\xBD"},
    {{"\xD6\xD0\xB9\xFA", 4},
     "text/html; charset=gb2312",
     "gb2312",
     CHARSET_HEADER,
     true,
     "\xE4\xB8\xAD\xE5\x9B\xBD"},
    {{"\xA4\xA4\xB0\xEA", 4},
     "text/html; charset=big5",
     "big5",
     CHARSET_HEADER,
     true,
     "\xE4\xB8\xAD\xE5\x9C\x8B"},
    {{"\xB1\xEA", 2},
     "text/html; charset=iso-8859-2",
     "iso-8859-2",
     CHARSET_HEADER,
     true,
     "\xC4\x85\xC4\x99"},
    {{"\xA4", 1},
     "text/html; charset=ISO_8859-15",
     "iso_8859-15",
     CHARSET_HEADER,
     true,
     "\xE2\x82\xAC"},
    {{"\xB9", 1},
     "text/html; charset=windows-1250",
     "windows-1250",
     CHARSET_HEADER,
     true,
     "\xC4\x85"},
    {{"\xF0\xC1", 2},
     "text/html; charset=koi8-r",
     "koi8-r",
     CHARSET_HEADER,
     true,
     "\xD0\x9F\xD0\xB0"},
    {{"a\0\xE4\0", 4}, "text/html; charset=utf-16", "utf-16", CHARSET_HEADER, true, "a\xC3\xA4"},
    {{"+AOQ-", 5}, "text/html; charset=utf-7", "utf-7", CHARSET_HEADER, false, "+AOQ-"},
    {{"<meta charset=utf-8>\xC3\xA4", 22},
     "text/html; charset=klingon",
     "utf-8",
     CHARSET_META,
     true,
     "<meta charset=utf-8>\xC3\xA4"},
    {{"\x83", 1}, "text/html; charset=shift_jis", "shift_jis", CHARSET_HEADER, true, FFFD},
    {{"", 0}, "", "windows-1252", CHARSET_DEFAULT, true, ""},
};

START_TEST(bytes_are_decoded_as_browsers_decode_them)
{
    struct charset charset;
    struct buf out = {0};
    charset_find(charset_cases[_i].body, str_of(charset_cases[_i].type), &charset);
    ck_assert_str_eq(charset.name, charset_cases[_i].name);
    ck_assert_int_eq(charset.source, charset_cases[_i].source);
    ck_assert_int_eq(charset.known, charset_cases[_i].known);
    ck_assert(charset_to_utf8(&charset, charset_cases[_i].body, &out));
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.p, charset_cases[_i].utf8);
    buf_free(&out);
}
END_TEST

START_TEST(a_meta_charset_counts_only_within_1024_bytes)
{
    char body[1200];
    struct charset charset;
    memset(body, ' ', sizeof(body));
    memcpy(body + 1000, "<meta charset=utf-8>", 20);
    charset_find((struct str){body, sizeof(body)}, STR(""), &charset);
    ck_assert_int_eq(charset.source, CHARSET_META);
    memset(body, ' ', sizeof(body));
    memcpy(body + 1010, "<meta charset=utf-8>", 20);
    charset_find((struct str){body, sizeof(body)}, STR(""), &charset);
    ck_assert_int_eq(charset.source, CHARSET_DEFAULT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_charset");
    TCase *t = tcase_create("charset");
    tcase_add_loop_test(t, bytes_are_decoded_as_browsers_decode_them, 0, COUNT(charset_cases));
    tcase_add_test(t, a_meta_charset_counts_only_within_1024_bytes);
    suite_add_tcase(s, t);
    return suite_run(s);
}
