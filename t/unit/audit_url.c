/*
 * Plain URLs, which skip libcurl's parser: libcurl's parser accepts each one unchanged. The URLs
 * are generated, valid and nearly valid.
 */
#include "core/audit/audit.h"
#include "core/audit/guard_internal.h"
#include "core/audit/url.h"
#include "t/kit/suite.h"

#include <check.h>
#include <locale.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ONE_OF(array) ((array)[random_below(COUNT(array))])
/* sanitizers take ten times as long, and look for other errors */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GENERATED 8000
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GENERATED 8000
#endif
#ifndef GENERATED
#define GENERATED 40000
#endif

static struct cidr loopback;
static struct conf confs[] = {
    {.audit_ports = {80, 443}, .audit_ports_count = 2},
    {.audit_ports = {80, 8080}, .audit_ports_count = 2},
    {.audit_ports = {80, 443}, .audit_ports_count = 2, .audit_allow_private = {&loopback, 1}},
};

static uint64_t random_state;

/* The same URLs in each run: a xorshift generator with a seed per test. */
static size_t random_below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state >> 16) % n;
}

struct text {
    char p[4096];
    size_t n;
};

static void append(struct text *text, const char *piece)
{
    size_t n = strlen(piece);
    ck_assert_uint_lt(text->n + n, sizeof(text->p));
    memcpy(text->p + text->n, piece, n);
    text->n += n;
}

static void append_some(struct text *text, const char *bytes, size_t least, size_t most)
{
    for (size_t n = least + random_below(most - least + 1); n > 0; n--)
        append(text, (char[]){bytes[random_below(strlen(bytes))], '\0'});
}

static const char label_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
static const char target_bytes[] = "ABYZabyz0189////__~~!$&'()*+,;=:@?.-";

static void append_good_label(struct text *text)
{
    append_some(text, label_bytes, 1, random_below(20) == 0 ? 63 : 8);
}

static void generate_good(struct text *text)
{
    static const char *const prefixes[] = {"", "", "www.", "www.www.", "1.2.3.", "a-.", "-."};
    static const char *const ports[] = {"",   "",       "",       "",       ":8080", ":8080",
                                        ":1", ":65535", ":65536", ":080",   ":80",   ":443",
                                        ":0", ":",      ":99999", ":8080x", ":80800"};
    static const char *const tops[] = {"com",      "de", "x",  "local", "localhost",
                                       "internal", "c0", "f-", "x0",    "e9"};
    append(text, random_below(2) == 0 ? "http://" : "https://");
    append(text, ONE_OF(prefixes));
    for (size_t n = random_below(4); n > 0; n--) {
        append_good_label(text);
        append(text, ".");
    }
    append(text, ONE_OF(tops));
    append(text, ONE_OF(ports));
    append(text, "/");
    append_some(text, target_bytes, 0, random_below(10) == 0 ? 300 : 20);
}

static void generate_odd(struct text *text)
{
    static const char *const schemes[] = {"http://",  "https://", "HTTP://", "Https://", "http:/",
                                          "http:///", "http:",    "//",      "ftp://",   ""};
    static const char *const users[] = {"", "", "", "", "", "", "u@", "u:p@", "@"};
    static const char *const labels[] = {
        "a",   "xn--mller-kva", "XN--a",         "A",   "127",  "0x7f",      "017",    "", "a_b",
        "%61", "m\xC3\xBCller", "l\xC2\xADocal", "a b", "xn--", "localhost", "example"};
    static const char *const ports[] = {"",     "",      "",   "",       "",  ":",   ":80",
                                        ":443", ":8080", ":0", ":99999", ".", ".:80"};
    static const char *const steps[] = {
        "/",   "/.", "/..", "/a",  "//",   "/...",   "/.a", "/%2e", "/%2E%2e",
        "/a.", "?",  "??",  "#",   "/b?",  "?/../",  "/~",  "/ ",   "/\xC3\xA4",
        "/|",  "/[", "/\"", "/\\", "?a b", "?c=/./", "+",   "/%7e"};
    append(text, ONE_OF(schemes));
    append(text, ONE_OF(users));
    for (size_t n = random_below(5); n > 0; n--) {
        append(text, ONE_OF(labels));
        append(text, ".");
    }
    append(text, ONE_OF(labels));
    append(text, ONE_OF(ports));
    for (size_t n = random_below(5); n > 0; n--)
        append(text, ONE_OF(steps));
}

