/*
 * Bulk sync with large bodies: how many bytes are accepted, compressed or not, how a batch affects
 * other requests, and a sync that is interrupted.
 */
#include "t/kit/sync.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* ---- sizes and compression ---- */

static struct response *post_bytes(const char *coding, const char *body, size_t size)
{
    return http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
                .headers = {"Content-Type: application/json", text("Content-Encoding: %s", coding)},
                .body = body, .body_size = size);
}

/* A body of exactly that many bytes. */
static char *body_of(const char *of, size_t size)
{
    return padded(envelope(of, "", "products", text("[%s]", product(1, "Mug", ""))), size);
}

START_TEST(a_compressed_body_is_accepted_and_a_bomb_refused)
{
    char *of = agent_new(), *body = envelope(of, "", "products", many(50));
    size_t size, little_size, most = 5 << 20;
    char *packed = gzip(body, strlen(body), &size);
    expect_int(post_bytes("gzip", packed, size), "data.queued", 50);
    expect_int(post_bytes("GZIP", packed, size), "data.skipped_unchanged", 50);
    expect_error(post_bytes("gzip", packed, size - 1), 400, "bad_request");
    expect_error(post_bytes("gzip", packed, size / 2), 400, "bad_request");
    expect_error(post_bytes("gzip", body, strlen(body)), 400, "bad_request");
    char *nothing = envelope(of, "", "products", "[]"),
         *little = gzip(nothing, strlen(nothing), &little_size);
    ck_assert_uint_le(little_size,
                      256); /* read on the loop: all other bodies here are read in a thread */
    expect_status(post_bytes("gzip", little, little_size), 200);
    expect_error(post_bytes("gzip", little, little_size / 2), 400, "bad_request");
    expect_error(post_bytes("br", packed, size), 415, "unsupported_media_type");
    char *bomb = calloc(1, 64 << 20);
    packed = gzip(bomb, 64 << 20, &size);
    expect_error(post_bytes("gzip", packed, size), 413, "payload_too_large");
    char *at_most = body_of(agent_new(), most), *over = body_of(of, most + 1);
    packed = gzip(at_most, most, &size);
    expect_status(post_bytes("gzip", packed, size), 200);
    packed = gzip(over, most + 1, &size);
    expect_error(post_bytes("gzip", packed, size), 413, "payload_too_large");
}
END_TEST

START_TEST(a_body_has_at_most_five_mebibytes)
{
    char *of = agent_new();
    size_t most = 5 << 20;
    struct response *r = http(server, .method = "POST", .path = "/v1/wp/products/sync",
                              .key = token, .headers = {"Content-Type: application/json"},
                              .body = body_of(of, most + 1), .body_size = most + 1);
    expect_error(r, 413, "payload_too_large");
    ck_assert_int_eq(counted(of, "products"), 0);
    r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
             .headers = {"Content-Type: application/json"}, .body = body_of(of, most),
             .body_size = most);
    expect_int(r, "data.queued", 1);
}
END_TEST

static struct response *post_signed(const char *key, bool packed, const char *signed_by,
                                    const char *body, size_t size)
{
    size_t out_size = size;
    const char *out = packed ? gzip(body, size, &out_size) : body;
    return http(server, .method = "POST", .path = "/v1/wp/posts/sync", .key = key,
                .headers = {"Content-Type: application/json",
                            text("Content-Encoding: %s", packed ? "gzip" : "identity"),
                            signed_by == NULL
                                ? "X-Nothing: 1"
                                : signature(signed_by, (long)time(NULL), out, out_size)},
                .body = out, .body_size = out_size);
}

/* A post of random words, which compresses badly. */
static char *large_post(const char *of, const char *more, const char *behind, size_t *size)
{
    char *all = malloc(2 << 20);
    uint32_t seed = 7;
    size_t n = (size_t)sprintf(
        all,
        "{\"agent_id\":\"%s\",\"site_url\":\"https://"
        "shop.example\",\"plugin_version\":\"1\"%s,\"posts\":[{\"wp_id\":1,\"post_type\":\"post\","
        "\"permalink\":\"https://shop.example/1\",\"title\":\"T\",\"content_html\":\"<p>",
        of, more);
    for (; n < 1 << 20; n += 2, seed = seed * 1664525 + 1013904223)
        all[n] = (char)('a' + (seed >> 24) % 26), all[n + 1] = (seed >> 16) % 5 == 0 ? ' ' : 'e';
    n += (size_t)sprintf(all + n, "</p>\"}]}%s", behind);
    *size = n;
    return all;
}

