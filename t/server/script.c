/*
 * The chat widget's script over HTTP: its headers, its two URLs, its size, and the element that
 * `assay agent embed` prints.
 */
#include "t/kit/harness.h"

#include <openssl/evp.h>
#include <zlib.h>

#define SIZE_MAX_BYTES 15000 /* compressed */

static struct server *server;
static char *agent;
static struct json_object *embed;

static void setup(void)
{
    server = server_shared(
        &(struct server_options){.yaml = "base_url: https://api.example.com/assay\n"});
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "https://shop.example", NULL);
    embed = json_object_array_get_idx(assay_list(server, "agent", "embed", agent, NULL), 0);
}

static void teardown(void)
{
    server_shared_stop(server);
}

static const char *embedded(const char *name)
{
    struct json_object *value;
    ck_assert_msg(json_object_object_get_ex(embed, name, &value), "%s is not printed", name);
    return json_object_get_string(value);
}

static const char *pinned(void)
{
    const char *base = "https://api.example.com/assay";
    ck_assert_int_eq(strncmp(embedded("src"), base, strlen(base)), 0);
    return embedded("src") + strlen(base);
}

static struct response *ask(const char *path, const char *more)
{
    return http(server, .path = path, .key = "",
                .headers = {"Accept: */*", "Origin: https://shop.example", more});
}

static void expect_header(const struct response *r, const char *name, const char *want)
{
    ck_assert_msg(header(r, name) != NULL && !strcmp(header(r, name), want), "%s is not %s\n%s",
                  name, want, r->head);
}

static const char *path_of(int i)
{
    return i == 0 ? "/widget.js" : pinned();
}

START_TEST(any_page_can_load_and_cache_the_script)
{
    struct response *r = ask(path_of(_i), NULL);
    expect_status(r, 200);
    expect_header(r, "Content-Type", "text/javascript; charset=utf-8");
    expect_header(r, "Cache-Control",
                  _i == 0 ? "public, max-age=300" : "public, max-age=31536000, immutable");
    expect_header(r, "Access-Control-Allow-Origin", "*");
    expect_header(r, "Cross-Origin-Resource-Policy", "cross-origin");
    expect_header(r, "X-Content-Type-Options", "nosniff");
    expect_header(r, "Vary", "accept-encoding");
    ck_assert_ptr_null(header(r, "Content-Encoding"));
    ck_assert_ptr_null(header(r, "X-RateLimit-Limit"));
    ck_assert_ptr_null(header(r, "Set-Cookie"));
    struct response *head = http(server, .method = "HEAD", .path = path_of(_i), .key = "");
    expect_status(head, 200);
    ck_assert_str_eq(header(head, "Content-Length"), text("%zu", r->body_size));
    ck_assert_str_eq(header(head, "ETag"), header(r, "ETag"));
    ck_assert_uint_eq(head->body_size, 0);
    expect_status(http(server, .path = path_of(_i), .key = "", .headers = {"Accept: text/html"}),
                  200);
}
END_TEST

START_TEST(the_compressed_script_is_equal_and_at_most_15_kB)
{
    struct response *plain = ask(path_of(_i), NULL),
                    *r = ask(path_of(_i), "Accept-Encoding: br, gzip;q=0.5");
    unsigned char *out = malloc(plain->body_size + 1);
    z_stream z = {.next_in = (unsigned char *)r->body,
                  .avail_in = (unsigned)r->body_size,
                  .next_out = out,
                  .avail_out = (unsigned)plain->body_size + 1};
    expect_header(r, "Content-Encoding", "gzip");
    expect_header(r, "Vary", "accept-encoding");
    ck_assert_msg(r->body_size <= SIZE_MAX_BYTES, "%zu bytes", r->body_size);
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.total_out, plain->body_size);
    ck_assert_mem_eq(out, plain->body, plain->body_size);
    inflateEnd(&z);
    ck_assert_str_ne(header(r, "ETag"), header(plain, "ETag"));
    ck_assert_ptr_null(header(ask(path_of(_i), "Accept-Encoding: gzip;q=0"), "Content-Encoding"));
}
END_TEST

