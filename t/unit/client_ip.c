/* The client's address from X-Forwarded-For: only addresses written by trusted proxies count. */
#include "core/http/client_ip.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define PEER "192.0.2.1" /* the proxy that connects: the result when nothing better is known */

static struct cidr nets[3];
static const struct cidr_list trusted = {nets, 3};

static void begin(void)
{
    ck_assert(cidr_parse("192.0.2.0/24", &nets[0]) && cidr_parse("10.0.0.0/8", &nets[1]) &&
              cidr_parse("2001:db8:ffff::/48", &nets[2]));
}

/*
 * Columns: the header line; the client; whether the whole line was trusted, so that the line before
 * it counts.
 */
static const struct {
    const char *line, *client;
    bool all_trusted;
} lines[] = {
    {"198.51.100.7", "198.51.100.7", false},
    {" \t198.51.100.7 \t", "198.51.100.7", false},
    /* the caller controls the left end */
    {"1.1.1.1, 198.51.100.7", "198.51.100.7", false},
    {"1.1.1.1,2.2.2.2,3.3.3.3,198.51.100.7", "198.51.100.7", false},
    {"127.0.0.1, 198.51.100.7", "198.51.100.7", false},
    {"10.9.9.9, 198.51.100.7, 10.1.2.3", "198.51.100.7", false},
    {"1.1.1.1, 198.51.100.7, 10.1.2.3, 192.0.2.9", "198.51.100.7", false},
    {"10.1.2.3", "10.1.2.3", true},
    {"10.1.2.3, 192.0.2.9", "10.1.2.3", true},
    /* ports, as Azure's gateways write them: a new connection gets no new budget */
    {"198.51.100.7:50001", "198.51.100.7", false},
    {"198.51.100.7:1", "198.51.100.7", false},
    {"[2001:db8::7]:50001", "2001:db8::7", false},
    {"[2001:db8::7]", "2001:db8::7", false},
    {"1.1.1.1, 198.51.100.7:4711, 10.1.2.3:80", "198.51.100.7", false},
    /* one address in any spelling */
    {"::ffff:198.51.100.7", "198.51.100.7", false},
    {"::ffff:c633:6407", "198.51.100.7", false},
    {"0:0:0:0:0:FFFF:C633:6407", "198.51.100.7", false},
    {"[::ffff:198.51.100.7]:80", "198.51.100.7", false},
    {"2001:DB8::7", "2001:db8::7", false},
    {"2001:0db8:0000:0000:0000:0000:0000:0007", "2001:db8::7", false},
    {"2001:db8::198.51.100.7", "2001:db8::c633:6407", false},
    {"::ffff:10.1.2.3", "10.1.2.3", true},
    {"2001:db8:ffff::1", "2001:db8:ffff::1", true},
    /* a malformed address ends the parsing: everything left of it is ignored */
    {"198.51.100.7, unknown", PEER, false},
    {"198.51.100.7, _hidden", PEER, false},
    {"198.51.100.7, ", PEER, false},
    {"198.51.100.7,", PEER, false},
    {",", PEER, false},
    {"", PEER, false},
    {"   ", PEER, false},
    {"198.51.100.7, ,10.1.2.3", "10.1.2.3", false},
    {"198.51.100.7 10.1.2.3", PEER, false},
    {"198.51.100.7;10.1.2.3", PEER, false},
    {"for=198.51.100.7", PEER, false},
    {"\"198.51.100.7\"", PEER, false},
    {"localhost", PEER, false},
    {"198.51.100.007", PEER, false},
    {"0306.063.0144.07", PEER, false},
    {"0xc6.0x33.0x64.0x7", PEER, false},
    {"3325256711", PEER, false},
    {"198.51.25607", PEER, false},
    {"198.51.100.256", PEER, false},
    {"198.51.100.7.1", PEER, false},
    {"198.51.100.7/32", PEER, false},
    {"+198.51.100.7", PEER, false},
    {"198.51.100.7:", PEER, false},
    {"198.51.100.7:80x", PEER, false},
    {"198.51.100.7:123456", PEER, false},
    {"[198.51.100.7]:80", PEER, false},
    {"[2001:db8::7", PEER, false},
    {"[2001:db8::7]80", PEER, false},
    {"[2001:db8::7]:", PEER, false},
    {"[2001:db8::7]:80:80", PEER, false},
    {"2001:db8::7]", PEER, false},
    {"[]", PEER, false},
    {"fe80::1%eth0", PEER, false},
    {"[fe80::1%25eth0]:80", PEER, false},
    {"2001:db8::7::1", PEER, false},
    {"2001:db8::198.51.100.007", PEER, false},
    {"1111:2222:3333:4444:5555:6666:255.255.255.2551", PEER, false},
    {"::ffff:198.51.100.7:80", PEER, false},
};

START_TEST(the_client_is_the_rightmost_address_that_is_no_proxy)
{
    struct ip ip;
    char text[INET6_ADDRSTRLEN];
    ck_assert(ip_parse(PEER, &ip));
    ck_assert_msg(client_right_most(&trusted, str_of(lines[_i].line), &ip) == lines[_i].all_trusted,
                  "%s", lines[_i].line);
    ip_text(&ip, text);
    ck_assert_msg(strcmp(text, lines[_i].client) == 0, "\"%s\": %s, not %s", lines[_i].line, text,
                  lines[_i].client);
}
END_TEST

START_TEST(a_nul_does_not_end_the_header)
{
    struct ip ip;
    char text[INET6_ADDRSTRLEN];
    ck_assert(ip_parse(PEER, &ip));
    ck_assert(!client_right_most(&trusted, STR("198.51.100.7\0:80"), &ip));
    ip_text(&ip, text);
    ck_assert_str_eq(text, PEER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client_ip");
    TCase *tcase = tcase_create("client_ip");
    tcase_add_checked_fixture(tcase, begin, NULL);
    tcase_add_loop_test(tcase, the_client_is_the_rightmost_address_that_is_no_proxy, 0,
                        (int)(sizeof(lines) / sizeof(lines[0])));
    tcase_add_test(tcase, a_nul_does_not_end_the_header);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
