/*
 * The files of `assay audit --html` in a browser (t/client/audit_html.mjs), opened without a
 * server. Skipped with exit status 77 where Chromium or playwright-core is missing.
 */
#include "t/kit/harness.h"

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .no_key = true});
}

static void teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

/* Columns: the page, or a URL that is refused; language; exit status; whether elements fold. */
static const struct {
    const char *page, *language;
    int status;
    const char *folds;
} pages[] = {
    {"/good", "en", 1, "none"},
    {"/hostile", "de", 1, "some"},
    {"/missing", "en", 2, "none"},
    {"javascript:alert(1)//://", "de", 2, "none"},
};

/* Titles, addresses and words that try to run, and to break the layout of a phone. */
static void serve_hostile(void)
{
    char *word = text("%0*d", 2000, 0), *images = text("%s", "");
    for (int i = 0; i < 8; i++)
        images = text("%s<img src='/%d\"><script>alert(1)</script>%s'>", images, i, word);
    origin_page(origin, "/hostile", 200, "Content-Type: text/html; charset=utf-8\r\n",
                text("<title>&lt;/title>&lt;script>alert(1)&lt;/script>\xe2\x80\xae %s</title>"
                     "<title>مرحبا שלום 你好</title>%s",
                     word, images));
}

START_TEST(a_file_opens_and_prints_without_a_server)
{
    char *file = text("%s/report.html", server->dir);
    serve_hostile();
    const char *page = pages[_i].page;
    struct run run = assay(server, "audit", "--html", file, "--lang", pages[_i].language,
                           page[0] == '/' ? origin_url(origin, page) : page, NULL);
    ck_assert_msg(run.status == pages[_i].status, "%d %s%s", run.status, run.out, run.err);
    ck_assert_int_eq(setenv("PAGE", text("file://%s", file), 1), 0);
    run = run_program("/usr/bin/env", "node", SRCDIR "/t/client/audit_html.mjs", pages[_i].language,
                      pages[_i].folds, NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
}
END_TEST

int main(void)
{
    if (system("node \"" SRCDIR "/t/client/audit_html.mjs\" probe") != 0)
        return 77;
    Suite *suite = suite_create("audit_html_browser");
    TCase *tcase = harness_case(suite, "a browser");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_file_opens_and_prints_without_a_server, 0, COUNT(pages));
    return harness_main(suite);
}
