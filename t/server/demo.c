/*
 * `assay demo`, which `make run` starts: from an empty directory to a graded page in the terminal,
 * a shop whose chat answers, and a server that runs until Ctrl-C. A second run changes nothing.
 */
#include "t/kit/sync.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#define LAST_LINE "runs until Ctrl-C."
#define QUESTIONS 3
#define CODE "HARBOUR10"

/* ${server} of t/kit/sync.h is the server that the demo runs under var/. */
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

/* The demo's output after ${before}, up to the next space or line end; NULL without ${before}. */
static char *printed_after(const char *before)
{
    const char *at = strstr(demo->said, before);
    return at ? text("%.*s", (int)strcspn(at + strlen(before), " \r\n"), at + strlen(before))
              : NULL;
}

/* The demo has printed everything and keeps running. Sets the server's address and key. */
static void expect_staying(void)
{
    watch_expect(demo, LAST_LINE);
    struct run key = run_program("/bin/cat", text("%s/var/demo.key", server->dir), NULL);
    server->url = printed_after("The server is at ");
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
    ck_assert_msg(wait_until(is_silent, NULL, 10000), "its server still runs");
}

static void stop_with_ctrl_c(void)
{
    watch_type(demo, "\003");
    ck_assert_msg(watch_wait(demo) == 0, "%s", demo->said);
    watch_close(demo);
    ck_assert(is_silent(NULL)); /* at once: it waited for its server */
}

static void expect_printed(const char *words)
{
    ck_assert_msg(strstr(demo->said, words) != NULL, "no %s in %s", words, demo->said);
}

/* Every GET of the printed curl lines, as a person would paste them. */
static void expect_curl_lines_to_work(void)
{
    size_t lines = 0;
    char *printed = text("%s", demo->said), *rest = printed;
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
    free(printed);
}

