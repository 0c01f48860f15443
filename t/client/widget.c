/*
 * The chat widget in headless Chromium, on pages of other origins with a strict
 * Content-Security-Policy. npm's playwright-core drives the browser (t/client/widget.mjs). Exits
 * with 77 (skipped) when Chromium is missing or playwright-core is in neither t/client/node_modules
 * (installed by ./bootstrap --all-tests) nor $ASSAY_NPM/node_modules.
 */
#include "t/kit/harness.h"

#include <signal.h>

static struct server *server;

static void begin(const char *yaml)
{
    server = server_new(&(struct server_options){.yaml = yaml});
    server_start(server);
}

static void teardown(void)
{
    if (server == NULL)
        return;
    server_discard(server);
}

/*
 * Scenes of t/client/widget.mjs that share a server and take at most half of the time limit of a
 * run, and their configuration.
 */
static const struct {
    const char *names, *yaml;
} scenes[] = {
    {"leave chat", NULL}, /* the first one leaves no visitor */
    {"server hidden", NULL},
    {"weather", NULL},
    {"rules", NULL},
    {"looks pictures", NULL},
    {"pages", NULL},
    {"limits", "limits: { limiters: { widget-session: { windows: [ { limit: 10, seconds: 2, key: "
               "jwt } ] } } }\n"},
};

static void setenv_text(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

START_TEST(a_visitor_can)
{
    const char *only = getenv("SCENE"); /* to run only some of them */
    if (only != NULL && strstr(scenes[_i].names, only) == NULL)
        return;
    begin(scenes[_i].yaml);
    char *agent =
        assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Harbour <b>Shop</b>",
                 "--prompt", "Are you open?", "--theme", "{\"color\":\"#0b6e4f\"}", "--lead-fields",
                 "[{\"name\":\"company\",\"label\":\"Company\",\"required\":true}]", NULL);
    setenv_text("API", server->url);
    setenv_text("AGENT", agent);
    setenv_text("KEY", key_new(server, "main", "conversations:read", "conversations:write", NULL));
    setenv_text("MASTER", text("%d", (int)server->pid));
    setenv_text("ASSAY_PROGRAM", assay_path());
    setenv_text("CONF", server->conf);
    struct run run = run_program("/bin/sh", "-c", "exec node \"$0\" $1",
                                 SRCDIR "/t/client/widget.mjs", scenes[_i].names, NULL);
    fprintf(stderr, "%s", run.out);
    ck_assert_msg(run.status == 0, "%s:\n%s%s\n%s", scenes[_i].names, run.out, run.err,
                  server_log(server));
    server_stop(server);
}
END_TEST

int main(void)
{
    if (system("node \"" SRCDIR "/t/client/widget.mjs\" probe") != 0)
        return SUITE_SKIPPED;
    Suite *suite = suite_create("widget");
    TCase *tcase = harness_case(suite, "a browser");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, a_visitor_can, 0, (int)COUNT(scenes));
    return harness_main(suite);
}
