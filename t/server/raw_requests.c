/*
 * Exact bytes: request smuggling, unusual requests, and errors before any handler. Several requests
 * on one connection are in pipelining.c.
 */
#include "t/kit/raw_server.h"

/*
 * Requests that two parties can read differently, or that are malformed: 400 and a closed
 * connection, so that nothing after them is read as a request.
 */
static const struct {
    const char *name, *bytes;
    bool bare; /* the library can answer its bare 400 to what does not parse as HTTP */
} ambiguous[] = {
    {"two Content-Lengths",
     POST_REPORTS "Content-Length: 5\r\nContent-Length: 6\r\n\r\nurl=xx" SMUGGLED, false},
    {"the same Content-Length twice",
     POST_REPORTS "Content-Length: 5\r\nContent-Length: 5\r\n\r\nurl=x" SMUGGLED, false},
    {"two Content-Lengths in one line", POST_REPORTS "Content-Length: 5, 5\r\n\r\nurl=x" SMUGGLED,
     false},
    {"Content-Length and chunked",
     POST_REPORTS "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"chunked and Content-Length",
     POST_REPORTS "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"a folded line", GET_REPORTS "X-A: 1\r\n folded\r\n\r\n" SMUGGLED, false},
    {"a line folded with a tab", GET_REPORTS "X-A: 1\r\n\tfolded\r\n\r\n" SMUGGLED, false},
    {"a folded Transfer-Encoding",
     POST_REPORTS "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" SMUGGLED, false},
    {"a second Host", GET_REPORTS "Host: y\r\n\r\n" SMUGGLED, false},
    {"the same Host twice", GET_REPORTS "host: x\r\n\r\n" SMUGGLED, false},
    {"a second Authorization",
     GET_REPORTS "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" SMUGGLED, false},
    {"a second authorization in another case",
     GET_REPORTS "Authorization: Bearer a\r\nAUTHORIZATION: Bearer a\r\n\r\n" SMUGGLED, false},
    {"two Content-Lengths of other case",
     POST_REPORTS "Content-Length: 5\r\ncontent-length: 6\r\n\r\nurl=xx" SMUGGLED, false},
    {"two Content-Lengths, one behind a bare LF",
     POST_REPORTS "Content-Length: 5\nContent-Length: 6\r\n\r\nurl=xx" SMUGGLED, true},
    {"a second Host behind a bare LF", GET_REPORTS "X-A: a\nHost: y\r\n\r\n" SMUGGLED, true},
    {"Transfer-Encoding behind a bare LF",
     POST_REPORTS
     "Content-Length: 5\r\nX-A: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     true},
    {"bare LFs only, two lengths",
     "POST /api/v1/reports HTTP/1.1\nHost: x\nContent-Length: 5\nContent-Length: "
     "6\n\nurl=xx" SMUGGLED,
     true},
    {"two Content-Types",
     POST_REPORTS "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nurl=x" SMUGGLED, false},
    {"a space before the colon", POST_REPORTS "Content-Length : 5\r\n\r\nurl=x" SMUGGLED, true},
    {"a tab before the colon", POST_REPORTS "Content-Length\t: 5\r\n\r\nurl=x" SMUGGLED, true},
    {"a space before Transfer-Encoding's colon",
     POST_REPORTS "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" SMUGGLED, true},
    {"a signed length", POST_REPORTS "Content-Length: +5\r\n\r\nurl=x" SMUGGLED, false},
    {"a negative length", POST_REPORTS "Content-Length: -5\r\n\r\nurl=x" SMUGGLED, false},
    {"a hexadecimal length", POST_REPORTS "Content-Length: 0x5\r\n\r\nurl=x" SMUGGLED, false},
    {"a length with a fraction", POST_REPORTS "Content-Length: 5.0\r\n\r\nurl=x" SMUGGLED, false},
    {"a length with words", POST_REPORTS "Content-Length: 5 bytes\r\n\r\nurl=x" SMUGGLED, false},
    {"an empty length", POST_REPORTS "Content-Length:\r\n\r\n" SMUGGLED, false},
    {"a length beyond 64 bits",
     POST_REPORTS "Content-Length: 18446744073709551621\r\n\r\nurl=x" SMUGGLED, false},
    {"an unknown coding", POST_REPORTS "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n" SMUGGLED, false},
    {"chunked not last", POST_REPORTS "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"chunked after another",
     POST_REPORTS "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED, false},
    {"chunked twice in one line",
     POST_REPORTS "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" SMUGGLED, false},
    {"Transfer-Encoding twice",
     POST_REPORTS
     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"Transfer-Encoding twice, one identity",
     POST_REPORTS
     "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"a chunked that is not", POST_REPORTS "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"a chunked with a vertical tab",
     POST_REPORTS "Transfer-Encoding: \x0b"
                  "chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     true},
    {"a quoted chunked", POST_REPORTS "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"chunked in HTTP/1.0",
     "POST /api/v1/reports HTTP/1.0\r\n" HOST
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     false},
    {"a bare CR in a value", GET_REPORTS "X-A: a\rX-B: b\r\n\r\n" SMUGGLED, true},
    {"a NUL in a value", NULL, true},
    {"a NUL in a name", NULL, true},
    {"no Host", "GET /healthz HTTP/1.1\r\n\r\n" SMUGGLED, false},
    {"no colon", GET_REPORTS "words\r\n\r\n" SMUGGLED, true},
    {"an empty name", GET_REPORTS ": value\r\n\r\n" SMUGGLED, true},
    {"a name with a space", GET_REPORTS "X A: value\r\n\r\n" SMUGGLED, true},
    {"a first header that begins with a space", LINE " X: y\r\n" HOST "\r\n" SMUGGLED, true},
    {"HTTP/2.0 in a line", "GET /healthz HTTP/2.0\r\n" HOST "\r\n" SMUGGLED, true},
    {"HTTP/1.9 in a line", "GET /healthz HTTP/1.x\r\n" HOST "\r\n" SMUGGLED, true},
    {"no version", "GET /healthz\r\n" HOST "\r\n" SMUGGLED, true},
    {"three spaces", "GET  /healthz  HTTP/1.1\r\n" HOST "\r\n" SMUGGLED, true},
    {"words", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not HTTP\r\n\r\n", true},
};

static void send_ambiguous(struct raw *raw, size_t which)
{
    static const char value[] = GET_REPORTS "X-A: a\0b\r\n\r\n" SMUGGLED,
                      name[] = GET_REPORTS "X-\0A: b\r\n\r\n" SMUGGLED;
    if (ambiguous[which].bytes)
        raw_send(raw, ambiguous[which].bytes, strlen(ambiguous[which].bytes));
    else if (strstr(ambiguous[which].name, "value"))
        raw_send(raw, value, sizeof(value) - 1);
    else
        raw_send(raw, name, sizeof(name) - 1);
}

START_TEST(an_ambiguous_request_is_400_and_closes_the_connection)
{
    struct raw *raw = raw_open(server);
    send_ambiguous(raw, (size_t)_i);
    struct response *r = raw_response(raw, false, 5000);
    if (!ambiguous[_i].bare)
        ck_assert_msg(!error_mistake(r, 400, "bad_request"), "%s: %s\n%s", ambiguous[_i].name,
                      error_mistake(r, 400, "bad_request"), response_text(r));
    else
        ck_assert_msg(r->status == 400, "%s\n%s", ambiguous[_i].name, response_text(r));
    struct response *next = raw_response(raw, false, 3000);
    ck_assert_msg(next->status == 0, "%s: a second response\n%s", ambiguous[_i].name,
                  response_text(next));
    ck_assert_msg(raw_closed(raw, 3000), "%s: the connection stays open\n%s", ambiguous[_i].name,
                  response_text(r));
    raw_close(raw);
}
END_TEST

START_TEST(an_ambiguous_request_in_pieces_is_refused)
{
    static const char request[] = POST_REPORTS
        "Content-Length: 5\r\nX-Filler: yyyyyyyyyyyy\r\nContent-Length: 6\r\n\r\nurl=xx" SMUGGLED;
    struct raw *raw = raw_open(server);
    for (size_t i = 0; i < sizeof(request) - 1; i += 7)
        raw_send(raw, request + i, sizeof(request) - 1 - i < 7 ? sizeof(request) - 1 - i : 7);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

START_TEST(an_ambiguous_request_behind_a_good_one_is_refused)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, LINE HOST "\r\n" GET_REPORTS "Host: y\r\n\r\n" SMUGGLED);
    expect_status(raw_response(raw, false, 5000), 200);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

/* Heads around 32 KiB: one header, and many. */
START_TEST(a_head_over_32_kib_is_400_and_closes_the_connection)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, LINE HOST "X-Long: %030000d\r\n\r\n", 1);
    expect_status(raw_response(raw, false, 5000), 200);
    raw_text(raw, LINE HOST "X-Long: %033000d\r\n\r\n" SMUGGLED, 1);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
    raw_close(raw);

    raw = raw_open(server);
    raw_text(raw, LINE HOST);
    for (int i = 0; i < 60; i++)
        raw_text(raw, "X-Header-%d: %0600d\r\n", i, 1);
    raw_text(raw, "\r\n" SMUGGLED);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

/* By its size, long before its timeout. */
START_TEST(an_endless_head_is_refused_at_32_kib)
{
    struct server *patient =
        server_new(&(struct server_options){.yaml = "timeouts: { header: 60s }"});
    server_start(patient);
    struct raw *raw = raw_open(patient);
    raw_text(raw, LINE HOST "X-Endless: ");
    for (int i = 0; i < 16; i++)
        raw_text(raw, "%04096d", 1);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_closed(raw, 3000));
    raw_close(raw);
    server_free(patient);
}
END_TEST

/* The library accepts a hundred and does not read a head with more: its bare 400. */
START_TEST(a_hundred_headers_are_accepted_and_one_more_is_400)
{
    for (int more = 0; more < 2; more++) {
        struct raw *raw = raw_open(server);
        raw_text(raw, LINE HOST);
        for (int i = 0; i < 99 + more; i++)
            raw_text(raw, "X-%d: 1\r\n", i);
        raw_text(raw, "\r\n");
        expect_status(raw_response(raw, false, 5000), more ? 400 : 200);
        ck_assert(raw_closed(raw, more ? 3000 : 100) == (more == 1));
        raw_close(raw);
    }
}
END_TEST

/* ---- unusual valid requests ---- */

static const struct {
    const char *name, *bytes;
    int status;
} good[] = {
    {"HTTP/1.0 without Host", "GET /healthz HTTP/1.0\r\n\r\n", 200},
    {"HTTP/1.0 with keep-alive", "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200},
    {"absolute form", "GET http://x/healthz HTTP/1.1\r\n" HOST "\r\n", 200},
    {"absolute form, https",
     "GET https://api.example.test/healthz HTTP/1.1\r\nHost: api.example.test\r\n\r\n", 200},
    {"an empty Host", "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", 200},
    {"an unknown Host", "GET /healthz HTTP/1.1\r\nHost: elsewhere.test:99\r\n\r\n", 200},
    {"header names in capitals",
     "GET /healthz HTTP/1.1\r\nHOST: x\r\nACCEPT: application/json\r\n\r\n", 200},
    {"no space after a colon", "GET /healthz HTTP/1.1\r\nHost:x\r\nAccept:*/*\r\n\r\n", 200},
    {"an empty value", LINE HOST "X-Empty:\r\n\r\n", 200},
    {"a repeated unknown header", LINE HOST "X-A: 1\r\nX-A: 2\r\n\r\n", 200},
    {"a zero length on GET", LINE HOST "Content-Length: 0\r\n\r\n", 200},
    {"chunked in capitals",
     "POST /api/v1/reports HTTP/1.1\r\n" HOST
     "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: "
     "CHUNKED\r\n\r\n5\r\nurl=x\r\n0\r\n\r\n",
     401},
    {"a chunk extension",
     POST_REPORTS "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nurl=x\r\n0\r\n\r\n", 401},
    {"a query alone", "GET /healthz? HTTP/1.1\r\n" HOST "\r\n", 200},
    {"an unknown upgrade", LINE HOST "Connection: Upgrade\r\nUpgrade: something/3\r\n\r\n", 200},
    {"h2c is not offered",
     LINE HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
               "AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
     200},
    {"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 404},
    {"CONNECT", "CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n", 404},
    {"a path without a slash", "GET healthz HTTP/1.1\r\n" HOST "\r\n", 404},
};

START_TEST(an_unusual_valid_request_is_answered)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, "%s", good[_i].bytes);
    struct response *r = raw_response(raw, false, 5000);
    ck_assert_msg(r->status == good[_i].status, "%s\n%s", good[_i].name, response_text(r));
    if (r->status >= 400)
        expect_error(r, good[_i].status, "not_found|unauthorized");
    raw_close(raw);
}
END_TEST

START_TEST(a_missing_credential_is_checked_before_the_form)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "Content-Length: 5\r\n\r\nurl=x");
    expect_error(raw_response(raw, false, 5000), 401, "unauthorized");
}
END_TEST

/* ---- errors before any handler ---- */

static const struct {
    const char *name, *head, *body;
    int status;
    const char *code;
} early[] = {
    {"a length far over every limit", "Content-Length: 99999999999\r\n", "", 413,
     "payload_too_large"},
    {"an unsupported expectation", "Content-Length: 5\r\nExpect: 200-ok\r\n", "url=x", 417,
     "expectation_failed"},
    {"a malformed chunk size", "Transfer-Encoding: chunked\r\n", "zz\r\nurl=x\r\n0\r\n\r\n", 400,
     "bad_request"},
    {"a negative chunk size", "Transfer-Encoding: chunked\r\n", "-5\r\nurl=x\r\n0\r\n\r\n", 400,
     "bad_request"},
    /*
     * libh2o reads it as the last chunk; the connection is safe because it closes after any chunked
     * request
     */
    {"a chunk size with 0x", "Transfer-Encoding: chunked\r\n", "0x5\r\nurl=x\r\n0\r\n\r\n", 422,
     "validation_failed"},
    {"a chunk size beyond 64 bits", "Transfer-Encoding: chunked\r\n",
     "FFFFFFFFFFFFFFFFF\r\nurl=x\r\n0\r\n\r\n", 400, "bad_request"},
    {"a chunk without its end", "Transfer-Encoding: chunked\r\n", "5\r\nurl=xyz\r\n0\r\n\r\n", 400,
     "bad_request"},
};

START_TEST(an_error_before_any_handler_has_the_documented_shape)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "Authorization: Bearer %s\r\n%s\r\n%s", server->key, early[_i].head,
             early[_i].body);
    struct response *r = raw_response(raw, false, 5000);
    const char *mistake = error_mistake(r, early[_i].status, early[_i].code);
    ck_assert_msg(!mistake, "%s: %s\n%s", early[_i].name, mistake, response_text(r));
    if (early[_i].status != 417)
        ck_assert_msg(raw_closed(raw, 4000), "%s: stays open\n%s", early[_i].name,
                      response_text(r));
    raw_close(raw);
}
END_TEST