/* The page of the report opens without a key. ${says}: a text of it. */
static void expect_report_page(const char *says)
{
    const char *link = printed_after("See the report in a browser: ");
    ck_assert_msg(link && !strncmp(link, server->url, strlen(server->url)), "%s", demo->said);
    struct response *r = http(server, .path = link + strlen(server->url), .key = "");
    expect_status(r, 200);
    expect(r, !strcmp(header(r, "Content-Type"), "text/html; charset=utf-8"));
    expect(r, strstr(r->body, says) != NULL);
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

/* What follows ${before} in a body, up to the next quote. */
static char *quoted(const struct response *r, const char *before)
{
    const char *at = strstr(r->body, before);
    ck_assert_msg(at != NULL, "no %s in %s", before, r->body);
    at += strlen(before);
    return text("%.*s", (int)strcspn(at, "\""), at);
}

/* ---- the shop and its chat ---- */

/* The shop that serves the chat's page, and a visitor of the page. */
struct shop {
    struct server page;
    char *agent, *jwt;
    const char *from; /* its Origin header */
    struct response *front;
};

static struct response *ask(const struct shop *shop, const char *path, const char *body)
{
    return http(server, .method = "POST", .path = text("/api/v1/widget/%s", path),
                .key = shop->jwt ? shop->jwt : "", .body = body,
                .headers = {"Content-Type: application/json", shop->from});
}

/* Open the chat's page, which has another origin and allows only the server's script and calls. */
static struct shop visit(void)
{
    struct shop shop = {.page = *server};
    shop.page.url = printed_after("Chat with the demo shop: ");
    ck_assert_ptr_nonnull(shop.page.url);
    char *end = strstr(shop.page.url, "/chat");
    ck_assert_msg(end != NULL, "%s", shop.page.url);
    *end = '\0';
    ck_assert_str_ne(shop.page.url, server->url);
    shop.front = http(&shop.page, .path = "/chat", .key = "");
    expect_status(shop.front, 200);
    expect_status(http(&shop.page, .path = "/chat?from=mail", .key = ""), 200);
    shop.agent = quoted(shop.front, "data-agent=\"");
    shop.from = text("Origin: %s", shop.page.url);
    struct response *r = ask(&shop, "init", text("{\"agent_id\":\"%s\"}", shop.agent));
    expect_status(r, 200);
    shop.jwt = text("%s", str_at(r, "data.jwt"));
    return shop;
}

static void expect_element(const struct shop *shop)
{
    const char *policy = header(shop->front, "Content-Security-Policy");
    expect(shop->front, policy != NULL && strstr(policy, "default-src 'none'") &&
                            strstr(policy, server->url) && !strstr(policy, "unsafe"));
    char *script = quoted(shop->front, "<script src=\""),
         *digest = quoted(shop->front, "integrity=\"");
    expect(shop->front,
           !strncmp(script, server->url, strlen(server->url)) && !strncmp(digest, "sha384-", 7));
    expect_status(http(server, .path = script + strlen(server->url), .key = ""), 200);
    expect_status(http(&shop->page, .path = "/shop.css", .key = ""), 200);
    expect_status(http(&shop->page, .path = "/shop.js", .key = ""), 200);
}

/* An answer cites an existing page of the shop. */
static struct response *expect_cited(const struct shop *shop, const char *question)
{
    struct response *r = ask(shop, "messages", text("{\"message\":\"%s\"}", question));
    expect_status(r, 200);
    expect(r, !bool_at(r, "data.low_confidence") && len_at(r, "data.citations") > 0);
    const char *url = str_at(r, "data.citations.0.url");
    expect(r, !strncmp(url, shop->page.url, strlen(shop->page.url)));
    struct response *cited = http(&shop->page, .path = url + strlen(shop->page.url), .key = "");
    expect_status(cited, 200);
    expect(cited, strstr(cited->body, str_at(r, "data.citations.0.title")) != NULL);
    return r;
}

/* The page, the chat and the terminal show the same questions; the coupon question is first. */
static void expect_questions(const struct shop *shop)
{
    struct response *r = ask(shop, "init", text("{\"agent_id\":\"%s\"}", shop->agent));
    ck_assert_uint_eq(len_at(r, "data.agent.starter_prompts"), QUESTIONS);
    for (int i = 0; i < QUESTIONS; i++) {
        const char *question = str_at(r, text("data.agent.starter_prompts.%d", i));
        expect_printed(question);
        expect(shop->front, strstr(shop->front->body, text(">%s</button>", question)) != NULL);
        struct response *answer = expect_cited(shop, question);
        expect(answer, i != 0 || strstr(str_at(answer, "data.content"), CODE) != NULL);
    }
}

/* Columns: prices of the two products; the error, or NULL and the discount. */
static const struct {
    const char *code, *price, *error;
    int64_t discount;
} coupons[] = {
    {CODE, "8.50", NULL, 170},
    {CODE, "7.00", "invalid_coupon", 0}, /* below the minimum amount */
    {"NOPE", "8.50", "invalid_coupon", 0},
};

static void expect_coupon(const struct shop *shop)
{
    expect_printed("code " CODE);
    struct response *r = ask(shop, "coupon/apply", "{\"code\":\"" CODE "\"}");
    expect_status(r, 200);
    expect(r, bool_at(r, "data.pending"));
    for (size_t i = 0; i < COUNT(coupons); i++) {
        const char *cart = text("{\"currency\":\"GBP\",\"items\":"
                                "[{\"wp_id\":101,\"quantity\":2,\"price\":\"%s\"}]}",
                                coupons[i].price);
        r = ask(shop, "coupon/apply", text("{\"code\":\"%s\",\"cart\":%s}", coupons[i].code, cart));
        if (coupons[i].error != NULL) {
            expect_error(r, 400, coupons[i].error);
            continue;
        }
        expect(r, bool_at(r, "data.applied"));
        ck_assert_int_eq(atoll(str_at(r, "data.totals.total_discount")), coupons[i].discount);
    }
}

static void expect_chat(void)
{
    struct shop shop = visit();
    expect_element(&shop);
    expect_questions(&shop);
    expect_coupon(&shop);
}

/* The shop's status, read with the token that the demo stored. */
static struct response *shop_status(void)
{
    struct run file = run_program("/bin/cat", text("%s/var/demo.token", server->dir), NULL);
    char *of_shop = text("%.*s", (int)strcspn(file.out, "\n"), file.out);
    struct response *r = http(server, .path = "/v1/wp/status", .key = of_shop,
                              .headers = {signature(of_shop, time(NULL), "", 0)});
    expect_status(r, 200);
    expect(r, bool_at(r, "data.indexed"));
    return r;
}

/* The commands by which an operator answers, in order; a visitor waits. */
static void expect_operators_lines_to_work(void)
{
    char *script = text("cd '%s'; KEY=$(cat var/demo.key)", server->dir);
    char *printed = text("%s", demo->said), *rest = printed;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;)
        if (!strncmp(line, "    ID=$(", 9) || strstr(line, "/conversations/$ID/") != NULL)
            script = text("%s\n%s", script, line);
    struct run run = run_program("/bin/sh", "-c", script, NULL);
    ck_assert_msg(run.status == 0 && strstr(run.out, "\"claimed_name\":\"Anna\"") &&
                      strstr(run.out, "\"role\":\"operator\""),
                  "%s: %s%s", script, run.out, run.err);
    free(printed);
}

