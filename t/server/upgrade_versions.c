/*
 * USR2 between versions that differ in one number each. The layout of shared memory may differ;
 * counters then start again. The inherited state, the messages between processes and the store's
 * format may not differ.
 */
#include "t/kit/upgrades.h"
#include "store/store.h"

#include <signal.h>

/*
 * other scoreboard, request statistics, limiter statistics and counts; the inherited state has one
 * more line
 */
static const char *const LATER = "./t/kit/later_assayd";

#define TEXT_OF(value) TEXT_OF_TOKEN(value)
#define TEXT_OF_TOKEN(token) #token
#define LAYOUT TEXT_OF(STORE_LAYOUT)

/* An incompatible version, and the message. */
static const struct {
    const char *program, *says;
} others[] = {
    {"./t/kit/manifest_assayd", "these two versions cannot work side by side: restart instead"},
    {"./t/kit/channel_assayd", "these two versions cannot work side by side: restart instead"},
    {"./t/kit/format_assayd",
     "data.mdb has format 1." LAYOUT ", but this version of Assay reads only format 99." LAYOUT},
};

/* reads and writes; the remaining requests of the limit */
static long expect_limited_service(void)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {"Prefer: respond-async"}, .body = "url=http://x.test/");
    expect_status(r, 202);
    r = http_get(server, "/api/v1/reports");
    expect_status(r, 200);
    return atol(header(r, "X-RateLimit-Remaining"));
}

START_TEST(a_version_with_other_mappings_upgrades_and_downgrades)
{
    long left = expect_limited_service();
    ck_assert_int_eq(left, UPGRADES_LIMIT - 2);
    upgrades_point_at(LATER);
    expect_end(upgrade());
    ck_assert_int_eq(expect_limited_service(),
                     UPGRADES_LIMIT - 2); /* counted in a new table beside the old one */
    struct run stats = assay(server, "stats", NULL);
    ck_assert_msg(stats.status == 1 && strstr(stats.err, "another version") != NULL, "%d: %s",
                  stats.status, stats.err);
    upgrades_point_at("./assayd");
    expect_end(upgrade()); /* with the unknown line */
    ck_assert_int_le(expect_limited_service(), UPGRADES_LIMIT - 2);
    assay_ok(server, "stats", NULL);
    assay_ok(server, "check", NULL);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 3);
    server_stop(server);
}
END_TEST

START_TEST(an_incompatible_version_is_refused_and_the_old_one_continues)
{
    pid_t before[8], after[8];
    expect_limited_service();
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    upgrades_point_at(others[_i].program);
    server_signal(server, SIGUSR2);
    ck_assert_msg(server_says(server, "this one continues", 0, 20000), "%s", server_log(server));
    ck_assert_msg(strstr(server_log(server), others[_i].says) != NULL, "%s", server_log(server));
    ck_assert_int_eq(upgrades_master(), server->pid);
    expect_limited_service();
    ck_assert_uint_eq(server_children(server, after, COUNT(after)), 4);
    for (size_t i = 0; i < 4; i++) /* writer and auditor may have been replaced */
        if (strstr(process_title(before[i]), "worker") != NULL)
            ck_assert_msg(process_alive(before[i]), "a worker was replaced\n%s",
                          server_log(server));
    upgrades_point_at("./assayd");
    expect_end(upgrade());
    expect_limited_service();
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 3);
    /* and not server_stop, which takes the logged refusal for an error */
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upgrade_versions");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, upgrades_setup, upgrades_teardown);
    tcase_add_test(tcase, a_version_with_other_mappings_upgrades_and_downgrades);
    tcase_add_loop_test(tcase, an_incompatible_version_is_refused_and_the_old_one_continues, 0,
                        COUNT(others));
    return harness_main(suite);
}