/* A valid URL with one or two bytes inserted, changed or removed, anywhere. */
static void generate_nearly_good(struct text *text)
{
    static const char significant[] = ".-/:@?#%[]\\ \t_xn0A\x7F\xC3\xA4";
    generate_good(text);
    for (size_t n = 1 + random_below(2); n > 0; n--) {
        size_t at = random_below(text->n < 40 ? text->n : 40);
        char byte = random_below(2) == 0 ? significant[random_below(sizeof(significant) - 1)]
                                         : (char)random_below(256);
        switch (random_below(3)) {
        case 0:
            memmove(text->p + at + 1, text->p + at, text->n++ - at);
            text->p[at] = byte;
            break;
        case 1:
            text->p[at] = byte;
            break;
        default:
            memmove(text->p + at, text->p + at + 1, --text->n - at);
        }
    }
}

/*
 * audit_url_normalise and url_judge must agree, and a plain URL must stay unchanged. True: the URL
 * is plain and accepted.
 */
static bool compare(struct str text, const struct conf *conf)
{
    struct url judged;
    struct str host = {0};
    uint16_t port;
    struct buf out = {0}, name = {0};
    const char *why = NULL, *full_why = NULL;
    bool plain = url_plain(text, &host, &port);
    bool full = url_judge(text, NULL, conf, &judged, &full_why);
    bool ok = audit_url_normalise(text, conf, &out, &name, &why);
    ck_assert_msg(ok == full, "%.*s: %s", (int)text.n, text.p, ok ? full_why : why);
    ck_assert_msg(!plain || full || judged.forbidden, "%.*s: %s", (int)text.n, text.p, full_why);
    if (full) {
        const char *expected = judged.host;
        if (strncmp(expected, "www.", 4) == 0 && strchr(expected + 4, '.') != NULL)
            expected += 4;
        ck_assert_msg(str_eq(buf_view(&out), str_of(judged.text)), "%.*s: %.*s", (int)text.n,
                      text.p, (int)out.n, out.p);
        ck_assert_msg(str_eq(buf_view(&name), str_of(expected)), "%.*s: %.*s", (int)text.n, text.p,
                      (int)name.n, name.p);
    } else {
        ck_assert_str_eq(why, full_why);
        ck_assert_uint_eq(out.n + name.n, 0);
    }
    if (full && plain) {
        ck_assert_msg(str_eq(text, str_of(judged.text)), "%.*s: %s", (int)text.n, text.p,
                      judged.text);
        ck_assert_msg(str_eq(host, str_of(judged.host)), "%.*s: %s", (int)text.n, text.p,
                      judged.host);
    }
    url_free(&judged);
    buf_free(&out);
    buf_free(&name);
    return full && plain;
}

/* Columns: the generator, the minimum percentage of plain accepted URLs. */
static const struct {
    void (*generate)(struct text *);
    size_t least_percent;
} generators[] = {{generate_good, 10}, {generate_nearly_good, 5}, {generate_odd, 0}};

START_TEST(a_plain_url_equals_libcurls_normal_form)
{
    size_t plain = 0;
    random_state = 0x9E3779B97F4A7C15u + (uint64_t)_i;
    ck_assert(cidr_parse("127.0.0.0/8", &loopback));
    for (size_t i = 0; i < GENERATED; i++) {
        struct text text = {.n = 0};
        generators[_i].generate(&text);
        plain += compare((struct str){text.p, text.n}, &confs[i % COUNT(confs)]);
    }
    ck_assert_uint_ge(plain, GENERATED * generators[_i].least_percent / 100);
}
END_TEST

/* Every byte, at each position of a plain URL where it could change it. */
START_TEST(no_byte_at_any_position_changes_a_plain_url)
{
    static const char base[] = "https://www.ab-c.example.com/p/q.r?s=t/u";
    for (size_t at = 0; at < sizeof(base); at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[sizeof(base)];
            memcpy(text, base, at);
            text[at] = (char)byte;
            memcpy(text + at + 1, base + at, sizeof(base) - 1 - at);
            compare((struct str){text, sizeof(base)}, &confs[0]);
            if (at < sizeof(base) - 1) {
                memcpy(text, base, sizeof(base));
                text[at] = (char)byte;
                compare((struct str){text, sizeof(base) - 1}, &confs[0]);
            }
        }
    }
}
END_TEST

