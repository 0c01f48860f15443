/*
 * `assay demo`, which `make run` starts: from an empty directory to a graded page in the terminal,
 * the commands to try next, and a server that runs until Ctrl-C. A second run creates nothing
 * twice.
 */
#include "t/kit/harness.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/stat.h>

#define LAST_LINE "shows what operators can do."

static struct server *server; /* looks at what the demo left under var/ */
static struct watched *demo;

static void setup(void)
{
    server = server_new(&(struct server_options){.no_key = true});
    server->data = text("%s/var/data", server->dir);
    server->run = text("%s/var/run", server->dir);
    server_configure(server, "");
}

static void teardown(void)
{
    server_free(server);
}

static void run_demo(enum watch_by by, const char *url)
{
    demo = watch_start(by, server->dir, assay_path(), "demo", url, NULL);
}

/*
 * What its output says behind ${before}, up to the next space or end of a line; NULL where it does
 * not.
 */
static char *said_behind(const char *before)
{
    const char *at = strstr(demo->said, before);
    return at ? text("%.*s", (int)strcspn(at + strlen(before), " \r\n"), at + strlen(before))
              : NULL;
}

/* It has shown the report and stays: where it serves, and with which key. */
static void expect_staying(void)
{
    watch_expect(demo, LAST_LINE);
    struct run key = run_program("/bin/cat", text("%s/var/demo.key", server->dir), NULL);
    server->url = said_behind("The server is at ");
    server->key = text("%.*s", (int)strcspn(key.out, "\n"), key.out);
    ck_assert_ptr_nonnull(server->url);
    expect_status(http_get(server, "/readyz"), 200);
}

static bool is_silent(void *arg)
{
    (void)arg;
    return http(server, .path = "/healthz", .key = "", .may_fail = true)->status == 0;
}

static void expect_gone(void)
{
    ck_assert_msg(wait_until(is_silent, NULL, 10000), "its server is still there");
}

static void stop_with_ctrl_c(void)
{
    watch_type(demo, "\003");
    ck_assert_msg(watch_wait(demo) == 0, "%s", demo->said);
    watch_close(demo);
    ck_assert(is_silent(NULL)); /* at once: it waited for its server */
}

static void expect_said(const char *words)
{
    ck_assert_msg(strstr(demo->said, words) != NULL, "no %s in %s", words, demo->said);
}

/* Every GET among the curl lines, as a person would paste them. */
static void expect_curl_lines_to_work(void)
{
    size_t lines = 0;
    char *said = text("%s", demo->said), *rest = said;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;) {
        bool gets = !strncmp(line, "    curl -s -H ", 15) && !strstr(line, " -d ");
        if (!gets)
            continue;
        struct run run =
            run_program("/bin/sh", "-c",
                        text("cd '%s' && KEY=$(cat var/demo.key) && %s", server->dir, line), NULL);
        ck_assert_msg(run.status == 0 && !strncmp(run.out, "{\"data\":", 8), "%s: %d %s%s", line,
                      run.status, run.out, run.err);
        lines++;
    }
    ck_assert_uint_eq(lines, 2);
    free(said);
}

static void expect_commands_to_find_it(void)
{
    struct run run = run_program("/bin/sh", "-c",
                                 text("cd '%s' && '%s' -c var/assay.yaml --json key list",
                                      server->dir, realpath(assay_path(), NULL)),
                                 NULL);
    ck_assert_msg(run.status == 0 && strstr(run.out, "demo") != NULL, "%d: %s%s", run.status,
                  run.out, run.err);
}

/* What stands behind ${before} in a body, up to the next quote. */
static char *quoted(const struct response *r, const char *before)
{
    const char *at = strstr(r->body, before);
    ck_assert_msg(at != NULL, "no %s in %s", before, r->body);
    at += strlen(before);
    return text("%.*s", (int)strcspn(at, "\""), at);
}

/*
 * The chat's page is of another origin, lets nothing in but the server's script and calls, and its
 * agent begins a session there.
 */
static void expect_chat(void)
{
    struct server page = *server;
    page.url = said_behind("The chat widget is on ");
    ck_assert_ptr_nonnull(page.url);
    char *end = strstr(page.url, "/chat,");
    ck_assert_msg(end != NULL, "%s", page.url);
    *end = '\0';
    ck_assert_str_ne(page.url, server->url);
    struct response *r = http(&page, .path = "/chat", .key = "");
    expect_status(r, 200);
    const char *policy = header(r, "Content-Security-Policy");
    expect(r, policy != NULL && strstr(policy, "default-src 'none'") &&
                  strstr(policy, server->url) && !strstr(policy, "unsafe"));
    char *script = quoted(r, "<script src=\""), *digest = quoted(r, "integrity=\""),
         *agent = quoted(r, "data-agent=\"");
    expect(r, !strncmp(script, server->url, strlen(server->url)) && !strncmp(digest, "sha384-", 7));
    expect_status(http(server, .path = script + strlen(server->url), .key = ""), 200);
    r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
             .body = text("{\"agent_id\":\"%s\"}", agent),
             .headers = {"Content-Type: application/json", text("Origin: %s", page.url)});
    expect_status(r, 200);
}

