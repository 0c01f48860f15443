/*
 * The PROXY protocol header: its recognition, its end, and the address in it. See HAProxy's
 * doc/proxy-protocol.txt.
 */
#include "core/conn/proxy_protocol.h"

#include "core/base/cidr.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc6\x33\x64\x07\xc0\x00\x02\x01\x12\x34\x00\x50"
#define V6                                                                                         \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"                                                   \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"                                                   \
    "\x12\x34\x00\x50"
#define TLV                                                                                        \
    "\x03\0\x04"                                                                                   \
    "abcd"
#define BYTES(literal) (literal), sizeof(literal) - 1

/* Columns: the header, the following bytes; the client in it, "" if none. */
static const struct {
    const char *bytes;
    size_t size;
    const char *client;
} good[] = {
    {BYTES("PROXY TCP4 198.51.100.7 192.0.2.1 4660 80\r\n"), "198.51.100.7"},
    {BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255"},
    {BYTES("PROXY TCP4 198.51.100.7 192.0.2.1 0 0\r\n"), "198.51.100.7"},
    {BYTES("PROXY TCP6 2001:db8::7 2001:db8::1 4660 80\r\n"), "2001:db8::7"},
    {BYTES("PROXY TCP6 ::ffff:198.51.100.7 ::1 4660 80\r\n"), "198.51.100.7"},
    {BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {BYTES("PROXY UNKNOWN\r\n"), ""},
    {BYTES("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), ""},
    {BYTES("PROXY UNKNOWN whatever else\r\n"), ""},
    {BYTES(SIGNATURE "\x21\x11\0\x0c" V4), "198.51.100.7"},
    {BYTES(SIGNATURE "\x21\x11\0\x13" V4 TLV), "198.51.100.7"},
    {BYTES(SIGNATURE "\x21\x21\0\x24" V6), "2001:db8::7"},
    {BYTES(SIGNATURE "\x21\x21\0\x2b" V6 TLV), "2001:db8::7"},
    {BYTES(SIGNATURE "\x20\0\0\0"), ""},
    {BYTES(SIGNATURE "\x20\x11\0\x0c" V4), ""}, /* LOCAL, with any addresses */
    {BYTES(SIGNATURE "\x20\x21\0\x07" TLV), ""},
    {BYTES(SIGNATURE "\x21\0\0\0"), ""},
    {BYTES(SIGNATURE "\x21\0\0\x07" TLV), ""},
};

static const char *client_of(const struct proxy_header *header)
{
    static char text[INET6_ADDRSTRLEN];
    struct ip ip;
    if (!ip_of((const struct sockaddr *)&header->client, &ip))
        return "";
    ip_text(&ip, text);
    return text;
}

START_TEST(a_header_is_parsed_to_its_end_and_names_the_client)
{
    static const char *const following[] = {"", "GET / HTTP/1.1\r\n\r\n",
                                            "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n", SIGNATURE};
    for (int i = 0; i < COUNT(following); i++) {
        char bytes[600];
        struct proxy_header header;
        memcpy(bytes, good[_i].bytes, good[_i].size);
        memcpy(bytes + good[_i].size, following[i], strlen(following[i]));
        ck_assert_int_eq(
            proxy_header_parse((uint8_t *)bytes, good[_i].size + strlen(following[i]), &header),
            PROXY_WHOLE);
        ck_assert_uint_eq(header.size, good[_i].size);
        ck_assert_str_eq(client_of(&header), good[_i].client);
    }
}
END_TEST

START_TEST(every_partial_header_waits_for_more)
{
    for (size_t n = 1; n < good[_i].size; n++) {
        uint8_t *exact = malloc(n); /* no byte after it is read: sanitizers detect it */
        struct proxy_header header;
        memcpy(exact, good[_i].bytes, n);
        ck_assert_msg(proxy_header_parse(exact, n, &header) == PROXY_MORE, "%zu bytes", n);
        free(exact);
    }
}
END_TEST

START_TEST(a_unix_socket_header_is_skipped)
{
    char bytes[16 + 216] = SIGNATURE "\x21\x31\0\xd8"
                                     "/run/a.sock";
    struct proxy_header header;
    ck_assert_int_eq(proxy_header_parse((uint8_t *)bytes, sizeof(bytes) - 1, &header), PROXY_MORE);
    ck_assert_int_eq(proxy_header_parse((uint8_t *)bytes, sizeof(bytes), &header), PROXY_WHOLE);
    ck_assert_uint_eq(header.size, sizeof(bytes));
    ck_assert_str_eq(client_of(&header), "");
}
END_TEST

START_TEST(the_largest_header_is_accepted_and_a_larger_refused)
{
    uint8_t bytes[PROXY_HEADER_MAX + 1] = SIGNATURE "\x21\x11\x02\x08" V4;
    struct proxy_header header;
    ck_assert_int_eq(proxy_header_parse(bytes, PROXY_HEADER_MAX, &header), PROXY_WHOLE);
    ck_assert_uint_eq(header.size, PROXY_HEADER_MAX);
    bytes[15]++;
    ck_assert_int_eq(proxy_header_parse(bytes, 16, &header), PROXY_WRONG);
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
} bad[] = {
    {BYTES("GET / HTTP/1.1\r\n")},
    {BYTES("G")},
    {BYTES("P R")},
    {BYTES("\x16\x03\x01")}, /* a TLS handshake */
    {BYTES("proxy TCP4 1.1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r \r\n")},
    {BYTES("PROXY  TCP4 1.1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1  1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1\r\n")},
    {BYTES("PROXY TCP4\r\n")},
    {BYTES("PROXY \r\n")},
    {BYTES("PROXY\r\n")},
    {BYTES("PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 01.1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.256 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 ::1 ::1 1 1\r\n")},
    {BYTES("PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP6 fe80::1%lo ::1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 01\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 -1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 123456 1\r\n")},
    {BYTES("PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1\0 1.1.1.1 1 1\r\n")},
    {BYTES("PROXY UNKNOWN\0\r\n")},
    {BYTES("PROXY UNKNOWN "
           "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
           "89012345\r\n")},
    {BYTES("PROXY UNKNOWN "
           "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
           "8901234567")},
    {BYTES("\r\n\r\nX")},
    {BYTES(SIGNATURE "\x11\x11\0\x0c" V4)}, /* version 1 in binary */
    {BYTES(SIGNATURE "\x31\x11\0\x0c" V4)}, /* version 3 */
    {BYTES(SIGNATURE "\x22\x11\0\x0c" V4)}, /* no such command */
    {BYTES(SIGNATURE "\x21\x11\0\x0b" V4)}, /* shorter than its addresses */
    {BYTES(SIGNATURE "\x21\x11\0\0")},
    {BYTES(SIGNATURE "\x21\x21\0\x23" V6)},
    {BYTES(SIGNATURE "\x21\x21\0\x0c" V4)},
    {BYTES(SIGNATURE "\x21\x12\0\x0c" V4)}, /* UDP */
    {BYTES(SIGNATURE "\x21\x41\0\x0c" V4)}, /* no such family */
    {BYTES(SIGNATURE "\x21\x31\0\x0c" V4)}, /* a Unix socket header has 216 bytes */
    {BYTES(SIGNATURE "\x21\x11\xff\xff" V4)},
    {BYTES(SIGNATURE "\x20\x11\xff\xff")},
};

START_TEST(any_other_header_is_refused)
{
    struct proxy_header header;
    ck_assert_int_eq(proxy_header_parse((const uint8_t *)bad[_i].bytes, bad[_i].size, &header),
                     PROXY_WRONG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proxy_protocol");
    TCase *tcase = tcase_create("proxy_protocol");
    tcase_add_loop_test(tcase, a_header_is_parsed_to_its_end_and_names_the_client, 0, COUNT(good));
    tcase_add_loop_test(tcase, every_partial_header_waits_for_more, 0, COUNT(good));
    tcase_add_test(tcase, a_unix_socket_header_is_skipped);
    tcase_add_test(tcase, the_largest_header_is_accepted_and_a_larger_refused);
    tcase_add_loop_test(tcase, any_other_header_is_refused, 0, COUNT(bad));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