static const char *const plain_ones[] = {
    "http://example.com/",
    "https://www.example.com/a/b.html?c=d&e=f",
    "http://3com.co/",
    "http://a.b/",
    "http://1.2.3.4.com/",
    "http://a--b.c-/",
    "https://example.com/A~_!$&'()*+,;=:@-?x?y/z",
    "http://example.com//a//",
    "http://example.com/a./b../c...",
};

START_TEST(a_url_in_normal_form_is_plain)
{
    struct str host;
    uint16_t port;
    ck_assert_msg(url_plain(str_of(plain_ones[_i]), &host, &port), "%s", plain_ones[_i]);
    ck_assert(compare(str_of(plain_ones[_i]), &confs[0]));
}
END_TEST

static const char *const other_ones[] = {
    "",
    "http://",
    "http:///",
    "http://example.com",
    "http://example.com?a",
    "http://example.com/?",
    "http://example.com/#",
    "http://example.com/%41",
    "http://example.com/a b",
    "http://example.com/.",
    "http://example.com/..",
    "http://example.com/./a",
    "http://example.com/../a",
    "http://example.com/a?/../b",
    "http://example.com:80/",
    "http://example.com:08080/",
    "http://example.com./",
    "http://.example.com/",
    "http://example..com/",
    "http://Example.com/",
    "HTTP://example.com/",
    "ftp://example.com/",
    "//example.com/",
    "http://u@example.com/",
    "http://intranet/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f.0x1/",
    "http://[::1]/",
    "http://a_b.example.com/",
    "http://xn--mller-kva.de/",
    "http://a.xn--p1ai/",
    "http://m\xC3\xBCller.de/",
    "http://example.com/\xC3\xA4",
    "http://example.com/\\",
    " http://example.com/",
    "http://example.com/\n",
};

START_TEST(a_url_that_needs_full_parsing_is_not_plain)
{
    struct str host;
    uint16_t port;
    ck_assert_msg(!url_plain(str_of(other_ones[_i]), &host, &port), "%s", other_ones[_i]);
    compare(str_of(other_ones[_i]), &confs[0]);
}
END_TEST

