/*
 * A worker buffers a bounded part of the bodies that are being sent; the largest are refused first.
 * This server's bound is 4 MiB.
 */
#include "t/kit/harness.h"

#include <poll.h>

static struct server *server;

static void setup(void)
{
    ck_assert_int_eq(setenv("ASSAYD", "./t/kit/small_assayd", 1), 0);
    server = server_shared(
        &(struct server_options){.workers = 1, .yaml = "internal_listen: 127.0.0.1:0"});
}

static void teardown(void)
{
    server_shared_stop(server);
}

enum { WHOLE = 65000, LARGE = 60000, MIDDLE = 20000, SMALL = 2000 };

static struct raw *unfinished(size_t sent)
{
    static char body[WHOLE];
    struct raw *raw = raw_open(server);
    memset(body, ' ', sizeof(body));
    raw_text(raw,
             "POST /api/v1/widget/init HTTP/1.1\r\nHost: x\r\nContent-Type: "
             "application/json\r\nContent-Length: %d\r\n\r\n",
             WHOLE);
    raw_send(raw, body, sent);
    return raw;
}

static bool finish(struct raw *raw, size_t sent)
{
    static char rest[WHOLE];
    memset(rest, ' ', sizeof(rest));
    raw_send(raw, rest, WHOLE - sent);
    return raw_response(raw, false, 5000)->status != 0;
}

static size_t ended(struct raw *const *raws, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += poll(&(struct pollfd){.fd = raws[i]->fd, .events = POLLIN}, 1, 0) != 0;
    return n;
}

static struct raw *larges[150];

/* 4 MiB hold 69 of them and the others */
static bool enough_are_ended(void *arg)
{
    (void)arg;
    return ended(larges, COUNT(larges)) >= COUNT(larges) - 69;
}

START_TEST(the_largest_unfinished_bodies_are_dropped_over_the_bound)
{
    struct raw *smalls[20], *middles[20];
    struct server internal = server_internal(server);
    for (size_t i = 0; i < COUNT(smalls); i++) {
        smalls[i] = unfinished(SMALL);
        middles[i] = unfinished(MIDDLE);
    }
    for (size_t i = 0; i < COUNT(larges); i++)
        larges[i] = unfinished(LARGE);
    /* two timeout sweeps: one a second */
    ck_assert_msg(wait_until(enough_are_ended, NULL, 4000), "only %zu are ended",
                  ended(larges, COUNT(larges)));
    size_t gone = ended(larges, COUNT(larges));
    ck_assert_uint_lt(gone, 110);
    ck_assert_int_ge(metric(&internal, "assay_connections_cut_off_total{what=\"upload\"}"),
                     (long)gone);
    ck_assert_int_eq(metric(&internal, "assay_connections_cut_off_total{what=\"answer\"}"), 0);
    for (size_t i = 0; i < COUNT(smalls); i++)
        ck_assert_msg(finish(smalls[i], SMALL) && finish(middles[i], MIDDLE),
                      "a smaller one was ended");
    for (size_t i = 0; i < COUNT(larges); i++)
        raw_close(larges[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uploads");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_largest_unfinished_bodies_are_dropped_over_the_bound);
    return harness_main(suite);
}
