/*
 * A full store: the writer drops grading results that it can neither store nor defer, and a sweep
 * of the jobs grades their pages again once the store has free space.
 */
#include "t/kit/harness.h"

/* More results than the writer defers (HELD_MAX, 1024), and those that still fit into the store. */
enum { REPORTS_MIN = 1200, DEFERRED = 5 };

static struct origin *origin;
static struct server *server;
static struct client *client;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin});
    client = client_new(server);
}

static void teardown(void)
{
    client_free(client);
    server_free(server);
    origin_stop(origin);
}

/* A held page whose results fill pages of the store: its names are random. */
static void hold_large_page(const char *path)
{
    static char body[8 << 10];
    uint64_t x = 0x9e3779b97f4a7c15;
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        n += (size_t)snprintf(body + n, sizeof(body) - n, "<img src='/");
        for (int j = 0; j < 3; j++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            n += (size_t)snprintf(body + n, sizeof(body) - n, "%016llx", (unsigned long long)x);
        }
        n += (size_t)snprintf(body + n, sizeof(body) - n, ".jpg'>");
    }
    origin_page(origin, path, 200, "Content-Type: text/html\r\n", body);
    origin_hold(origin, path);
}

/* Reports of the held page until the store is full. Returns their number. */
static size_t fill_up(int64_t *ids, size_t room)
{
    char filler[701] = "";
    memset(filler, 'f', sizeof(filler) - 1);
    for (size_t n = 0; n < room; n++) {
        const char *url = origin_url(origin, text("/large?%zu%s", n, filler));
        struct response *r =
            http_kept(client, .method = "POST", .path = "/api/v1/reports",
                      .headers = {"Prefer: respond-async"}, .body = form("url", url, NULL));
        if (r->status != 202) {
            expect_error(r, 507, "storage_full");
            return n;
        }
        ids[n] = int_at(r, "data.id");
        response_free(r);
    }
    ck_abort_msg("the store is never full");
    return 0;
}

static bool none_is_queued(void *arg)
{
    return metric(arg, "assay_audit_jobs_queued") == 0;
}

static bool is_done(void *arg)
{
    struct response *r = http_kept(client, .path = report_path(*(int64_t *)arg));
    bool done = strcmp(str_at(r, "data.status"), "done") == 0;
    response_free(r);
    return done;
}

START_TEST(reports_with_dropped_results_are_graded_again_when_space_is_free)
{
    static int64_t ids[9000];
    server_start_with(server, "store: { map_size: 4MiB }\ninternal_listen: 127.0.0.1:0");
    struct server internal = server_internal(server);
    hold_large_page("/large");
    size_t count = fill_up(ids, COUNT(ids));
    ck_assert_uint_ge(count, REPORTS_MIN);
    origin_release(origin, "/large");
    ck_assert_msg(wait_until(none_is_queued, &internal, 60000), "%s", server_log(server));
    unsigned fetches = origin_hits(origin, "/large");
    ck_assert_uint_ge(fetches, count);
    for (size_t i = 0; i < count - DEFERRED; i++)
        expect_status(http_kept(client, .method = "DELETE", .path = report_path(ids[i])), 200);
    for (size_t i = count - DEFERRED; i < count; i++)
        ck_assert_msg(wait_until(is_done, &ids[i], 15000), "%s", server_log(server));
    /* The first results were dropped. */
    ck_assert_uint_ge(origin_hits(origin, "/large"), fetches + DEFERRED);
    assay_ok(server, "check", NULL);
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dropped_results");
    TCase *tcase = harness_case(suite, "a server");
    tcase_set_timeout(tcase, 90); /* the test waits for 60 s and more on a busy machine */
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, reports_with_dropped_results_are_graded_again_when_space_is_free);
    return harness_main(suite);
}