START_TEST(the_limits_of_labels_names_and_urls_match_libcurl)
{
    for (size_t n = 1; n < 70; n++) { /* a label */
        char text[100];
        snprintf(text, sizeof(text), "http://%.*s.com/", (int)n,
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        ck_assert(compare(str_of(text), &confs[0]) == (n <= 63));
    }
    for (size_t n = 200; n < 300; n++) { /* a name */
        struct text text = {.n = 0};
        append(&text, "http://");
        for (size_t i = 0; i < n; i++)
            append(&text, i % 2 == 1 && i + 1 < n ? "." : "a");
        append(&text, "/");
        ck_assert(compare((struct str){text.p, text.n}, &confs[0]) == (n <= 253));
    }
    for (size_t n = 2040; n < 2056; n++) { /* all of it */
        struct text text = {.n = 0};
        append(&text, "http://example.com/");
        while (text.n < n)
            append(&text, "a");
        ck_assert(compare((struct str){text.p, text.n}, &confs[0]) == (n <= 2048));
    }
}
END_TEST

/*
 * ---- links of a page, as browsers resolve them (the result of WHATWG's URL): the link, its
 * target; NULL: not a URL ----
 */

#define PAGE "https://example.com/dir/page"

static const char *const links[][2] = {
    {"x", "https://example.com/dir/x"},
    {"/x", "https://example.com/x"},
    {"?x", PAGE "?x"},
    {"#x", PAGE "#x"},
    {"", PAGE},
    {" \n ", PAGE},
    {"/a\tb\nc", "https://example.com/abc"},
    {"../../../x/./y/..", "https://example.com/x/"},
    {"//a.com", "https://a.com/"},
    {"///a.com/x", "https://a.com/x"},
    {"\\\\a.com\\x?\\#\\", "https://a.com/x?\\#\\"},
    {"\\x", "https://example.com/x"},
    {"https:", PAGE},
    {"https:x", "https://example.com/dir/x"},
    {"https:/x", "https://example.com/x"},
    {"HTTPS:///A.com", "https://a.com/"},
    {"http:x", "http://x/"},
    {"http:/x/y", "http://x/y"},
    {"http:\\\\x", "http://x/"},
    {"https://A.com:443/%aa", "https://a.com/%aa"},
    {"https://\xE4\xBE\x8B.jp/", "https://xn--fsq.jp/"},
    {"https://1.2.3/", "https://1.2.0.3/"},
    {"http://", NULL},
    {"https://256.1.1.1/", NULL},
    {"https://a.1/", NULL},
    {"https://1.2.3.4.5/", NULL},
    {"https://a b/", NULL},
    {"https://a%/", NULL},
    {"https://%zz/", NULL},
    {"https://a|b/", NULL},
    {"https://[x/", NULL},
    {"https://a.com:99999/", NULL},
};

START_TEST(a_link_resolves_as_in_browsers)
{
    struct buf out = {0};
    bool ok = url_resolve(str_of(links[_i][0]), PAGE, &out);
    const char *expected = links[_i][1];
    bool same = ok == (expected != NULL) && (!ok || url_same(buf_view(&out), str_of(expected)));
    ck_assert_msg(same, "%s: %.*s, not %s", links[_i][0], ok ? (int)out.n : 6,
                  ok ? out.p : "no URL", expected == NULL ? "none" : expected);
    buf_free(&out);
}
END_TEST

START_TEST(the_case_of_escapes_does_not_distinguish_urls)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"https://a.com/%c3%A4", "https://a.com/%C3%a4", true},
        {"https://a.com/%c3a", "https://a.com/%c3A", false},
        {"https://a.com/A", "https://a.com/a", false},
        {"https://a.com/a", "https://a.com/ab", false},
    };
    for (size_t i = 0; i < COUNT(pairs); i++)
        ck_assert(url_same(str_of(pairs[i].a), str_of(pairs[i].b)) == pairs[i].same);
}
END_TEST

START_TEST(a_redirect_to_a_fragment_is_the_same_page)
{
    struct url url;
    const char *why;
    ck_assert(url_judge(str_of("#x"), PAGE, &confs[0], &url, &why));
    ck_assert_str_eq(url.text, PAGE);
    url_free(&url);
}
END_TEST

/* The store accepts the final URL of a page as printable ASCII only. */
START_TEST(an_accepted_url_is_printable_ascii)
{
    static const char *const forms[] = {"/%cx",    "/?%cx",        "?a=%cx",          "/a/%c%c/?%c",
                                        "//h%c.x", "https://h/%c", "https://h/?%c#%c"};
    unsigned accepted = 0;
    for (int c = 1; c < 256; c++)
        for (size_t i = 0; i < COUNT(forms); i++) {
            char text[32];
            struct url url;
            const char *why;
            snprintf(text, sizeof(text), forms[i], c, c, c);
            if (url_judge(str_of(text), PAGE, &confs[0], &url, &why)) {
                accepted++;
                for (const char *p = url.text; *p != '\0'; p++)
                    ck_assert_msg(*p > ' ' && *p <= '~', "%s: %s", text, url.text);
            }
            url_free(&url);
        }
    ck_assert_uint_gt(accepted, 256);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_url");
    TCase *t = tcase_create("plain");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_plain_url_equals_libcurls_normal_form, 0, (int)COUNT(generators));
    tcase_add_test(t, no_byte_at_any_position_changes_a_plain_url);
    tcase_add_loop_test(t, a_url_in_normal_form_is_plain, 0, (int)COUNT(plain_ones));
    tcase_add_loop_test(t, a_url_that_needs_full_parsing_is_not_plain, 0, (int)COUNT(other_ones));
    tcase_add_test(t, the_limits_of_labels_names_and_urls_match_libcurl);
    tcase_add_loop_test(t, a_link_resolves_as_in_browsers, 0, (int)COUNT(links));
    tcase_add_test(t, the_case_of_escapes_does_not_distinguish_urls);
    tcase_add_test(t, a_redirect_to_a_fragment_is_the_same_page);
    tcase_add_test(t, an_accepted_url_is_printable_ascii);
    suite_add_tcase(s, t);
    return suite_run(s);
}
