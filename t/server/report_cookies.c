/*
 * The cookie that a right password sets: what it opens, what ends it, its path and its Secure flag.
 */
#include "core/auth/signing_keys.h"
#include "core/web/report_cookie.h"
#include "t/kit/report_password.h"
#include "t/kit/tls.h"

#include <curl/curl.h>
#include <time.h>

#define HOUR INT64_C(3600000)

/* ---- cookies that do not open ---- */

static struct store *open_store(void)
{
    char why[512];
    struct store *store;
    const struct store_options options = {
        .dir = server->data, .map_size = 1 << 30, .max_readers = CONF_STORE_READERS};
    ck_assert_msg(store_open(&options, &store, why, sizeof(why)) == STORE_OK, "%s", why);
    return store;
}

struct making {
    const struct signing_keys *keys;
    int64_t made_ms;
    char *cookie;
};

static void make_cookie(void *arg, enum store_status status, const struct store_report *report)
{
    struct making *making = arg;
    char value[REPORT_COOKIE_SIZE];
    ck_assert_int_eq(status, STORE_OK);
    ck_assert_uint_gt(report_cookie_make(making->keys, report, making->made_ms, value), 0);
    making->cookie = text("Cookie: " REPORT_COOKIE "=%s", value);
}

/* The cookie that this server would have made ${ago_ms} ago. */
static char *cookie_made(int64_t id, int64_t ago_ms)
{
    char why[SECRETS_PATH + 256];
    struct signing_keys *keys =
        signing_keys_open(text("%s/secrets", server->data), why, sizeof(why));
    ck_assert_msg(keys != NULL, "%s", why);
    struct store *store = open_store();
    struct making making = {.keys = keys, .made_ms = (int64_t)time(NULL) * 1000 - ago_ms};
    store_report_get(store, STORE_ANY_WORKSPACE, (uint64_t)id, false, make_cookie, &making);
    store_read_end(store);
    store_close(store);
    signing_keys_free(keys);
    return making.cookie;
}

START_TEST(an_expired_cookie_does_not_open)
{
    int64_t id = report_new_with("2", "secret");
    expect(get_page(id, NULL), is_open(get_page(id, cookie_made(id, 0))));
    expect(get_page(id, NULL), is_open(get_page(id, cookie_made(id, 12 * HOUR - 60000))));
    ck_assert(is_form(get_page(id, cookie_made(id, 12 * HOUR + 1000))));
    ck_assert(is_form(get_page(id, cookie_made(id, 48 * HOUR))));
}
END_TEST

START_TEST(a_cookie_of_another_report_does_not_open)
{
    int64_t a = report_new_with("2", "secret"), b = report_new_with("2", "secret");
    ck_assert(is_form(get_page(a, cookie_for(b, "secret"))));
    ck_assert(is_open(get_page(b, cookie_for(b, "secret"))));
}
END_TEST

START_TEST(a_changed_cookie_does_not_open)
{
    int64_t id = report_new_with("2", "secret");
    char *cookie = cookie_for(id, "secret");
    size_t from = strlen("Cookie: assay_report="), n = strlen(cookie);
    for (size_t i = from; i < n; i++) {
        char *changed = text("%s", cookie);
        changed[i] = changed[i] == '0' ? '1' : '0';
        ck_assert_msg(is_form(get_page(id, changed)), "%s", changed);
    }
    for (size_t size = from; size < n; size += 7)
        ck_assert(is_form(get_page(id, text("%.*s", (int)size, cookie))));
    ck_assert(is_form(get_page(id, text("%s0", cookie))));
    ck_assert(is_form(get_page(id, text("Cookie: assay_report=%04000d", 1))));
    ck_assert(is_open(get_page(id, cookie)));
}
END_TEST

/* Another host of the domain can set cookies that the browser sends first. */
START_TEST(a_foreign_cookie_does_not_hide_the_right_one)
{
    int64_t id = report_new_with("2", "secret");
    const char *right = cookie_for(id, "secret") + strlen("Cookie: ");
    expect(get_page(id, NULL), is_open(get_page(id, text("Cookie: assay_report=x; %s", right))));
    struct response *r =
        http(server, .path = page_path(id), .key = "",
             .headers = {BROWSER, "Cookie: assay_report=x", text("Cookie: %s", right)});
    expect(r, is_open(r));
    ck_assert(is_form(get_page(id, "Cookie: assay_report=x; assay_report=y")));
}
END_TEST

START_TEST(a_cookie_stays_valid_when_the_secret_is_rotated)
{
    int64_t id = report_new_with("2", "secret");
    char *cookie = cookie_for(id, "secret");
    assay_ok(server, "secret", "rotate", NULL);
    for (int i = 0; i < 20; i++)
        ck_assert(is_open(get_page(id, cookie)));
    ck_assert(is_open(get_page(id, cookie_for(id, "secret"))));
}
END_TEST

/* ---- cookies that end ---- */

enum { CONNECTIONS = 32 };

