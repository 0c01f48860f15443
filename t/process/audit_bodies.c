/*
 * Bodies of answers from a server on loopback: every offered coding is decoded, an endless body,
 * head or trailer is cut off, and the results of a hostile page stay within 32 KiB.
 */
#include "core/audit/results_internal.h"
#include "t/kit/audit_loopback.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

/* ---- codings ---- */

static size_t deflated(const void *in, size_t n, void *out, size_t room, int window)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in,
                  .avail_in = (uInt)n,
                  .next_out = out,
                  .avail_out = (uInt)room};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static size_t as_gzip(const void *in, size_t n, void *out, size_t room)
{
    return deflated(in, n, out, room, 31);
}

static size_t as_zlib(const void *in, size_t n, void *out, size_t room)
{
    return deflated(in, n, out, room, 15);
}

static size_t as_raw_deflate(const void *in, size_t n, void *out, size_t room)
{
    return deflated(in, n, out, room, -15);
}

static size_t as_gzip_in_gzip(const void *in, size_t n, void *out, size_t room)
{
    unsigned char inner[4096];
    return as_gzip(inner, as_gzip(in, n, inner, sizeof(inner)), out, room);
}

static size_t as_gzip_in_zlib(const void *in, size_t n, void *out, size_t room)
{
    unsigned char inner[4096];
    return as_zlib(inner, as_gzip(in, n, inner, sizeof(inner)), out, room);
}

/* One uncompressed block and an empty last one (RFC 7932, 9). */
static size_t as_brotli(const void *in, size_t n, void *out, size_t room)
{
    unsigned char *to = out;
    /* window of 64 KiB, not the last block, 16-bit length, uncompressed */
    uint32_t head = (uint32_t)(n - 1) << 4 | 1u << 20;
    ck_assert(n >= 1 && n <= 65536 && n + 4 <= room);
    to[0] = (unsigned char)head;
    to[1] = (unsigned char)(head >> 8);
    to[2] = (unsigned char)(head >> 16);
    memcpy(to + 3, in, n);
    to[3 + n] = 3;
    return n + 4;
}

/* One frame of one raw block (RFC 8878, 3.1.1). */
static size_t as_zstd(const void *in, size_t n, void *out, size_t room)
{
    static const unsigned char begin[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0x38};
    unsigned char *to = out;
    uint32_t block = (uint32_t)n << 3 | 1;
    ck_assert_uint_le(n + sizeof(begin) + 3, room);
    memcpy(to, begin, sizeof(begin));
    to[6] = (unsigned char)block;
    to[7] = (unsigned char)(block >> 8);
    to[8] = (unsigned char)(block >> 16);
    memcpy(to + 9, in, n);
    return n + 9;
}

/* Content-Encoding, its encoder */
static const struct {
    const char *name;
    size_t (*make)(const void *in, size_t n, void *out, size_t room);
} codings[] = {
    {"gzip", as_gzip},
    {"x-gzip", as_gzip},
    {"deflate", as_zlib},
    {"deflate", as_raw_deflate},
    {"br", as_brotli},
    {"zstd", as_zstd},
    {"GZip", as_gzip},
    {"gzip, gzip", as_gzip_in_gzip},
    {"gzip, deflate", as_gzip_in_zlib},
};
static int coding;

#define CODED_PAGE GOOD_PAGE "<h2>It came through</h2>"

static void answer_coded(struct origin_answer *a, const char *path)
{
    unsigned char body[4096];
    char head[256];
    size_t n = codings[coding].make(CODED_PAGE, sizeof(CODED_PAGE) - 1, body, sizeof(body));
    (void)path;
    snprintf(head, sizeof(head),
             "HTTP/1.1 200 OK\r\n" HTML "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
             codings[coding].name, n);
    origin_puts(a, head);
    /*
     * Single bytes with pauses. libcurl distinguishes raw deflate from zlib by the first two bytes,
     * only when they arrive together.
     */
    size_t first = codings[coding].make == as_raw_deflate ? 2 : 1;
    for (size_t i = 0; i < n; i += i == 0 ? first : 1)
        if (!origin_send(a, body + i, i == 0 ? first : 1))
            return;
}

START_TEST(a_page_is_decoded_in_every_offered_coding)
{
    int features = curl_version_info(CURLVERSION_NOW)->features;
    if ((strcmp(codings[_i].name, "br") == 0 && (features & CURL_VERSION_BROTLI) == 0) ||
        (strcmp(codings[_i].name, "zstd") == 0 && (features & CURL_VERSION_ZSTD) == 0))
        return; /* this libcurl does not offer it */
    coding = _i;
    open_all(answer_coded, false);
    grade(origin_url(origin, "/"));
    ck_assert_msg(got.code[0] == '\0', "%s: %s %s", codings[_i].name, got.code, got.message);
    ck_assert_ptr_nonnull(strstr(got.results.p, "It came through"));
    close_all();
}
END_TEST

/* ---- endless answers ---- */

static void answer_bomb_in_bomb(struct origin_answer *a, const char *path)
{
    enum { ROOM = 1 << 20 };
    unsigned char *outer = malloc(ROOM), *inner = malloc(ROOM), *zeros = calloc(1, 64u << 20);
    char head[128];
    (void)path;
    if (outer != NULL && inner != NULL && zeros != NULL) {
        /* 64 MiB in about a hundred bytes */
        size_t n = as_gzip(inner, as_gzip(zeros, 64u << 20, inner, ROOM), outer, ROOM);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\n" HTML
                 "Content-Encoding: gzip, gzip\r\nContent-Length: %zu\r\n\r\n",
                 n);
        origin_puts(a, head);
        origin_send(a, outer, n);
    }
    free(outer);
    free(inner);
    free(zeros);
}