START_TEST(a_first_run_grades_the_sample_page_and_serves_until_ctrl_c)
{
    static const char *const says[] = {" / 100",      " issues: ", " high",         "SEO",
                                       "Performance", "Security",  "Miscellaneous", "found: "};
    struct stat st;
    run_demo(BY_TERMINAL, NULL);
    expect_staying();
    for (size_t i = 0; i < COUNT(says); i++)
        expect_printed(says[i]);
    expect_printed("\033[31m"); /* failed checks in red */
    expect_printed("\033[32m"); /* passed checks in green */
    expect_chat();
    const char *high = strstr(demo->said, "\033[31mhigh"), *low = strstr(demo->said, "\033[mlow");
    ck_assert_msg(high && low && high < low, "%s", demo->said);

    struct response *r = http_get(server, "/api/v1/reports/1");
    expect_str(r, "data.status", "done");
    expect(r, int_at(r, "data.score") > 0 &&
                  int_at(r, "data.score") < 80); /* with real defects, among passed checks */
    expect(r, int_at(r, "data.issues.high") > 0 && int_at(r, "data.issues.medium") > 0 &&
                  int_at(r, "data.issues.low") > 0);
    expect(r, int_at(r, "data.issues.passed") > 5);
    expect_printed(text("%lld", (long long)int_at(r, "data.score")));
    expect_report_page(text(">%lld</text>", (long long)int_at(r, "data.score")));
    if (system("curl --version >/dev/null 2>&1") == 0) {
        expect_curl_lines_to_work();
        expect_commands_to_find_it();
        expect_operators_lines_to_work();
    }
    ck_assert(stat(text("%s/var/demo.key", server->dir), &st) == 0 && (st.st_mode & 0777) == 0600);
    ck_assert(stat(text("%s/var/demo.token", server->dir), &st) == 0 &&
              (st.st_mode & 0777) == 0600);
    stop_with_ctrl_c();
}
END_TEST

START_TEST(make_run_passes_the_page_to_the_demo)
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

