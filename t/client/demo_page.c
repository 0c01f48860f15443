/*
 * The demo's shop in a browser (t/client/demo_page.mjs): its questions, citations and basket.
 * Skipped with exit status 77 where Chromium or playwright-core is missing.
 */
#include "t/kit/harness.h"

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){.no_key = true});
}

static void teardown(void)
{
    server_free(server);
}

START_TEST(a_shop_visitor_gets_an_answer_and_uses_the_coupon)
{
    struct watched *demo =
        watch_start(BY_PIPE, server->dir, assay_path(), "demo", "nowhere.invalid", NULL);
    watch_expect(demo, "runs until Ctrl-C.");
    const char *before = "Chat with the demo shop: ", *page = strstr(demo->said, before);
    ck_assert_ptr_nonnull(page);
    page += strlen(before);
    ck_assert_int_eq(setenv("PAGE", text("%.*s", (int)strcspn(page, "\n"), page), 1), 0);
    struct run run = run_program("/usr/bin/env", "node", SRCDIR "/t/client/demo_page.mjs", NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    watch_close(demo);
}
END_TEST

int main(void)
{
    if (system("node \"" SRCDIR "/t/client/demo_page.mjs\" probe") != 0)
        return 77;
    Suite *suite = suite_create("demo_browser");
    TCase *tcase = harness_case(suite, "a browser");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_shop_visitor_gets_an_answer_and_uses_the_coupon);
    return harness_main(suite);
}
