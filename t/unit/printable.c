/* Untrusted text for a log or a terminal: every code point of Unicode, and invalid bytes. */
#include "core/text/printable.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Unicode's Cc, Bidi_Control and the line separators, as the manual lists them. */
static bool must_be_escaped(uint32_t c)
{
    static const uint32_t others[] = {0x61c,  0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b,
                                      0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (c == others[i])
            return true;
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

START_TEST(each_code_point_is_printed_or_escaped)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char bytes[4], number[8];
        struct printable out;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = encode(c, bytes);
        printable_next((struct str){bytes, n}, &out);
        bool right = out.taken == n && out.code == c && out.as_itself != must_be_escaped(c);
        snprintf(number, sizeof(number), "\\u%04x", c & 0xffff);
        struct str wanted = must_be_escaped(c) ? str_of(number) : (struct str){bytes, n};
        /* an assertion for each of a million code points would take seconds */
        if (!right || !str_eq((struct str){out.shown, out.n}, wanted))
            ck_abort_msg("U+%04X", c);
    }
}
END_TEST

static const struct {
    const char *text, *printed;
} lines[] = {
    {"", ""},
    {"{\"a\":\"b\"}\n", "{\"a\":\"b\"}\n"},
    {"{\"a\":\"\xc2\x9b"
     "31m\"}\n",
     "{\"a\":\"\\u009b31m\"}\n"},
    {"{\"a\":\"x\xe2\x80\xae"
     "gpj.exe\"}\n{}\n",
     "{\"a\":\"x\\u202egpj.exe\"}\n{}\n"},
    {"a\x1b[m\xc2\x85\xe2\x80\xa8\xd8\x9c", "a\\u001b[m\\u0085\\u2028\\u061c"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\xff\xed\xa0\x80\xc0\x80\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf"
                                         "\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
};

START_TEST(a_line_is_escaped_from_where_it_begins)
{
    struct buf b = {0};
    buf_adds(&b, "\x1b");
    buf_adds(&b, lines[_i].text);
    printable_escape(&b, 1);
    ck_assert(buf_ok(&b));
    ck_assert_msg(b.p[0] == '\x1b' &&
                      str_eq((struct str){b.p + 1, b.n - 1}, str_of(lines[_i].printed)),
                  "%.*s", (int)b.n, b.p);
    buf_free(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("printable");
    TCase *tcase = tcase_create("printable");
    tcase_add_test(tcase, each_code_point_is_printed_or_escaped);
    tcase_add_loop_test(tcase, a_line_is_escaped_from_where_it_begins, 0,
                        sizeof(lines) / sizeof(lines[0]));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