/* The lines by which an operator answers, one after the other; a visitor is there. */
static void expect_operators_lines_to_work(void)
{
    char *script = text("cd '%s'; KEY=$(cat var/demo.key)", server->dir);
    char *said = text("%s", demo->said), *rest = said;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;)
        if (!strncmp(line, "    ID=$(", 9) || strstr(line, "/conversations/$ID/") != NULL)
            script = text("%s\n%s", script, line);
    struct run run = run_program("/bin/sh", "-c", script, NULL);
    ck_assert_msg(run.status == 0 && strstr(run.out, "\"claimed_name\":\"Anna\"") &&
                      strstr(run.out, "\"role\":\"operator\""),
                  "%s: %s%s", script, run.out, run.err);
    free(said);
}

START_TEST(from_nothing_the_sample_page_is_graded_in_colour_and_the_server_stays_until_ctrl_c)
{
    static const char *const says[] = {" / 100",      "to mend: ", " high",         "SEO",
                                       "Performance", "Security",  "Miscellaneous", "found: "};
    struct stat st;
    run_demo(BY_TERMINAL, NULL);
    expect_staying();
    for (size_t i = 0; i < COUNT(says); i++)
        expect_said(says[i]);
    expect_said("\033[31m"); /* what failed, in red */
    expect_said("\033[32m"); /* what passed, in green */
    expect_chat();
    const char *high = strstr(demo->said, "\033[31mhigh"), *low = strstr(demo->said, "\033[mlow");
    ck_assert_msg(high && low && high < low, "%s", demo->said);

    struct response *r = http_get(server, "/api/v1/reports/1");
    expect_str(r, "data.status", "done");
    /* with real defects, and not of them alone */
    expect(r, int_at(r, "data.score") > 0 && int_at(r, "data.score") < 80);
    expect(r, int_at(r, "data.issues.high") > 0 && int_at(r, "data.issues.medium") > 0 &&
                  int_at(r, "data.issues.low") > 0);
    expect(r, int_at(r, "data.issues.passed") > 5);
    expect_said(text("%lld", (long long)int_at(r, "data.score")));
    if (system("curl --version >/dev/null 2>&1") == 0) {
        expect_curl_lines_to_work();
        expect_commands_to_find_it();
        expect_operators_lines_to_work();
    }
    ck_assert(stat(text("%s/var/demo.key", server->dir), &st) == 0 && (st.st_mode & 0777) == 0600);
    stop_with_ctrl_c();
}
END_TEST

START_TEST(make_run_is_this_with_the_page_that_is_named)
{
    const char *make =
        "env -u MAKEFLAGS -u MAKELEVEL make -n run URL=%s 2>&1 | grep assay.demo >'%s/said' && "
        "sed 's|\\./assay|echo|' '%s/said' | sh";
    struct run with = run_program(
        "/bin/sh", "-c", text(make, "https://example.com/a?b", server->dir, server->dir), NULL);
    ck_assert_msg(with.status == 0 && !strcmp(with.out, "demo https://example.com/a?b\n"),
                  "%d: %s%s", with.status, with.out, with.err);
    struct run without =
        run_program("/bin/sh", "-c", text(make, "", server->dir, server->dir), NULL);
    ck_assert_msg(without.status == 0 && !strcmp(without.out, "demo\n"), "%d: %s%s", without.status,
                  without.out, without.err);
}
END_TEST

static size_t count_of(const char *what)
{
    struct json_object *list = assay_list(server, what, "list", NULL);
    size_t count = json_object_array_length(list);
    json_object_put(list);
    return count;
}

