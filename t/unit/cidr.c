/* Addresses and networks in CIDR notation. */
#include "core/base/cidr.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct ip ip(const char *text)
{
    struct ip out;
    ck_assert_msg(ip_parse(text, &out), "%s", text);
    return out;
}

static struct cidr cidr(const char *text)
{
    struct cidr out;
    ck_assert_msg(cidr_parse(text, &out), "%s", text);
    return out;
}

static const struct {
    const char *a, *b;
} same[] = {
    {"1.2.3.4", "::ffff:1.2.3.4"},
    {"1.2.3.4", "::ffff:102:304"},
    {"2001:db8::1", "2001:DB8:0:0:0:0:0:1"},
    {"255.255.255.255", "::ffff:ffff:ffff"},
};

START_TEST(spellings_of_one_address_are_equal)
{
    struct ip a = ip(same[_i].a), b = ip(same[_i].b);
    ck_assert_mem_eq(a.b, b.b, sizeof(a.b));
}
END_TEST

static const char *const no_address[] = {
    "",         " ",        "1.2.3",        "1.2.3.4.5",  "1.2.3.256", "01.2.3.4",     "0x1.2.3.4",
    "1.2.3.4 ", " 1.2.3.4", "16909060",     "1.2.3.4:80", "[::1]",     "fe80::1%eth0", ":::",
    "1::2::3",  "12345::",  "::ffff:1.2.3", "localhost",
};

START_TEST(malformed_address_is_refused)
{
    struct ip out;
    ck_assert_msg(!ip_parse(no_address[_i], &out), "%s", no_address[_i]);
}
END_TEST

static const struct {
    const char *net, *ip;
    bool in;
} members[] = {
    {"10.0.0.0/8", "10.255.255.255", true},
    {"10.0.0.0/8", "11.0.0.0", false},
    {"10.0.0.0/8", "::ffff:10.1.2.3", true},
    {"10.0.0.0/8", "a00::", false},
    {"192.168.1.128/25", "192.168.1.127", false},
    {"192.168.1.128/25", "192.168.1.128", true},
    {"172.16.0.0/12", "172.31.255.255", true},
    {"172.16.0.0/12", "172.32.0.0", false},
    {"0.0.0.0/0", "1.2.3.4", true},
    {"0.0.0.0/0", "::1", false},
    {"::/0", "2001:db8::1", true},
    {"::/0", "1.2.3.4", false},
    {"::ffff:0:0/96", "1.2.3.4", true},
    {"1.2.3.4", "1.2.3.4", true},
    {"1.2.3.4", "1.2.3.5", false},
    {"2001:db8::/32", "2001:db8:ffff::1", true},
    {"2001:db8::/32", "2001:db9::", false},
    {"fe80::/10", "febf::1", true},
    {"fe80::/10", "fec0::1", false},
    {"::1", "::1", true},
    {"2001:db8::8000/113", "2001:db8::7fff", false},
    {"2001:db8::8000/113", "2001:db8::ffff", true},
};

START_TEST(a_network_contains_just_its_addresses)
{
    struct cidr net = cidr(members[_i].net);
    struct ip address = ip(members[_i].ip);
    ck_assert_msg(cidr_has(&net, &address) == members[_i].in, "%s in %s", members[_i].ip,
                  members[_i].net);
}
END_TEST

static const char *const no_network[] = {
    "10.0.0.1/8",     "10.0.0.0/33",
    "10.0.0.0/",      "/8",
    "10.0.0.0/08",    "10.0.0.0/+8",
    "10.0.0.0/-1",    "10.0.0.0/8/8",
    "10.0.0.0/8x",    "10/8",
    "2001:db8::1/32", "::/129",
    "::/1000",        "",
    "10.0.0.0 /8",
};

START_TEST(malformed_network_is_refused)
{
    struct cidr out;
    ck_assert_msg(!cidr_parse(no_network[_i], &out), "%s", no_network[_i]);
}
END_TEST

START_TEST(a_list_contains_the_addresses_of_its_networks)
{
    struct cidr items[] = {cidr("10.0.0.0/8"), cidr("2001:db8::/32")};
    struct cidr_list list = {items, 2}, empty = {NULL, 0};
    struct ip v4 = ip("10.0.0.1"), v6 = ip("2001:db8::1"), other = ip("11.0.0.1");
    ck_assert(cidr_list_has(&list, &v4));
    ck_assert(cidr_list_has(&list, &v6));
    ck_assert(!cidr_list_has(&list, &other));
    ck_assert(!cidr_list_has(&empty, &v4));
}
END_TEST

START_TEST(socket_addresses_convert_to_the_same_bits)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x01020304)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr un = {.sa_family = AF_UNIX};
    struct ip expected = ip("1.2.3.4"), a, b;
    memcpy(&in6.sin6_addr, expected.b, 16);
    ck_assert(ip_of((const struct sockaddr *)&in, &a));
    ck_assert(ip_of((const struct sockaddr *)&in6, &b));
    ck_assert_mem_eq(a.b, expected.b, 16);
    ck_assert_mem_eq(b.b, expected.b, 16);
    ck_assert(ip_is_v4(&a));
    ck_assert(!ip_of(&un, &a));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("cidr");
    TCase *tcase = tcase_create("cidr");
    tcase_add_loop_test(tcase, spellings_of_one_address_are_equal, 0, COUNT(same));
    tcase_add_loop_test(tcase, malformed_address_is_refused, 0, COUNT(no_address));
    tcase_add_loop_test(tcase, a_network_contains_just_its_addresses, 0, COUNT(members));
    tcase_add_loop_test(tcase, malformed_network_is_refused, 0, COUNT(no_network));
    tcase_add_test(tcase, a_list_contains_the_addresses_of_its_networks);
    tcase_add_test(tcase, socket_addresses_convert_to_the_same_bits);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