/* Connections that are spread over the workers, and stay with them. */
static struct client *clients[CONNECTIONS];

static struct response *get_kept(size_t i, int64_t id, const char *cookie)
{
    return http_kept(clients[i], .path = page_path(id), .key = "", .headers = {BROWSER, cookie});
}

/* Columns: changes of the report, the status of its page afterwards, whether it is open. */
static const struct {
    const char *changes[3];
    int status;
    bool open;
} endings[] = {
    {{"password=other"}, 200, false},
    {{"password=secret"}, 200, false}, /* the same password has another hash */
    {{"privacy=2&password=secret"}, 200, false},
    {{"privacy=1"}, 404, false},
    {{"privacy=1", "privacy=2&password=secret"}, 200, false},
    {{"privacy=0"}, 200, true}, /* public */
    {{"privacy=0", "privacy=2&password=secret"}, 200, false},
    {{"update=1"}, 200, true}, /* no change of the password */
    {{"privacy=2"}, 200, true},
};

START_TEST(a_change_ends_every_cookie_at_once_on_every_worker)
{
    server->options.workers = 4;
    server_start_with(server, UNLIMITED);
    int64_t id = report_new_with("2", "secret");
    char *cookie = cookie_for(id, "secret");
    for (size_t i = 0; i < CONNECTIONS; i++) {
        clients[i] = client_new(server);
        ck_assert(is_open(get_kept(i, id, cookie)));
    }
    for (size_t i = 0; i < COUNT(endings[_i].changes) && endings[_i].changes[i] != NULL; i++)
        change(id, endings[_i].changes[i]);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct response *r = get_kept(i, id, cookie);
        expect_status(r, endings[_i].status);
        expect(r, r->status == 404 || is_open(r) == endings[_i].open);
        client_free(clients[i]);
    }
    server_stop(server);
}
END_TEST

/* ---- addresses ---- */

START_TEST(a_path_of_base_url_is_that_of_the_cookie)
{
    server_start_with(server, UNLIMITED "base_url: https://assay.example/grader/\n");
    int64_t id = report_new_with("2", "secret");
    struct response *r = attempt(id, "secret", BROWSER);
    expect_status(r, 303);
    ck_assert_str_eq(header(r, "Location"), text("/grader%s", page_path(id)));
    ck_assert_msg(strstr(header(r, "Set-Cookie"),
                         text("; Path=/grader%s; Max-Age=43200; HttpOnly; SameSite=Lax; Secure",
                              page_path(id))) != NULL,
                  "%s", header(r, "Set-Cookie"));
    server_stop(server);
}
END_TEST

static size_t keep_head(char *bytes, size_t size, size_t count, void *to)
{
    char *head = to;
    strncat(head, bytes, size * count < 4000 - strlen(head) ? size * count : 0);
    return size * count;
}

START_TEST(a_cookie_set_over_tls_is_secure)
{
    static char head[4096];
    char line[256] = "", url[128];
    char *certificate = text("%s/cert.pem", server->dir), *key = text("%s/key.pem", server->dir);
    EVP_PKEY_free(tls_pair(certificate, key, false, 1));
    server_start_with(server, UNLIMITED);
    int64_t id = report_new_with("2", "secret");
    server_stop(server);
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", certificate), "--set",
                 text("listen.1.tls.key=%s", key), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_int_gt(read(server->output, line, sizeof(line) - 1), 0);
    ck_assert_int_eq(sscanf(line, "ready %100s workers=", url), 1);
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, text("%s%s/password", url, page_path(id)));
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "password=secret");
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, keep_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, head);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 20000L);
    ck_assert_int_eq(curl_easy_perform(curl), CURLE_OK);
    curl_easy_cleanup(curl);
    ck_assert_msg(strcasestr(head, "HttpOnly; SameSite=Lax; Secure\r\n") != NULL, "%s", head);
    ck_assert(is_open(get_page(id, cookie_for(id, "secret"))));
    ck_assert_ptr_null(strstr(header(attempt(id, "secret", NULL), "Set-Cookie"), "Secure"));
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("report_cookies");
    TCase *shared = harness_case(suite, "one server"), *own = harness_case(suite, "a server each");
    tcase_add_unchecked_fixture(shared, setup, teardown);
    tcase_add_test(shared, an_expired_cookie_does_not_open);
    tcase_add_test(shared, a_cookie_of_another_report_does_not_open);
    tcase_add_test(shared, a_changed_cookie_does_not_open);
    tcase_add_test(shared, a_foreign_cookie_does_not_hide_the_right_one);
    tcase_add_test(shared, a_cookie_stays_valid_when_the_secret_is_rotated);
    tcase_add_checked_fixture(own, setup_own, teardown_own);
    tcase_add_loop_test(own, a_change_ends_every_cookie_at_once_on_every_worker, 0, COUNT(endings));
    tcase_add_test(own, a_path_of_base_url_is_that_of_the_cookie);
    tcase_add_test(own, a_cookie_set_over_tls_is_secure);
    return harness_main(suite);
}
