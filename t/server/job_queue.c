/*
 * The queue of pages to grade: its limit per workspace, its fairness between workspaces, and its
 * end.
 */
#include "t/kit/harness.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { PENDING_MAX = 10000, CONNECTIONS = 8 };

static struct origin *origin;
static struct server *server;
static char *busy_key; /* key of the workspace with very many pages */
static uint16_t tar_port;
static int tar; /* accepts and never answers */

static void setup(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000005)};
    socklen_t size = sizeof(sa);
    tar = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(tar, (struct sockaddr *)&sa, sizeof(sa)), 0);
    ck_assert_int_eq(listen(tar, 64), 0);
    ck_assert_int_eq(getsockname(tar, (struct sockaddr *)&sa, &size), 0);
    tar_port = ntohs(sa.sin_port);
    origin = origin_usual();
    server = server_shared(&(struct server_options){
        .audit = text("timeout: 300s, ports: [80, 443, %u, %u]", origin_port(origin), tar_port)});
    assay_ok(server, "workspace", "create", "crowd", NULL);
    busy_key = key_new(server, "crowd", NULL);
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
    close(tar);
}

static char *tar_form(int i)
{
    return form("url", text("http://127.0.0.5:%u/%d", tar_port, i), NULL);
}

static void post_many(int count)
{
    struct raw *raws[CONNECTIONS];
    for (size_t c = 0; c < CONNECTIONS; c++)
        raws[c] = raw_open(server);
    for (int i = 0; i < count; i += CONNECTIONS * 50) {
        for (int k = i; k < i + CONNECTIONS * 50 && k < count; k++) {
            char *body = tar_form(k);
            raw_post(raws[k % CONNECTIONS], busy_key, "Prefer: respond-async\r\n", body);
            free(body);
        }
        for (int k = i; k < i + CONNECTIONS * 50 && k < count; k++) {
            struct response *r = raw_response(raws[k % CONNECTIONS], false, 10000);
            expect_status(r, 202);
            response_free(r);
        }
    }
    for (size_t c = 0; c < CONNECTIONS; c++)
        raw_close(raws[c]);
}

START_TEST(ten_thousand_pending_pages_do_not_block_other_workspaces)
{
    post_many(PENDING_MAX);
    struct response *r = http(server, .path = "/api/v1/reports", .key = busy_key);
    expect_int(r, "meta.total", PENDING_MAX);

    int more = 0; /* some pages may have timed out */
    do
        r = http(server, .method = "POST", .path = "/api/v1/reports", .key = busy_key,
                 .body = tar_form(more), .headers = {"Prefer: respond-async"});
    while (r->status == 202 && more++ < 100);
    expect_error(r, 503, "unavailable");
    expect(r, !header(r, "Retry-After"));
    r = http(server, .path = "/api/v1/reports", .key = busy_key);
    expect_int(r, "meta.total", PENDING_MAX + more);
    expect_status(http(server, .method = "DELETE", .path = report_path(int_at(r, "data.0.id")),
                       .key = busy_key),
                  200);
    r = http(server, .method = "POST", .path = "/api/v1/reports", .key = busy_key,
             .body = tar_form(0), .headers = {"Prefer: respond-async"});
    expect_status(r, 202);

    int64_t before = now_ms();
    r = http(server, .method = "POST", .path = "/api/v1/reports",
             .body = form("url", origin_url(origin, "/good"), NULL),
             .headers = {"Prefer: wait=10"});
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    ck_assert_int_lt(now_ms() - before, 3000);

    before = now_ms();
    expect_status(
        http(server, .method = "DELETE", .path = "/api/v1/projects/127.0.0.5", .key = busy_key),
        200);
    r = http(server, .path = "/api/v1/reports", .key = busy_key);
    expect_int(r, "meta.total", 0);
    r = http(server, .method = "POST", .path = "/api/v1/reports",
             .body = form("url", origin_url(origin, "/good"), NULL),
             .headers = {"Prefer: wait=10"});
    expect_str(r, "data.status", "done");
    ck_assert_int_lt(now_ms() - before, 3000);
    /* deleted reports count until they are purged */
    for (before = now_ms();; response_free(r)) {
        r = http(server, .method = "POST", .path = "/api/v1/reports", .key = busy_key,
                 .body = form("url", origin_url(origin, "/good"), NULL),
                 .headers = {"Prefer: wait=10"});
        if (r->status != 503 || now_ms() > before + 10000)
            break;
    }
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_queue");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, ten_thousand_pending_pages_do_not_block_other_workspaces);
    return harness_main(suite);
}
