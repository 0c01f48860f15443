/* The access log: its content, its target, and files that cannot be written. */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <fcntl.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

static struct origin *origin;
static struct server *server;
static char *log_path;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin});
    log_path = text("%s/access.log", server->dir);
}

static void teardown(void)
{
    server_discard(server);
    origin_stop(origin);
}

static void start(const char *yaml)
{
    server_configure(server, yaml);
    server_start(server);
}

/* ---- the content of a line ---- */

static char *file_of(const char *path)
{
    struct run run = run_program("/bin/cat", path, NULL);
    return run.out;
}

static bool is_logged(void *id)
{
    return strstr(file_of(log_path), id) != NULL;
}

/* the line of the request with this id, within a second and the time to read it */
static char *line_of(const char *id)
{
    ck_assert_msg(wait_until(is_logged, (void *)(uintptr_t)id, 3000), "%s is not logged:\n%s\n%s",
                  id, file_of(log_path), server_log(server));
    struct run run = run_program("/bin/grep", "-m1", id, log_path, NULL);
    return run.out;
}

static struct json_object *member(const char *id, const char *name, json_type type)
{
    char *line = line_of(id);
    struct json_object *object = json_tokener_parse(line), *value = NULL;
    ck_assert_msg(json_object_object_get_ex(object, name, &value) &&
                      json_object_is_type(value, type),
                  "%s of %s", name, line);
    return value;
}

static int64_t number(const char *id, const char *name)
{
    return json_object_get_int64(member(id, name, json_type_int));
}

static const char *string(const char *id, const char *name)
{
    return json_object_get_string(member(id, name, json_type_string));
}

#define ID(id) "X-Request-Id: " id
#define TWO_AN_HOUR                                                                                \
    "limits: { limiters: { api: { windows: [ { limit: 2, seconds: 3600, key: api_key } ] } } }\n"

START_TEST(a_line_names_the_caller_the_request_and_the_answer)
{
    start(text("log: { access: %s }", log_path));
    struct response *r = http(server, .path = "/api/v1/reports?per_page=10",
                              .headers = {ID("list-1"), "User-Agent: probe \"1\""});
    expect_status(r, 200);
    ck_assert_str_eq(string("list-1", "method"), "GET");
    ck_assert_str_eq(string("list-1", "path"), "/api/v1/reports?per_page=10");
    ck_assert_str_eq(string("list-1", "route"), "/api/v1/reports");
    ck_assert_str_eq(string("list-1", "ip"), "127.0.0.1");
    ck_assert_str_eq(string("list-1", "agent"), "probe \"1\"");
    ck_assert_int_eq(number("list-1", "status"), 200);
    ck_assert_int_eq(number("list-1", "bytes"), (int64_t)r->body_size);
    ck_assert_int_gt(number("list-1", "key"), 0);
    ck_assert_ptr_nonnull(strstr(line_of("list-1"), "\"limiter\":null,\"refused\":false"));
    time_t now = time(NULL);
    struct tm tm;
    char today[16];
    strftime(today, sizeof(today), "%Y-%m-", gmtime_r(&now, &tm));
    ck_assert_int_eq(strncmp(string("list-1", "time"), today, strlen(today)), 0);
    server_stop(server);
}
END_TEST

START_TEST(a_refusal_names_its_limiter)
{
    start(text(TWO_AN_HOUR "log: { access: %s }", log_path));
    expect_status(http(server, .path = "/api/v1/reports", .headers = {ID("first")}), 200);
    expect_status(http(server, .path = "/api/v1/reports", .headers = {ID("second")}), 200);
    expect_status(http(server, .path = "/api/v1/reports", .headers = {ID("third")}), 429);
    ck_assert_ptr_nonnull(strstr(line_of("first"), "\"limiter\":\"api\",\"refused\":false"));
    ck_assert_ptr_nonnull(strstr(line_of("third"), "\"limiter\":\"api\",\"refused\":true"));
    ck_assert_int_eq(number("third", "status"), 429);
    server_stop(server);
}
END_TEST

START_TEST(a_line_names_the_parts_of_the_duration)
{
    start(text("log: { access: %s }", log_path));
    origin_page(origin, "/late", 200, "", "<title>x</title>");
    origin_delay(origin, "/late", 600);
    char *body = form("url", origin_url(origin, "/late"), NULL);
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nX-Request-Id: waited\r\nAuthorization: "
             "Bearer %s\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nPrefer: "
             "wait=20\r\nContent-Length: %zu\r\n\r\n",
             server->key, strlen(body));
    for (int64_t since = now_ms(); now_ms() < since + 300;)
        poll(NULL, 0, 10);
    raw_text(raw, "%s", body);
    expect_status(raw_response(raw, false, 20000), 201);
    raw_close(raw);
    ck_assert_int_ge(number("waited", "receive_us"), 250000);
    ck_assert_int_ge(number("waited", "wait_us"), 500000);
    ck_assert_int_ge(number("waited", "answer_us"), number("waited", "wait_us"));
    ck_assert_int_ge(number("waited", "took_us"), number("waited", "answer_us"));
    expect_status(http(server, .path = "/healthz", .headers = {ID("quick")}), 200);
    ck_assert_int_eq(number("quick", "wait_us"), 0);
    server_stop(server);
}
END_TEST