START_TEST(a_current_copy_is_304)
{
    const char *codings[] = {"Accept-Encoding: gzip", "Accept-Encoding: identity"};
    for (size_t i = 0; i < COUNT(codings); i++) {
        struct response *first = ask(path_of(_i), codings[i]);
        struct response *r =
            http(server, .path = path_of(_i), .key = "",
                 .headers = {codings[i], text("If-None-Match: %s", header(first, "ETag"))});
        expect_status(r, 304);
        expect_header(r, "Vary", "accept-encoding");
        ck_assert_uint_eq(r->body_size, 0);
        ck_assert_str_eq(header(r, "ETag"), header(first, "ETag"));
        ck_assert_str_eq(header(r, "Cache-Control"), header(first, "Cache-Control"));
        expect_header(r, "Access-Control-Allow-Origin", "*");
    }
    expect_status(ask(path_of(_i), "If-None-Match: \"1-1\""), 200);
}
END_TEST

START_TEST(another_method_is_405)
{
    struct response *r = http(server, .method = "POST", .path = path_of(_i), .key = "", .body = "");
    expect_error(r, 405, "method_not_allowed");
    expect_header(r, "Allow", "GET, HEAD, OPTIONS");
    expect_status(http(server, .method = "OPTIONS", .path = path_of(_i), .key = ""), 204);
}
END_TEST

START_TEST(another_version_is_404_and_not_cached)
{
    struct response *r = ask("/widget/0000000000000000/widget.js", NULL);
    expect_error(r, 404, "not_found");
    expect_header(r, "Cache-Control", "no-store");
    expect_header(r, "Access-Control-Allow-Origin", "*");
    expect_error(ask(text("/widget/%.15s/widget.js", pinned() + strlen("/widget/")), NULL), 404,
                 "not_found");
    expect_error(ask("/widget/", NULL), 404, "not_found");
}
END_TEST

START_TEST(the_printed_element_pins_these_bytes)
{
    unsigned char digest[EVP_MAX_MD_SIZE], base64[80];
    unsigned size;
    struct response *r = ask(pinned(), "Accept-Encoding: identity");
    ck_assert_int_eq(EVP_Digest(r->body, r->body_size, digest, &size, EVP_sha384(), NULL), 1);
    EVP_EncodeBlock(base64, digest, (int)size);
    ck_assert_str_eq(embedded("integrity"), text("sha384-%s", (char *)base64));
    ck_assert_str_eq(ask("/widget.js", NULL)->body, r->body);
    ck_assert_str_eq(assay_ok(server, "agent", "embed", agent, NULL),
                     text("<script src=\"%s\" integrity=\"%s\" crossorigin=\"anonymous\" "
                          "data-agent=\"%s\" async></script>",
                          embedded("src"), embedded("integrity"), agent));
    assay_ok(server, "agent", "update", agent, "--theme",
             "{\"position\":\"left\",\"color\":\"#0B6e4f\"}", NULL);
    ck_assert_str_eq(assay_ok(server, "agent", "embed", agent, NULL),
                     text("<script src=\"%s\" integrity=\"%s\" crossorigin=\"anonymous\" "
                          "data-agent=\"%s\" data-color=\"#0B6e4f\" "
                          "data-position=\"left\" async></script>",
                          embedded("src"), embedded("integrity"), agent));
    static const char *const others[] = {"{\"position\":\"\\\"><b>\",\"color\":\"#12\\\"><b\"}",
                                         "{\"color\":\"red\"}", "{\"position\":3}"};
    for (size_t i = 0; i < COUNT(others); i++) {
        assay(server, "agent", "update", agent, "--theme", others[i],
              NULL); /* refused or stored: nothing of it is printed */
        ck_assert_ptr_null(strstr(assay_ok(server, "agent", "embed", agent, NULL), "<b"));
        ck_assert_ptr_null(strstr(assay_ok(server, "agent", "embed", agent, NULL), "\"red\""));
    }
    ck_assert_int_eq(assay(server, "agent", "embed", "01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL).status, 1);
    ck_assert_int_eq(assay(server, "agent", "embed", "x", NULL).status, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("script");
    TCase *tc = harness_case(suite, "script");
    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, any_page_can_load_and_cache_the_script, 0, 2);
    tcase_add_loop_test(tc, the_compressed_script_is_equal_and_at_most_15_kB, 0, 2);
    tcase_add_loop_test(tc, a_current_copy_is_304, 0, 2);
    tcase_add_loop_test(tc, another_method_is_405, 0, 2);
    tcase_add_test(tc, another_version_is_404_and_not_cached);
    tcase_add_test(tc, the_printed_element_pins_these_bytes);
    return harness_main(suite);
}