START_TEST(an_early_error_echoes_the_request_id)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "X-Request-Id: mine-1\r\nContent-Length: 99999999999\r\n\r\n");
    struct response *r = raw_response(raw, false, 5000);
    expect_error(r, 413, "payload_too_large");
    expect(r, !strcmp(header(r, "X-Request-Id"), "mine-1"));
}
END_TEST

START_TEST(a_64_bit_chunk_size_reserves_nothing)
{
    struct raw *raw = raw_open(server);
    raw_text(raw,
             POST_REPORTS "Authorization: Bearer %s\r\nTransfer-Encoding: "
                          "chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nurl=x\r\n0\r\n\r\n" SMUGGLED,
             server->key);
    ck_assert_int_eq(raw_response(raw, false, 5000)->status, 0);
    ck_assert(raw_closed(raw, 4000)); /* at the body timeout */
    raw_close(raw);
}
END_TEST

START_TEST(a_broken_chunk_never_becomes_a_request)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "Transfer-Encoding: chunked\r\n\r\n5\r\nurl=x0\r\n\r\n" SMUGGLED);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("raw_requests");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, raw_setup, raw_teardown);
    tcase_add_loop_test(tcase, an_ambiguous_request_is_400_and_closes_the_connection, 0,
                        COUNT(ambiguous));
    tcase_add_test(tcase, an_ambiguous_request_in_pieces_is_refused);
    tcase_add_test(tcase, an_ambiguous_request_behind_a_good_one_is_refused);
    tcase_add_test(tcase, a_head_over_32_kib_is_400_and_closes_the_connection);
    tcase_add_test(tcase, an_endless_head_is_refused_at_32_kib);
    tcase_add_test(tcase, a_hundred_headers_are_accepted_and_one_more_is_400);
    tcase_add_loop_test(tcase, an_unusual_valid_request_is_answered, 0, COUNT(good));
    tcase_add_test(tcase, a_missing_credential_is_checked_before_the_form);
    tcase_add_loop_test(tcase, an_error_before_any_handler_has_the_documented_shape, 0,
                        COUNT(early));
    tcase_add_test(tcase, an_early_error_echoes_the_request_id);
    tcase_add_test(tcase, a_64_bit_chunk_size_reserves_nothing);
    tcase_add_test(tcase, a_broken_chunk_never_becomes_a_request);
    return harness_main(suite);
}