/* Columns: method, path. What they read grows with the data. */
static const struct {
    const char *method, *path;
} queries[] = {
    {"GET", "/api/v1/reports"},  {"GET", "/api/v1/reports?search=a"},
    {"GET", "/api/v1/projects"}, {"GET", "/api/v1/conversations"},
    {"GET", "/api/v1/leads"},    {"GET", "/api/v1/conversations?search=a"},
    {"GET", "/api/v1/events"},   {"GET", "/api/v1/ratings"},
    {"GET", "/v1/wp/status"},    {"POST", "/v1/wp/handshake"},
};

/* Without threads the request does not wait. */
START_TEST(lists_and_searches_wait_for_a_query_thread)
{
    start(text("query_threads: %d\nlog: { access: %s }", _i, log_path));
    char *token = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    char *key =
        assay_ok(server, "key", "create", "--workspace", "main", "--name", "reader", "--scope",
                 "reports:read", "--scope", "projects:read", "--scope", "conversations:read", NULL);
    for (size_t i = 0; i < COUNT(queries); i++) {
        const char *path = queries[i].path, *id = text("query-%zu", i);
        bool posts = strcmp(queries[i].method, "POST") == 0, syncs = strstr(path, "/wp/") != NULL;
        expect_status(
            http(server, .method = queries[i].method, .path = path, .key = syncs ? token : key,
                 .headers = {text("X-Request-Id: %s", id),
                             posts ? "Content-Type: application/json" : NULL},
                 .body = posts ? "{\"site_url\":\"https://shop.example/\",\"plugin_version\":\"1\"}"
                               : NULL),
            200);
        ck_assert_msg((number(id, "wait_us") > 0) == (_i > 0), "%s: %s", path, line_of(id));
    }
    server_stop(server);
}
END_TEST

START_TEST(an_answer_by_the_library_is_logged)
{
    start(text("log: { access: %s }", log_path));
    struct raw *raw = raw_open(server);
    raw_text(raw, "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nX-Request-Id: "
                  "too-large\r\nContent-Length: 99999999999\r\n\r\n");
    struct response *r = raw_response(raw, false, 5000);
    expect_status(r, 413);
    raw_close(raw);
    ck_assert_int_eq(number("too-large", "status"), 413);
    ck_assert_int_eq(number("too-large", "bytes"), (int64_t)r->body_size);
    server_stop(server);
}
END_TEST

/*
 * Paths and header values can have UTF-8 bytes: CSI as C1, a direction override, a line separator.
 */
START_TEST(no_line_controls_the_terminal)
{
    start(text("log: { access: %s }", log_path));
    struct raw *raw = raw_open(server);
    raw_text(raw, "GET /x?\xc2\x9b"
                  "31m\xe2\x80\xae HTTP/1.1\r\nHost: x\r\nUser-Agent: "
                  "a\xe2\x80\xa8\xc3\xa9\r\nX-Request-Id: steers\r\n\r\n");
    raw_response(raw, false, 5000);
    raw_close(raw);
    const char *line = line_of("steers");
    ck_assert_msg(strstr(line, "/x?\\u009b31m\\u202e") && strstr(line, "a\\u2028\xc3\xa9"), "%s",
                  line);
    ck_assert_str_eq(string("steers", "path"), "/x?\xc2\x9b"
                                               "31m\xe2\x80\xae");
    server_stop(server);
}
END_TEST

START_TEST(the_combined_format_is_standard)
{
    regex_t form;
    start(text("log: { access: %s, format: combined }", log_path));
    expect_status(http(server, .path = "/api/v1/reports?search=combined-1",
                       .headers = {"User-Agent: a \"quoted\" one"}),
                  200);
    ck_assert_int_eq(
        regcomp(
            &form,
            "^127\\.0\\.0\\.1 - key-[0-9]+ \\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} \\+0000\\] "
            "\"GET /api/v1/reports\\?search=combined-1 HTTP/1\\.1\" 200 [0-9]+ \"-\" \"a "
            "\\\\x22quoted\\\\x22 one\"",
            REG_EXTENDED | REG_NOSUB),
        0);
    char *line = line_of("combined-1");
    ck_assert_msg(regexec(&form, line, 0, NULL, 0) == 0, "%s", line);
    regfree(&form);
    server_stop(server);
}
END_TEST