START_TEST(a_second_run_is_quick_and_makes_nothing_again)
{
    char *key = NULL, *page = NULL;
    for (int run = 0; run < 2; run++) {
        int64_t since = now_ms();
        run_demo(BY_TERMINAL, NULL);
        expect_staying();
        ck_assert_msg(run == 0 || now_ms() - since < 10000, "ready after %lld ms",
                      (long long)(now_ms() - since));
        ck_assert_msg(run == 0 || !strcmp(server->key, key), "another key");
        char *graded = said_behind("Grading ");
        /* the sample's port is another one where a stranger took it meanwhile */
        struct response *r = http_get(server, "/api/v1/reports");
        if (run == 0 || !strcmp(graded, page))
            expect_int(r, "meta.total", 1);
        ck_assert_uint_eq(count_of("workspace"), 1);
        ck_assert_uint_eq(count_of("key"), 1);
        ck_assert_uint_eq(count_of("agent"), 1);
        key = server->key;
        page = graded;
        stop_with_ctrl_c();
    }
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_page_that_is_named_is_graded_and_one_that_cannot_be_says_why)
{
    run_demo(BY_PIPE, "nowhere.invalid"); /* a bare host is taken for https */
    expect_staying();
    expect_said("https://nowhere.invalid/");
    expect_said("Not graded");
    expect_said("(dns_failed)");
    ck_assert_msg(!strchr(demo->said, '\033'), "colour where there is no terminal: %s", demo->said);
    expect_str(http_get(server, "/api/v1/reports/1"), "data.status", "failed");
    kill(demo->pid, SIGTERM);
    ck_assert_int_eq(watch_wait(demo), 0);
    watch_close(demo);
    expect_gone();
}
END_TEST

/* Columns: what is asked for; what it says. */
static const char *const refused[][2] = {
    {"ftp://example.com/", "http://"},
    {"http://10.0.0.1/", "address"},
    {"http://user:secret@example.com/", "user"},
};

START_TEST(a_url_that_is_none_ends_it_with_a_sentence)
{
    run_demo(BY_TERMINAL, refused[_i][0]);
    ck_assert_msg(watch_wait(demo) == 1, "%s", demo->said);
    ck_assert_msg(strstr(demo->said, refused[_i][1]) != NULL, "no %s in: %s", refused[_i][1],
                  demo->said);
    watch_close(demo);
    assay_ok(server, "check", NULL); /* no server holds the store */
}
END_TEST

START_TEST(its_server_does_not_outlive_it_and_its_end_is_told)
{
    run_demo(BY_TERMINAL, "nowhere.invalid");
    expect_staying();
    kill(demo->pid, SIGKILL);
    ck_assert_int_eq(watch_wait(demo), 128 + SIGKILL);
    watch_close(demo);
    expect_gone();

    /* the parent ignores SIGCHLD, as some supervisors do */
    demo = watch_start(BY_TERMINAL, server->dir, "/usr/bin/env", "--ignore-signal=CHLD",
                       realpath(assay_path(), NULL), "demo", "nowhere.invalid", NULL);
    expect_staying();
    pid_t children[8];
    server->pid = demo->pid;
    size_t count = server_children(server, children, COUNT(children)), masters = 0;
    server->pid = 0;
    for (size_t i = 0; i < count && i < COUNT(children); i++)
        if (!strcmp(process_title(children[i]), "assayd: master"))
            masters += kill(children[i], SIGKILL) == 0;
    ck_assert_uint_eq(masters, 1);
    ck_assert_int_eq(watch_wait(demo), 1);
    expect_said("assayd ended; see var/assayd.log");
    watch_close(demo);
}
END_TEST

START_TEST(beside_one_that_runs_a_second_is_refused)
{
    run_demo(BY_TERMINAL, "nowhere.invalid");
    expect_staying();
    struct watched *first = demo;
    run_demo(BY_TERMINAL, "nowhere.invalid");
    ck_assert_msg(watch_wait(demo) == 1, "%s", demo->said);
    expect_said("var/data");
    expect_said("in use by pid ");
    watch_close(demo);
    demo = first;
    expect_status(http_get(server, "/readyz"), 200);
    stop_with_ctrl_c();
}
END_TEST

START_TEST(a_port_in_use_is_told_with_who_has_it_and_another_is_taken)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(8080)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* past the TIME_WAIT that an earlier demo's connections leave */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    /* or another's has it */
    bool ours = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0;
    run_demo(BY_TERMINAL, "nowhere.invalid");
    expect_staying();
    expect_said(ours ? text("127.0.0.1:8080 is in use by pid %d (", (int)getpid())
                     : "127.0.0.1:8080 is in use by ");
    stop_with_ctrl_c();
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demo");
    TCase *tcase = harness_case(suite, "a directory each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(
        tcase, from_nothing_the_sample_page_is_graded_in_colour_and_the_server_stays_until_ctrl_c);
    tcase_add_test(tcase, make_run_is_this_with_the_page_that_is_named);
    tcase_add_test(tcase, a_second_run_is_quick_and_makes_nothing_again);
    tcase_add_test(tcase, a_page_that_is_named_is_graded_and_one_that_cannot_be_says_why);
    tcase_add_loop_test(tcase, a_url_that_is_none_ends_it_with_a_sentence, 0, COUNT(refused));
    tcase_add_test(tcase, its_server_does_not_outlive_it_and_its_end_is_told);
    tcase_add_test(tcase, beside_one_that_runs_a_second_is_refused);
    tcase_add_test(tcase, a_port_in_use_is_told_with_who_has_it_and_another_is_taken);
    return harness_main(suite);
}