/* Another thread reads a large body; the results must be the same. */
START_TEST(a_large_body_is_validated_as_a_small_one)
{
    bool packed = _i == 1;
    size_t size;
    char *of = agent_new(), *good = large_post(of, "", "", &size);
    expect_error(post_signed(signing, packed, NULL, good, size), 401, "signature_missing");
    expect_error(post_signed(signing, packed, token, good, size), 401, "signature_mismatch");
    expect_error(post_signed(token, packed, signing, good, size), 401, "signature_mismatch");
    ck_assert_int_eq(counted(of, "posts"), 0);
    expect_int(post_signed(signing, packed, signing, good, size), "data.queued", 1);
    expect_int(post_signed(token, packed, NULL, good, size), "data.skipped_unchanged", 1);
    static const struct {
        const char *more, *behind;
        int status;
        const char *code;
    } wrong[] = {
        {"", "}", 400, "bad_request"},
        {",\"a\":NaN", "", 400, "bad_request"},
        {",\"agent_id\":\"twice\"", "", 400, "bad_request"},
        {",\"a\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "", 400, "bad_request"},
        {",\"timezone\":\"Mars/Base\"", "", 422, "validation_failed"},
        {",\"timezone\":7", "", 422, "validation_failed"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *body = large_post(of, wrong[i].more, wrong[i].behind, &size);
        expect_error(post_signed(token, packed, NULL, body, size), wrong[i].status, wrong[i].code);
    }
    if (packed) {
        char *cut = gzip(good, size, &size);
        expect_error(post_bytes("gzip", cut, size / 2), 400, "bad_request");
    }
}
END_TEST

START_TEST(a_client_that_disconnects_during_its_batch_harms_nobody)
{
    char *of = agent_new();
    size_t size;
    char *body = large_post(of, "", "", &size);
    for (int i = 0; i < 30; i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw,
                 "POST /v1/wp/posts/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                 "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 token, size);
        raw_send(raw, body, size);
        usleep((useconds_t)(i * 300));
        raw_close(raw);
        expect_int(sync_one(of, "", product((unsigned)i + 1, "Mug", "")), "data.queued", 1);
    }
    expect_status(post_signed(token, false, NULL, body, size), 200);
    ck_assert_int_eq(counted(of, "posts"), 1);
}
END_TEST

/* Columns: sync.max_bytes as written, and in bytes. */
static const struct {
    const char *written;
    size_t most;
} limits[] = {{"64KiB", 64 << 10}, {"7340033", 7340033}};

START_TEST(the_configuration_sets_the_byte_limit)
{
    size_t size, most = limits[_i].most;
    server_configure(server, text("%ssync: { max_bytes: %s }\n", SYNC_MANY, limits[_i].written));
    server_stop(server);
    server_start(server);
    struct response *r =
        http(server, .method = "POST", .path = "/v1/wp/handshake",
             .headers = {"Content-Type: application/json"}, .key = token,
             .body = "{\"site_url\":\"https://shop.example\",\"plugin_version\":\"1.0\"}");
    expect_int(r, "data.limits.batch_bytes", most);
    for (int packed = 0; packed < 2; packed++) {
        char *of = agent_new(), *at_most = body_of(of, most), *over = body_of(of, most + 1);
        if (packed)
            over = gzip(over, most + 1, &size);
        expect_error(post_bytes(packed ? "gzip" : "identity", over, packed ? size : most + 1), 413,
                     "payload_too_large");
        ck_assert_int_eq(counted(of, "products"), 0);
        if (packed)
            at_most = gzip(at_most, most, &size);
        expect_int(post_bytes(packed ? "gzip" : "identity", at_most, packed ? size : most),
                   "data.queued", 1);
    }
}
END_TEST

START_TEST(a_body_that_ends_early_changes_nothing)
{
    char *of = agent_new(),
         *body = envelope(of, "", "products", text("[%s]", product(1, "Mug", "")));
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "POST /v1/wp/products/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             token, strlen(body) + 1, body);
    raw_close(raw);
    ck_assert_int_eq(counted(of, "products"), 0);
}
END_TEST

/* A post with five mebibytes of HTML, more than one iteration of the loop reads. */
START_TEST(a_batch_of_five_mebibytes_of_html_is_accepted)
{
    char *of = agent_new(), *html = malloc(50001), *items = text("[");
    for (size_t i = 0; i < 50000; i += 10)
        memcpy(html + i, i % 20 == 0 ? "<p>word up" : "and on</p>", 10);
    html[50000] = '\0';
    for (unsigned i = 1; i <= 100; i++)
        items = text("%s%s{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://"
                     "shop.example/%u\",\"title\":\"T\",\"content_html\":\"%s\"}",
                     items, i == 1 ? "" : ",", i, i, html);
    expect_int(post("posts/sync", envelope(of, "", "posts", text("%s]", items))), "data.queued",
               100);
}
END_TEST

/* ---- an interrupted sync ---- */

#define BATCHES 12
#define OF_BATCH 50

/* Send the batch of that number until it is answered, also while the server restarts. */
static struct response *send_batch(const char *of, unsigned number, bool last, const char *price)
{
    char *items = text("[");
    for (unsigned i = 0; i < OF_BATCH; i++)
        items =
            text("%s%s%s", items, i == 0 ? "" : ",", product(number * OF_BATCH + i + 1, price, ""));
    char *body =
        envelope(of, last ? ",\"sync_id\":\"cut\",\"complete\":true" : ",\"sync_id\":\"cut\"",
                 "products", text("%s]", items));
    struct response *r = NULL;
    for (int tries = 0; tries < 200; tries++) {
        r = http(server, .method = "POST", .path = "/v1/wp/products/sync", .key = token,
                 .headers = {"Content-Type: application/json"}, .body = body, .may_fail = true);
        if (r->status == 200)
            return r;
        ck_assert_msg(r->status == 0 || r->status == 503, "%s", response_text(r));
        usleep(50000);
    }
    ck_abort_msg("no answer: %s", response_text(r));
    return NULL;
}

START_TEST(a_sync_survives_a_killed_server)
{
    static const char *const victims[] = {"assayd: writer", "assayd: worker 0", "assayd: worker 1"};
    char *of = agent_new();
    sync_one(of, "", product(100000, "Gone", ""));
    for (unsigned i = 0; i < BATCHES; i++) {
        pid_t victim = server_process(server, victims[i % COUNT(victims)]);
        pid_t killer = victim == 0 || i % 2 == 1 ? 0 : fork();
        if (killer == 0 && victim != 0 && i % 2 == 0) {
            usleep((useconds_t)(rand() % 20000));
            kill(victim, SIGKILL);
            _exit(0);
        }
        struct response *r = send_batch(of, i, i == BATCHES - 1, "Mug");
        expect(r, int_at(r, "data.queued") + int_at(r, "data.skipped_unchanged") == OF_BATCH);
        expect_int(r, "data.failed", 0);
        if (killer > 0)
            waitpid(killer, NULL, 0);
    }
    ck_assert_int_eq(counted(of, "products"), BATCHES * OF_BATCH);
    for (unsigned i = 0; i < BATCHES; i++)
        expect_int(send_batch(of, i, i == BATCHES - 1, "Mug"), "data.skipped_unchanged", OF_BATCH);
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- other requests during large ones ---- */

#define SENDERS 4
#define LARGE_BATCHES 3
#define LARGE_TEXT 50000

/* A hundred posts of random text with few repeated words. */
static char *large_batch(const char *of, unsigned number)
{
    static char all[5 << 20];
    uint32_t seed = number * 7919 + 1;
    size_t n = (size_t)sprintf(all,
                               "{\"agent_id\":\"%s\",\"site_url\":\"https://"
                               "shop%u.example\",\"plugin_version\":\"1\",\"posts\":[",
                               of, number);
    for (unsigned i = 1; i <= 100; i++) {
        n += (size_t)sprintf(all + n,
                             "%s{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://"
                             "shop.example/%u\",\"title\":\"T\",\"content_html\":\"",
                             i == 1 ? "" : ",", i, i);
        for (size_t end = n + LARGE_TEXT; n < end; n += 3) {
            seed = seed * 1664525 + 1013904223;
            uint32_t c = 0x4e00 + (seed >> 8) % 20000;
            all[n] = (char)(0xe0 | c >> 12), all[n + 1] = (char)(0x80 | (c >> 6 & 0x3f)),
            all[n + 2] = (char)(0x80 | (c & 0x3f));
        }
        n += (size_t)sprintf(all + n, "\"}");
    }
    sprintf(all + n, "]}");
    return all;
}

static void send_large(const char *of, unsigned sender)
{
    for (unsigned i = 0; i < LARGE_BATCHES; i++) {
        struct response *r =
            http(server, .method = "POST", .path = "/v1/wp/posts/sync", .key = token,
                 .headers = {"Content-Type: application/json"},
                 .body = large_batch(of, sender * LARGE_BATCHES + i), .timeout_ms = 60000);
        if (r->status != 200 || int_at(r, "data.queued") != 100)
            _exit(1);
    }
    _exit(0);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct waits {
    int64_t ms[4096];
    size_t count;
    int64_t median, ninth; /* of ten */
};

static void wait_once(struct waits *w, const char *of, unsigned id)
{
    int64_t before = now_ms();
    expect_int(sync_one(of, "", product(id, "Mug", "")), "data.queued", 1);
    if (w->count < COUNT(w->ms))
        w->ms[w->count++] = now_ms() - before;
}

static void waits_end(struct waits *w)
{
    qsort(w->ms, w->count, sizeof(*w->ms), by_size);
    w->median = w->ms[w->count / 2];
    w->ninth = w->ms[w->count * 9 / 10];
}

/*
 * Compared with the time for as many concurrent requests that do not wait. Each large batch is half
 * a second of work.
 */
START_TEST(large_batches_do_not_delay_other_requests)
{
    static struct waits alone, beside;
    int left = SENDERS, status;
    unsigned id = 1;
    char *of = agent_new();
    for (; id <= 40; id++)
        wait_once(&alone, of, id);
    waits_end(&alone);
    for (unsigned i = 0; i < SENDERS; i++)
        if (fork() == 0)
            send_large(of, i);
    for (pid_t pid; left > 0; id++) {
        wait_once(&beside, of, id);
        for (; (pid = waitpid(-1, &status, WNOHANG)) > 0; left--)
            ck_assert_int_eq(status, 0);
    }
    waits_end(&beside);
    fprintf(stderr,
            "wait alone: median %lld ms, 90 %% below %lld ms; with large batches: %lld "
            "ms, %lld ms, longest %lld ms\n",
            (long long)alone.median, (long long)alone.ninth, (long long)beside.median,
            (long long)beside.ninth, (long long)beside.ms[beside.count - 1]);
    ck_assert_int_lt(beside.median, 100 + 10 * alone.median);
    ck_assert_int_lt(beside.ninth, 1000 + 10 * alone.ninth);
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- requests that wait for the writer ---- */

#define HELD_BODIES 12 /* five mebibytes each, of 64 */

static struct raw *waiting[HELD_BODIES + 6];

static bool others_are_refused(void *arg)
{
    (void)arg;
    size_t refused = 0;
    for (size_t i = 0; i < COUNT(waiting); i++)
        refused += poll(&(struct pollfd){.fd = waiting[i]->fd, .events = POLLIN}, 1, 0) != 0;
    return refused == COUNT(waiting) - HELD_BODIES;
}

/*
 * Ninety mebibytes of bodies, of which a worker holds 64: the others are refused at once, and all
 * accepted ones are applied.
 */
START_TEST(a_worker_bounds_the_bytes_of_bodies)
{
    size_t size = 5 << 20, taken = 0;
    server->options.workers = 1;
    server_configure(server, SYNC_MANY);
    server_stop(server);
    server_start(server);
    char *body = body_of(agent_new(), size);
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_eq(kill(writer, SIGSTOP), 0);
    for (size_t i = 0; i < COUNT(waiting); i++) {
        waiting[i] = raw_open(server);
        raw_text(waiting[i],
                 "POST /v1/wp/products/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                 "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 token, size);
        raw_send(waiting[i], body, size);
    }
    bool refused = wait_until(others_are_refused, NULL, 15000);
    ck_assert_int_eq(kill(writer, SIGCONT), 0);
    ck_assert(refused);
    for (size_t i = 0; i < COUNT(waiting); i++) {
        struct response *r = raw_response(waiting[i], false, 10000);
        expect(r, r->status == 200 || r->status == 503);
        taken += r->status == 200;
        raw_close(waiting[i]);
    }
    ck_assert_uint_eq(taken, HELD_BODIES);
    expect_status(post_bytes("identity", body, size), 200);
}
END_TEST

START_TEST(the_store_is_valid_after_all_tests)
{
    assay_ok(server, "check", NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync_large");
    TCase *c = harness_case(s, "one server");
    tcase_add_unchecked_fixture(c, sync_setup, sync_teardown);
    tcase_add_test(c, a_compressed_body_is_accepted_and_a_bomb_refused);
    tcase_add_test(c, a_body_has_at_most_five_mebibytes);
    tcase_add_loop_test(c, a_large_body_is_validated_as_a_small_one, 0, 2);
    tcase_add_test(c, a_client_that_disconnects_during_its_batch_harms_nobody);
    tcase_add_test(c, a_body_that_ends_early_changes_nothing);
    tcase_add_test(c, a_batch_of_five_mebibytes_of_html_is_accepted);
    tcase_add_test(c, the_store_is_valid_after_all_tests);
    c = harness_case(s, "a server each");
    tcase_add_checked_fixture(c, sync_setup, sync_teardown);
    tcase_add_loop_test(c, the_configuration_sets_the_byte_limit, 0, COUNT(limits));
    tcase_add_test(c, a_worker_bounds_the_bytes_of_bodies);
    tcase_add_test(c, large_batches_do_not_delay_other_requests);
    tcase_add_test(c, a_sync_survives_a_killed_server);
    return harness_main(s);
}