static void answer_gzip_bomb(struct origin_answer *a, const char *path)
{
    unsigned char out[65536];
    static const unsigned char zeros[65536];
    z_stream z = {0};
    (void)path;
    origin_puts(a,
                "HTTP/1.1 200 OK\r\n" HTML "Content-Encoding: gzip\r\nConnection: close\r\n\r\n");
    if (deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    bool sent = true;
    for (unsigned i = 0; sent && i < 2048; i++) { /* 128 MiB in about 130 KB */
        z.next_in = (Bytef *)(uintptr_t)zeros;
        z.avail_in = sizeof(zeros);
        z.next_out = out;
        z.avail_out = sizeof(out);
        deflate(&z, i == 2047 ? Z_FINISH : Z_NO_FLUSH);
        sent = origin_send(a, out, sizeof(out) - z.avail_out);
    }
    deflateEnd(&z);
}

static void answer_endless_body(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a, "HTTP/1.1 200 OK\r\n" HTML "Connection: close\r\n\r\n");
    while (origin_puts(a, "<p>and on and on and on and on and on and on and on and on and on and "
                          "on and on and on and on"))
        ;
}

static void answer_endless_head(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a, "HTTP/1.1 200 OK\r\n");
    while (origin_puts(
        a, "X-Header: and on and on and on and on and on and on and on and on and on and on\r\n"))
        ;
}

static void answer_endless_redirect_body(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") != 0) {
        origin_page(a, HTML, GOOD_PAGE);
        return;
    }
    origin_puts(a, "HTTP/1.1 302 Found\r\nLocation: /page\r\nConnection: close\r\n\r\n");
    while (origin_puts(
        a, "and on and on and on and on and on and on and on and on and on and on and on and on"))
        ;
}

static void answer_one_endless_line(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a, "HTTP/1.1 200 OK\r\nX-Header: ");
    while (origin_puts(a, "and on and on and on and on and on and on and on and on and on and on "
                          "and on and on and on"))
        ;
}

static void answer_endless_hints(struct origin_answer *a, const char *path)
{
    (void)path;
    while (origin_puts(a, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"))
        ;
}

static void answer_endless_trailers(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a,
                "HTTP/1.1 200 OK\r\n" HTML "Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n0\r\n");
    while (origin_puts(a, "X-Trailer: and on and on and on and on and on and on and on and on and "
                          "on and on and on\r\n"))
        ;
}

/* An endless compressed stream of nothing. */
static void answer_gzip_of_nothing(struct origin_answer *a, const char *path)
{
    static const unsigned char begin[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3},
                               stored_nothing[] = {0, 0, 0, 0xff, 0xff};
    unsigned char many[sizeof(stored_nothing) * 1000];
    (void)path;
    for (size_t i = 0; i < 1000; i++)
        memcpy(many + i * sizeof(stored_nothing), stored_nothing, sizeof(stored_nothing));
    origin_puts(a,
                "HTTP/1.1 200 OK\r\n" HTML "Content-Encoding: gzip\r\nConnection: close\r\n\r\n");
    origin_send(a, begin, sizeof(begin));
    while (origin_send(a, many, sizeof(many)))
        ;
}

static const struct {
    origin_fn *answer;
    const char *code;
} hostile[] = {
    {answer_one_endless_line, "too_large"}, {answer_endless_hints, "too_large"},
    {answer_endless_trailers, "too_large"}, {answer_bomb_in_bomb, "too_large"},
    {answer_gzip_of_nothing, "too_large"},  {answer_gzip_bomb, "too_large"},
    {answer_endless_body, "too_large"},     {answer_endless_head, "too_large"},
    {answer_endless_redirect_body, ""},
};

START_TEST(an_endless_answer_is_cut_off)
{
    open_all(hostile[_i].answer, false);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, hostile[_i].code);
    close_all();
}
END_TEST

/* ---- results ---- */

/* Every reported text, as long and as difficult as possible. */
static void answer_hostile_html(struct origin_answer *a, const char *path)
{
    static const char awkward[] = "\\\"\x01\xF0\x9F\x92\xA9</script>\xFF&lt;\r\n";
    (void)path;
    origin_puts(a, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: "
                   "close\r\nX-Robots-Tag: noindex, \"\\\xFF\xFE\r\n\r\n<title>");
    for (unsigned i = 0; i < 200; i++)
        origin_puts(a, awkward);
    origin_puts(a, "</title>");
    for (unsigned i = 0; i < 400; i++) {
        char tag[1024];
        snprintf(tag, sizeof(tag),
                 "<h2 style='%1$s'>%1$s%1$s%1$s%1$s%1$s</h2><img "
                 "src='http://x/%1$s%1$s%1$s%1$s%1$s'><font>%1$s</font><meta "
                 "property='og:%1$s' content='%1$s'>"
                 "<script type='application/ld+json'>{%1$s}</script><a href='%1$s' "
                 "target=_blank>here</a>\n",
                 awkward);
        origin_puts(a, tag);
    }
}

START_TEST(results_stay_within_32_kib_on_a_hostile_page)
{
    open_all(answer_hostile_html, false);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, "");
    ck_assert_uint_gt(got.results.n, 4096);
    ck_assert_uint_le(got.results.n - 1, RESULTS_MAX_BYTES);
    close_all();
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *s = suite_create("audit_bodies");
    TCase *t = tcase_create("bodies");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_page_is_decoded_in_every_offered_coding, 0,
                        sizeof(codings) / sizeof(*codings));
    tcase_add_loop_test(t, an_endless_answer_is_cut_off, 0, sizeof(hostile) / sizeof(*hostile));
    tcase_add_test(t, results_stay_within_32_kib_on_a_hostile_page);
    suite_add_tcase(s, t);
    return suite_run(s);
}
