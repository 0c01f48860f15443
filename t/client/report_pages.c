/*
 * Pages for people in headless Chromium (t/client/report_pages.mjs). Exits with 77 (skipped)
 * where Chromium, playwright-core, axe-core or pdftotext is missing (./bootstrap --all-tests
 * installs them).
 * SHOTS: a directory; the program writes pictures of all pages there and tests nothing else.
 */
#include "t/client/report_seeds.h"

static struct server *server;
static struct origin *origin;

/* clang defines __has_feature, gcc __SANITIZE_ADDRESS__ */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED
#endif

/*
 * Scenes of t/client/report_pages.mjs; each takes at most half of the time limit of a run on an
 * idle machine. With a sanitizer, which watches the server and not the browser, only some:
 * t/server/check_report_pages and its neighbours request every state of the pages.
 */
static const char *const scenes[] = {
    "looks many",        "looks badge",       "keyboard",       "password",
#ifndef SANITIZED
    "looks compared",    "looks good",        "looks failed",   "looks failed_later",
    "looks history",     "looks pending",     "looks form",     "looks wrong",
    "looks missing",     "looks private",     "looks too_many", "looks hostile",
    "looks script_url",  "looks world",       "looks long",     "looks elements",
    "looks findings",    "hostile",           "modes",          "printing many",
    "printing good",     "printing world",    "printing long",  "printing history",
    "fixed / 360 light", "fixed / 1440 dark",
#endif
};

static char *file_text(const char *path)
{
    static char all[ORIGIN_BODY];
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    all[fread(all, 1, sizeof(all) - 1, file)] = '\0';
    fclose(file);
    return all;
}

static void setenv_text(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

static struct response *graded_demo(void)
{
    origin_page(origin, "/", 200, "", file_text(SRCDIR "/core/audit/demo/index.html"));
    return http_get(server, report_path(report_new(server, origin_url(origin, "/"))));
}

static void protect(struct json_object *ids, const char *name, const char *how)
{
    int64_t id = json_object_get_int64(json_object_object_get(ids, name));
    expect_status(http_put(server, report_path(id), how), 200);
}

/* A report that is pending until its page, at ${path}, is released. */
static void hold(const char *path)
{
    origin_held(origin, path);
    int64_t id = report_queued(server, origin_url(origin, path));
    setenv_text("PENDING", text("%lld", (long long)id));
}

static void setup(void)
{
    origin = origin_start();
    server = server_shared(&(struct server_options){
        .origin = origin, .audit = "timeout: 5m", .yaml = "trusted_proxies: [127.0.0.1]\n"});
    struct response *graded = graded_demo();
    server_stop(server);
    struct json_object *ids = report_seeds(server, graded);
    server_start(server);
    protect(ids, "password", "privacy=2&password=harbour+light");
    protect(ids, "limited", "privacy=2&password=harbour+light");
    protect(ids, "private", "privacy=1");
    setenv_text("REPORTS", json_object_to_json_string(ids));
    setenv_text("API", server->url);
    setenv_text("KEY", server->key);
    json_object_put(ids);
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static void play(const char *names)
{
    const char *only = getenv("SCENE"); /* to run only one row */
    if (only != NULL && strcmp(names, only) != 0)
        return;
    hold("/held");
    struct run run = run_program("/bin/sh", "-c", "exec node \"$0\" $1",
                                 SRCDIR "/t/client/report_pages.mjs", names, NULL);
    origin_release(origin, "/held");
    ck_assert_msg(run.status == 0, "%s:\n%s%s\n%s", names, run.out, run.err, server_log(server));
}

START_TEST(a_reader_sees)
{
    play(scenes[_i]);
}
END_TEST

/* Columns: path of the page to be graded; scene. The scene says when the page is open. */
static const struct {
    const char *path, *scene;
} waits[] = {{"/held-script", "waits script"}, {"/held-plain", "waits plain"}};

START_TEST(a_pending_page_shows_its_result_by_itself)
{
    hold(waits[_i].path);
    struct watched *w = watch_start(BY_PIPE, NULL, "/bin/sh", "-c", "exec node \"$0\" $1",
                                    SRCDIR "/t/client/report_pages.mjs", waits[_i].scene, NULL);
    watch_expect(w, "the page is open");
    origin_release(origin, waits[_i].path);
    ck_assert_msg(watch_wait(w) == 0, "%s: %s", waits[_i].scene, w->said);
    watch_close(w);
}
END_TEST

START_TEST(all_pages_are_pictured)
{
    hold("/held");
    ck_assert_int_eq(system("exec node \"" SRCDIR "/t/client/report_pages.mjs\" shoot"), 0);
    origin_release(origin, "/held");
}
END_TEST

int main(void)
{
    if (system("node \"" SRCDIR "/t/client/report_pages.mjs\" probe axe-core") != 0)
        return SUITE_SKIPPED;
    if (system("command -v pdftotext >/dev/null") != 0) {
        fprintf(stderr, "skipped: pdftotext is not installed: ./bootstrap --all-tests\n");
        return SUITE_SKIPPED;
    }
    Suite *suite = suite_create("report_pages");
    TCase *tcase = harness_case(suite, "a browser");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    if (getenv("SHOTS") != NULL) {
        tcase_set_timeout(tcase, 0); /* none */
        tcase_add_test(tcase, all_pages_are_pictured);
        return harness_main(suite);
    }
    tcase_add_loop_test(tcase, a_reader_sees, 0, (int)COUNT(scenes));
    tcase_add_loop_test(tcase, a_pending_page_shows_its_result_by_itself, 0, (int)COUNT(waits));
    return harness_main(suite);
}
