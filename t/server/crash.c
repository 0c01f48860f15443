/*
 * kill -9 of any process at any moment under load, many times: acknowledged changes are stored,
 * each requested change is applied once, and no repair is needed. ASSAY_CRASH_SECONDS sets the
 * duration, ASSAY_CRASH_SEED the order.
 */
#include "t/kit/changes.h"

#include <signal.h>

enum {
    SECONDS = 18, /* of load, and until there were so many kills and answers */
    KILLS_MIN = 11,
    ANSWERS_MIN = 101,
    PATIENCE_MS = 30000,
};

static struct origin *origin;
static struct server *server;

static struct response *ask_server(void *arg, unsigned client, const struct call *call)
{
    (void)arg;
    (void)client;
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

static bool killed_enough(const struct changes *c, unsigned kills)
{
    return kills >= KILLS_MIN && c->acknowledged >= ANSWERS_MIN;
}

/* A slow machine gets up to ${PATIENCE_MS} more for enough kills and answers. */
static unsigned kill_under_load(struct changes *c, uint64_t *random)
{
    unsigned seconds = changes_setting("ASSAY_CRASH_SECONDS", SECONDS), kills = 0;
    int64_t deadline = now_ms() + 1000 * (int64_t)seconds;
    while (now_ms() < deadline + (killed_enough(c, kills) ? 0 : PATIENCE_MS)) {
        changes_let_work(c, random);
        kill_one(random);
        kills++;
    }
    return kills;
}

static void expect_clean(const char *what)
{
    struct run online = assay(server, "check", NULL);
    ck_assert_msg(online.status == 0, "%s: check, online: %s%s", what, online.out, online.err);
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
    unsigned kills = kill_under_load(&changes, &random);
    char *what = text("seed %u: %u kills", seed, kills);
    changes_end(&changes, what);
    ck_assert_msg(killed_enough(&changes, kills), "%s: too few kills or answers", what);
    changes_expect_graded(server);
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
    tcase_set_timeout(tcase, 300 + changes_setting("ASSAY_CRASH_SECONDS", SECONDS));
    tcase_add_test(tcase, no_acknowledged_change_is_lost_or_applied_twice);
    return harness_main(suite);
}