START_TEST(the_log_goes_to_standard_output_under_the_journal)
{
    char out[4096] = "";
    size_t n = 0;
    start("log: { access: \"-\" }");
    expect_status(http(server, .path = "/healthz", .headers = {ID("to-stdout")}), 200);
    struct pollfd p = {.fd = server->output, .events = POLLIN};
    while (!strstr(out, "to-stdout") && n < sizeof(out) - 1 && poll(&p, 1, 3000) > 0) {
        ssize_t got = read(server->output, out + n, sizeof(out) - 1 - n);
        ck_assert_int_gt(got, 0);
        n += (size_t)got;
    }
    ck_assert_msg(strstr(out, "to-stdout"), "%s", out);
    server_stop(server);
}
END_TEST

static bool reports_lost(void *arg)
{
    (void)arg;
    return strstr(server_log(server), "lines were lost") != NULL;
}

START_TEST(a_full_disk_loses_log_lines_and_no_request)
{
    start("log: { access: /dev/full }");
    for (int i = 0; i < 20; i++)
        expect_status(http_get(server, "/healthz"), 200);
    ck_assert(wait_until(reports_lost, NULL, 5000));
    server_stop(server);
}
END_TEST

/* ---- unusable files ---- */

/* Columns: the option as written and as reported; the file, below the server's directory. */
static const struct {
    const char *yaml, *option, *file;
} unusable[] = {
    {"log: { access: ", "log.access", "/nowhere/access.log"},
    {"log: { access: ", "log.access", ""},
    {"log: { access: ", "log.access", "/fifo"},
    {"jwt: { secrets_file: ", "jwt.secrets_file", "/nowhere"},
    {"jwt: { secrets_file: ", "jwt.secrets_file", "/assay.yaml"},
};

START_TEST(the_configuration_check_refuses_an_unusable_file)
{
    ck_assert_int_eq(mkfifo(text("%s/fifo", server->dir), 0600), 0);
    server_configure(server, text("%s%s%s }", unusable[_i].yaml, server->dir, unusable[_i].file));
    struct run run = run_program(assayd_path(), "-t", "-c", server->conf, NULL);
    ck_assert_msg(run.status == 1 &&
                      strstr(run.err, text("%s:9: %s: ", server->conf, unusable[_i].option)),
                  "%d: %s", run.status, run.err);
    ck_assert_int_eq(run_program(assayd_path(), "-c", server->conf, NULL).status, 1);
}
END_TEST

START_TEST(the_configuration_check_creates_no_log)
{
    server_configure(server, text("log: { access: %s }", log_path));
    struct run run = run_program(assayd_path(), "-t", "-c", server->conf, NULL);
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_int_ne(access(log_path, F_OK), 0);
}
END_TEST

START_TEST(the_configuration_check_uses_the_servers_user)
{
    if (geteuid() != 0)
        return; /* only root can become another user */
    ck_assert_int_eq(chmod(server->dir, 0755), 0);
    server_configure(server, text("log: { access: %s }", log_path));
    struct run run =
        run_program(assayd_path(), "-t", "-c", server->conf, "--set", "user=nobody", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "log.access") &&
                      strstr(run.err, "user nobody: Permission denied"),
                  "%s", run.err);
    ck_assert_int_eq(chmod(server->dir, 0777), 0);
    run = run_program(assayd_path(), "-t", "-c", server->conf, "--set", "user=nobody", NULL);
    ck_assert_msg(run.status == 0, "%s", run.err);
}
END_TEST

static bool refused_access(void *arg)
{
    (void)arg;
    return strstr(server_log(server), "reload refused: ") &&
           strstr(server_log(server), ":9: log.access: ");
}

START_TEST(a_reload_with_a_log_that_cannot_be_written_keeps_the_old_one)
{
    start(text("log: { access: %s }", log_path));
    server_configure(server, text("log: { access: %s/nowhere/access.log }", server->dir));
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(refused_access, NULL, 5000), "%s", server_log(server));
    expect_status(http(server, .path = "/healthz", .headers = {ID("after-the-reload")}), 200);
    ck_assert_ptr_nonnull(strstr(line_of("after-the-reload"), "/healthz"));
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("logs");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_line_names_the_caller_the_request_and_the_answer);
    tcase_add_test(tcase, a_refusal_names_its_limiter);
    tcase_add_test(tcase, a_line_names_the_parts_of_the_duration);
    tcase_add_loop_test(tcase, lists_and_searches_wait_for_a_query_thread, 0, 2);
    tcase_add_test(tcase, an_answer_by_the_library_is_logged);
    tcase_add_test(tcase, no_line_controls_the_terminal);
    tcase_add_test(tcase, the_combined_format_is_standard);
    tcase_add_test(tcase, the_log_goes_to_standard_output_under_the_journal);
    tcase_add_test(tcase, a_full_disk_loses_log_lines_and_no_request);
    tcase_add_loop_test(tcase, the_configuration_check_refuses_an_unusable_file, 0,
                        COUNT(unusable));
    tcase_add_test(tcase, the_configuration_check_creates_no_log);
    tcase_add_test(tcase, the_configuration_check_uses_the_servers_user);
    tcase_add_test(tcase, a_reload_with_a_log_that_cannot_be_written_keeps_the_old_one);
    return harness_main(suite);
}
