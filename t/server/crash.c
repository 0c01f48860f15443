/*
 * kill -9 of any process at any moment under load, many times: acknowledged changes are stored,
 * each requested change is applied once, and no repair is needed. ASSAY_CRASH_SECONDS sets the
 * duration, ASSAY_CRASH_SEED the order.
 */
#include "t/kit/changes.h"

#include <signal.h>

enum { SECONDS = 18 };

static struct origin *origin;
static struct server *server;

static struct response *ask_server(void *arg, const struct call *call)
{
    (void)arg;
    return http_call(server, call);
}

static void kill_one(uint64_t *random)
{
    pid_t pids[32];
    size_t count = server_children(server, pids, COUNT(pids));
    pid_t writer = server_process(server, "assayd: writer");
    uint64_t choice = changes_random(random) % 10;
    if (choice == 0) {
        server_kill(server);
        server_start_again(server);
    } else if (choice < 5 && writer) /* the most important process is killed most often */
        kill(writer, SIGKILL);
    else if (count)
        kill(pids[changes_random(random) % (count < COUNT(pids) ? count : COUNT(pids))], SIGKILL);
}

static unsigned kill_many(struct changes *c, uint64_t *random)
{
    unsigned kills = 0;
    for (int64_t deadline =
             now_ms() + 1000 * (int64_t)changes_setting("ASSAY_CRASH_SECONDS", SECONDS);
         now_ms() < deadline; kills++) {
        changes_let_work(c, random);
        kill_one(random);
    }
    return kills;
}

static void expect_clean(const char *what)
{
    struct run online = assay(server, "check", NULL);
    ck_assert_msg(online.status == 0, "%s: check, online: %s%s", what, online.out, online.err);
    ck_assert_msg(changes_jobs_end(server), "%s: jobs were lost\n%s", what, server_log(server));
    server_stop(server);
    struct run offline = assay(server, "check", NULL);
    ck_assert_msg(offline.status == 0, "%s: check, at rest: %s%s", what, offline.out, offline.err);
}

START_TEST(no_acknowledged_change_is_lost_or_applied_twice)
{
    unsigned seed = changes_setting("ASSAY_CRASH_SEED", (unsigned)getpid());
    uint64_t random = 88172645463325252u ^ ((uint64_t)seed << 20);
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .workers = 3});
    server_start(server);
    struct changes changes = {.origin = origin, .ask = ask_server};
    changes_start(&changes, random);
    unsigned kills = kill_many(&changes, &random);
    char *what = text("seed %u: %u kills", seed, kills);
    changes_end(&changes, what);
    ck_assert_uint_gt(kills, 10);
    ck_assert_uint_gt(changes.acknowledged, 100);
    changes_expect(&changes, server);
    expect_clean(what);
    server_free(server);
    origin_stop(origin);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crash");
    TCase *tcase = harness_case(suite, "a server");
    tcase_set_timeout(tcase, 120 + changes_setting("ASSAY_CRASH_SECONDS", SECONDS));
    tcase_add_test(tcase, no_acknowledged_change_is_lost_or_applied_twice);
    return harness_main(suite);
}