START_TEST(a_second_run_is_fast_and_creates_nothing)
{
    static const char *const kinds[] = {"posts", "products", "coupons"};
    char *key = NULL, *page = NULL;
    int64_t counts[COUNT(kinds)] = {0};
    for (int run = 0; run < 2; run++) {
        int64_t since = now_ms();
        run_demo(BY_TERMINAL, NULL);
        expect_staying();
        ck_assert_msg(run == 0 || now_ms() - since < 10000, "ready after %lld ms",
                      (long long)(now_ms() - since));
        ck_assert_msg(run == 0 || !strcmp(server->key, key), "another key");
        char *graded = printed_after("Grading ");
        /* the sample's port differs when another process uses it */
        struct response *r = http_get(server, "/api/v1/reports");
        if (run == 0 || !strcmp(graded, page))
            expect_int(r, "meta.total", 1);
        ck_assert_uint_eq(count_of("workspace"), 1);
        ck_assert_uint_eq(count_of("key"), 1);
        ck_assert_uint_eq(count_of("agent"), 1);
        ck_assert_uint_eq(count_of("token"), 1);
        struct shop shop = visit();
        expect_cited(&shop, "How long does delivery take?");
        r = shop_status();
        for (size_t i = 0; i < COUNT(kinds); i++) {
            int64_t count = int_at(r, text("data.%s.count", kinds[i]));
            ck_assert_msg(count > 0 && (run == 0 || count == counts[i]), "%s: %lld", kinds[i],
                          (long long)count);
            counts[i] = count;
        }
        key = server->key;
        page = graded;
        stop_with_ctrl_c();
    }
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_given_page_is_graded_or_its_error_printed)
{
    run_demo(BY_PIPE, "nowhere.invalid"); /* a bare host is taken as https */
    expect_staying();
    expect_printed("https://nowhere.invalid/");
    expect_printed("Not graded");
    expect_printed("(dns_failed)");
    ck_assert_msg(!strchr(demo->said, '\033'), "colour without a terminal: %s", demo->said);
    expect_str(http_get(server, "/api/v1/reports/1"), "data.status", "failed");
    expect_report_page("https://nowhere.invalid/");
    kill(demo->pid, SIGTERM);
    ck_assert_int_eq(watch_wait(demo), 0);
    watch_close(demo);
    expect_gone();
}
END_TEST

/* Columns: the argument; the message. */
static const char *const refused[][2] = {
    {"ftp://example.com/", "http://"},
    {"http://10.0.0.1/", "address"},
    {"http://user:secret@example.com/", "user"},
};

START_TEST(a_malformed_url_ends_the_demo_with_a_message)
{
    run_demo(BY_TERMINAL, refused[_i][0]);
    ck_assert_msg(watch_wait(demo) == 1, "%s", demo->said);
    ck_assert_msg(strstr(demo->said, refused[_i][1]) != NULL, "no %s in: %s", refused[_i][1],
                  demo->said);
    watch_close(demo);
    assay_ok(server, "check", NULL); /* no server holds the store */
}
END_TEST

START_TEST(the_demo_stops_its_server_and_reports_its_exit)
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
    expect_printed("assayd ended; see var/assayd.log");
    watch_close(demo);
}
END_TEST

START_TEST(a_second_demo_is_refused_while_one_runs)
{
    run_demo(BY_TERMINAL, "nowhere.invalid");
    expect_staying();
    struct watched *first = demo;
    run_demo(BY_TERMINAL, "nowhere.invalid");
    ck_assert_msg(watch_wait(demo) == 1, "%s", demo->said);
    expect_printed("var/data");
    expect_printed("in use by pid ");
    watch_close(demo);
    demo = first;
    expect_status(http_get(server, "/readyz"), 200);
    stop_with_ctrl_c();
}
END_TEST

START_TEST(a_port_in_use_is_reported_and_another_used)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(8080)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* past the TIME_WAIT of an earlier demo's connections */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    bool ours = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                listen(fd, 1) == 0; /* or another process has it */
    run_demo(BY_TERMINAL, "nowhere.invalid");
    expect_staying();
    expect_printed(ours ? text("127.0.0.1:8080 is in use by pid %d (", (int)getpid())
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
    tcase_add_test(tcase, a_first_run_grades_the_sample_page_and_serves_until_ctrl_c);
    tcase_add_test(tcase, make_run_passes_the_page_to_the_demo);
    tcase_add_test(tcase, a_second_run_is_fast_and_creates_nothing);
    tcase_add_test(tcase, a_given_page_is_graded_or_its_error_printed);
    tcase_add_loop_test(tcase, a_malformed_url_ends_the_demo_with_a_message, 0, COUNT(refused));
    tcase_add_test(tcase, the_demo_stops_its_server_and_reports_its_exit);
    tcase_add_test(tcase, a_second_demo_is_refused_while_one_runs);
    tcase_add_test(tcase, a_port_in_use_is_reported_and_another_used);
    return harness_main(suite);
}
