/*
 * Health, the OpenAPI document, and a store that is missing, unreadable, of another format, or
 * full.
 */
#include "store/engine/schema.h"
#include "t/kit/harness.h"
#include "t/kit/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin});
}

static void teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

START_TEST(health_and_readiness_need_no_credential)
{
    static const char *const paths[] = {"/healthz", "/readyz"};
    server_start(server);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = http(server, .path = paths[i], .key = "");
        expect_status(r, 200);
        expect(r, header(r, "X-Request-Id") && header(r, "Cache-Control") &&
                      strstr(header(r, "Cache-Control"), "no-store"));
    }
    server_stop(server);
}
END_TEST

START_TEST(the_internal_listener_serves_operators_only)
{
    uint16_t port = loopback_port();
    server_configure(server, text("internal_listen: 127.0.0.1:%u", port));
    server_start(server);
    struct server inside = *server;
    inside.url = text("http://127.0.0.1:%u", port);
    expect_status(http(&inside, .path = "/healthz", .key = ""), 200);
    expect_status(http(&inside, .path = "/readyz", .key = ""), 200);
    expect_status(http(&inside, .path = "/api/v1/reports"), 404);
    expect_status(http(server, .path = "/healthz"), 200);
    server_stop(server);
}
END_TEST

START_TEST(a_draining_server_is_not_ready)
{
    server_start(server);
    struct raw *half = raw_open(server);
    raw_text(half, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\n");
    expect_status(raw_response(half, false, 5000), 200);
    server_signal(server, SIGTERM);
    /* the same connection sees the drain: the request had started */
    ck_assert_int_eq(server_wait(server, 300), -1);
    raw_text(half, "Host: x\r\n\r\n");
    expect_error(raw_response(half, false, 5000), 503, "unavailable");
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

static const struct {
    const char *path, *methods[4];
} documented[] = {
    {"/api/v1/projects", {"get"}},
    {"/api/v1/projects/{project}", {"get", "delete"}},
    {"/api/v1/reports", {"get", "post"}},
    {"/api/v1/reports/{id}", {"get", "put", "delete"}},
    {"/api/v1/openapi.json", {"get"}},
    {"/healthz", {"get"}},
    {"/readyz", {"get"}},
};

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    return object && json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &value)
               ? value
               : NULL;
}

/* Every $ref below resolves. */
static void expect_refs(const struct response *r, struct json_object *value)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            expect_refs(r, json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, name, below)
        {
            if (strcmp(name, "$ref") != 0 || !json_object_is_type(below, json_type_string)) {
                expect_refs(r, below);
                continue;
            }
            char *path = text("%s", json_object_get_string(below)), *rest = path;
            struct json_object *here = r->json;
            ck_assert_msg(!strcmp(strsep(&rest, "/"), "#"), "$ref %s",
                          json_object_get_string(below));
            for (char *step; here && (step = strsep(&rest, "/")) != NULL;)
                here = member(here, step);
            ck_assert_msg(here != NULL, "$ref %s does not resolve", json_object_get_string(below));
        }
    }
}

START_TEST(the_openapi_document_describes_every_route)
{
    server_start(server);
    struct response *r = http(server, .path = "/api/v1/openapi.json", .key = "");
    expect_status(r, 200);
    ck_assert_msg(r->json != NULL, "not JSON");
    ck_assert(!strncmp(str_at(r, "openapi"), "3.1", 3));
    ck_assert(strlen(str_at(r, "info.version")) > 0 && strlen(str_at(r, "info.title")) > 0);
    struct json_object *paths = at(r, "paths");
    for (size_t i = 0; i < COUNT(documented); i++)
        for (size_t k = 0; k < COUNT(documented[i].methods) && documented[i].methods[k]; k++) {
            struct json_object *operation =
                member(member(paths, documented[i].path), documented[i].methods[k]);
            ck_assert_msg(operation != NULL, "%s %s is missing", documented[i].methods[k],
                          documented[i].path);
            ck_assert_msg(member(operation, "responses") != NULL, "%s %s has no responses",
                          documented[i].methods[k], documented[i].path);
        }
    expect_refs(r, r->json);
    const char *etag = header(r, "ETag");
    ck_assert_ptr_nonnull(etag);
    expect_status(
        http(server, .path = "/api/v1/openapi.json", .headers = {text("If-None-Match: %s", etag)}),
        304);
    server_stop(server);
}
END_TEST

/* ---- unusable stores ---- */

static void expect_no_start(const char *says)
{
    struct run run = run_program(assayd_path(), "-c", server->conf, NULL);
    ck_assert_msg(run.status == 2, "exit status %d\n%s%s", run.status, run.out, run.err);
    ck_assert_msg(strstr(run.err, says) != NULL, "%s is not in: %s", says, run.err);
    ck_assert_msg(!strstr(run.out, "ready"), "%s", run.out);
}

START_TEST(a_data_directory_that_cannot_be_created_is_named)
{
    char *missing = text("%s/not/there", server->dir);
    server->data = missing;
    server_configure(server, NULL);
    expect_no_start(missing);
    server->data = server->conf; /* a file */
    server_configure(server, NULL);
    expect_no_start(server->conf);
}
END_TEST

/* As an ordinary user when the tests run as root, because root can write to every directory. */
static int status_as_user(const char *err_path)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int program = open(assayd_path(), O_RDONLY | O_CLOEXEC);
        char *argv[] = {"assayd", "-c", server->conf, NULL};
        if (!freopen("/dev/null", "w", stdout) || !freopen(err_path, "w", stderr))
            _exit(126);
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(126);
        fexecve(program, argv, environ);
        _exit(127);
    }
    int status = 0;
    for (int64_t deadline = now_ms() + 15000; waitpid(pid, &status, WNOHANG) == 0;) {
        if (now_ms() > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        poll(NULL, 0, 5);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(a_read_only_data_directory_is_named)
{
    ck_assert_int_eq(chmod(server->dir, 0755), 0);
    ck_assert_int_eq(chmod(server->conf, 0644), 0);
    ck_assert_int_eq(chmod(server->data, 0555), 0);
    ck_assert_int_eq(chmod(server->run, 0777), 0);
    char *err = text("%s/as-nobody.log", server->dir);
    int status = status_as_user(err);
    struct run said = run_program("/bin/cat", err, NULL);
    ck_assert_msg(status == 2, "exit status %d\n%s", status, said.out);
    ck_assert_msg(strstr(said.out, server->data) != NULL, "%s is not in: %s", server->data,
                  said.out);
    ck_assert_int_eq(chmod(server->data, 0755), 0);
}
END_TEST

START_TEST(a_file_that_is_not_a_store_is_refused)
{
    FILE *file = fopen(text("%s/data.mdb", server->data), "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 20000; i++)
        fputs("rubbish ", file);
    ck_assert_int_eq(fclose(file), 0);
    expect_no_start(server->data);
}
END_TEST

/* Change the format number of the store's record. */
static void set_format(uint32_t format)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val value;
    struct key key;
    key_space(&key, SPACE_LOCAL);
    key_bytes(&key, "f", 1);
    MDB_val at_key = key_val(&key);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, server->data, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, schema_db_names[DB_BASE], 0, &dbi), 0);
    ck_assert_int_eq(mdb_get(txn, dbi, &at_key, &value), 0);
    char *copy = malloc(value.mv_size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, value.mv_data, value.mv_size);
    memcpy(copy, &format, sizeof(format));
    value.mv_data = copy;
    ck_assert_int_eq(mdb_put(txn, dbi, &at_key, &value, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    free(copy);
}

/* Server, commands, check and restore report what is wrong, where, and what to do. */
START_TEST(a_store_of_another_format_is_refused_and_unchanged)
{
    const char *said =
        text("has format %d.%d, but this version of Assay reads only format %d.%d: use the version "
             "of Assay that wrote it",
             STORE_FORMAT_VERSION + 1, STORE_LAYOUT, STORE_FORMAT_VERSION, STORE_LAYOUT);
    server_start(server);
    server_stop(server);
    char *backup = text("%s/backup", server->dir), *data = server->data;
    assay_ok(server, "backup", backup, NULL);
    set_format(STORE_FORMAT_VERSION + 1);
    expect_no_start(said);
    const struct run runs[] = {assay(server, "key", "list", NULL), assay(server, "check", NULL),
                               assay(server, "backup", text("%s/other", server->dir), NULL)};
    for (size_t i = 0; i < COUNT(runs); i++)
        ck_assert_msg(runs[i].status == 1 && strstr(runs[i].err, said) && strstr(runs[i].err, data),
                      "%d: %s", runs[i].status, runs[i].err);
    server->data = backup;
    set_format(STORE_FORMAT_VERSION + 1);
    server->data = data;
    struct run run = assay(server, "restore", backup, NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, said) && strstr(run.err, backup), "%d: %s%s",
                  run.status, run.out, run.err);
    set_format(STORE_FORMAT_VERSION);
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_stop(server);
}
END_TEST

/* ---- a full store ---- */

static struct response *create(const char *url)
{
    return http(server, .method = "POST", .path = "/api/v1/reports", .body = form("url", url, NULL),
                .headers = {"Prefer: respond-async"});
}

/* Long URLs until the store is full; the id of the last accepted one. */
static int64_t fill_up(void)
{
    char filler[1901];
    int64_t last = 0;
    memset(filler, 'f', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    for (int i = 0; i < 5000; i++) {
        struct response *r = create(text("http://127.0.0.1:80/%d/%s", i, filler));
        if (r->status != 202) {
            expect_error(r, 507, "storage_full");
            return last;
        }
        last = int_at(r, "data.id");
        response_free(r);
    }
    ck_abort_msg("the store is never full");
    return 0;
}

START_TEST(a_full_store_refuses_creates_and_allows_reads_and_deletes)
{
    server_configure(server, "store: { map_size: 4MiB }");
    server_start(server);
    int64_t first = 1, last = fill_up();
    struct response *r;
    ck_assert_int_gt(last, first);

    expect_status(http_get(server, report_path(first)), 200);
    expect_status(http_get(server, "/api/v1/reports?per_page=25&search=ffff"), 200);
    expect_status(http_get(server, "/healthz"), 200);
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "key", "list", NULL)), 1);
    unsigned others = 0; /* the project's id has the same digits */
    for (int64_t id = first; id <= last; id++) {
        r = http_delete(server, report_path(id));
        expect(r, r->status == 200 || (r->status == 404 && others++ == 0));
    }
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 0);
    int64_t deadline = now_ms() + 10000;
    do
        r = create("http://127.0.0.1:80/again");
    while (r->status == 507 && now_ms() < deadline);
    expect_status(r, 202);
    struct run check = assay(server, "check", NULL);
    ck_assert_msg(check.status == 0, "%s%s", check.out, check.err);
    server_stop(server);
}
END_TEST

/* Another process holds each of its snapshots for a while. */
static void read_slowly(void)
{
    enum { HOLD_MS = 200 };
    char why[512];
    struct store *s;
    struct store_space space;
    const struct store_options o = {.dir = server->data, .mode = STORE_READ};
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK)
        _exit(9);
    while (store_space(s, &space) == STORE_OK) {
        usleep(HOLD_MS * 1000);
        store_read_end(s);
    }
    _exit(9);
}

START_TEST(deletes_on_a_full_store_wait_for_slow_readers)
{
    server_configure(server, "store: { map_size: 4MiB }");
    server_start(server);
    int64_t last = fill_up();
    pid_t reader = fork();
    ck_assert_int_ge(reader, 0);
    if (reader == 0)
        read_slowly();
    unsigned others = 0; /* the project's id has the same digits */
    for (int64_t id = 1; id <= last; id++) {
        struct response *r = http_delete(server, report_path(id));
        expect(r, r->status == 200 || (r->status == 404 && others++ == 0));
    }
    ck_assert_int_eq(waitpid(reader, NULL, WNOHANG), 0);
    kill(reader, SIGKILL);
    ck_assert_int_eq(waitpid(reader, NULL, 0), reader);
    assay_ok(server, "check", NULL);
    server_stop(server);
}
END_TEST

enum { HELD = 12 };

/* Findings that fill pages of the store: their names are random. */
static void hold_page_of_findings(const char *path, unsigned seed)
{
    static const char *const shapes[] = {
        "<img src='/%016llx%016llx%016llx%016llx%016llx.jpg'>",
        "<p style='color:#%016llx%016llx%016llx%016llx%016llx'>x</p>",
        "<script src='http://127.0.0.1:9/%016llx%016llx%016llx%016llx%016llx.js'></script>"};
    static char body[24 << 10];
    uint64_t x = 0x9e3779b97f4a7c15 * (seed + 1);
    size_t n = 0;
    for (int i = 0; i < 200; i++) {
        unsigned long long random[5];
        for (int j = 0; j < 5; j++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            random[j] = x;
        }
        n += (size_t)snprintf(body + n, sizeof(body) - n, shapes[i % 3], random[0], random[1],
                              random[2], random[3], random[4]);
    }
    origin_page(origin, path, 200, "Content-Type: text/html\r\n", body);
    origin_hold(origin, path);
}

START_TEST(results_deferred_by_a_full_store_are_stored_later)
{
    int64_t ids[HELD];
    server_configure(server, "store: { map_size: 4MiB }");
    server_start(server);
    for (int i = 0; i < HELD; i++) {
        char *path = text("/held-%d", i);
        hold_page_of_findings(path, (unsigned)i);
        ids[i] = report_queued(server, origin_url(origin, path));
    }
    int64_t last = fill_up();
    for (int i = 0; i < HELD; i++)
        origin_release(origin, text("/held-%d", i));
    for (int i = 0; i < HELD; i++)
        ck_assert(origin_asked(origin, text("/held-%d", i)));
    ck_assert_msg(server_says(server, "holding grading results in memory", 0, 5000), "%s",
                  server_log(server));
    for (int64_t id = ids[HELD - 1] + 1; id <= last; id++)
        ck_assert_int_eq(http_delete(server, report_path(id))->status, 200);
    for (int i = 0; i < HELD; i++) {
        expect_str(report_wait(server, ids[i]), "data.status", "done");
        ck_assert_uint_eq(origin_hits(origin, text("/held-%d", i)), 1);
    }
    assay_ok(server, "check", NULL);
    server_stop(server);
}
END_TEST

START_TEST(keys_can_be_revoked_while_the_store_is_full)
{
    server_configure(server, "store: { map_size: 4MiB }");
    server_start(server);
    char *key = assay_ok(server, "key", "create", "--workspace", "main", "--scope", "reports:read",
                         "--json", NULL);
    struct json_object *made = json_tokener_parse(key);
    fill_up();
    assay_ok(server, "key", "revoke", record_text(made, "id"), NULL);
    server_stop(server);
}
END_TEST

START_TEST(a_larger_map_frees_a_full_store)
{
    server_configure(server, "store: { map_size: 4MiB }");
    server_start(server);
    int64_t last = fill_up();
    server_stop(server);
    server_configure(server, "store: { map_size: 64MiB }");
    server_start(server);
    expect_status(create("http://127.0.0.1:80/more"), 202);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last + 1);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("platform");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, health_and_readiness_need_no_credential);
    tcase_add_test(tcase, the_internal_listener_serves_operators_only);
    tcase_add_test(tcase, a_draining_server_is_not_ready);
    tcase_add_test(tcase, the_openapi_document_describes_every_route);
    tcase_add_test(tcase, a_data_directory_that_cannot_be_created_is_named);
    tcase_add_test(tcase, a_read_only_data_directory_is_named);
    tcase_add_test(tcase, a_file_that_is_not_a_store_is_refused);
    tcase_add_test(tcase, a_store_of_another_format_is_refused_and_unchanged);
    tcase_add_test(tcase, a_full_store_refuses_creates_and_allows_reads_and_deletes);
    tcase_add_test(tcase, deletes_on_a_full_store_wait_for_slow_readers);
    tcase_add_test(tcase, results_deferred_by_a_full_store_are_stored_later);
    tcase_add_test(tcase, keys_can_be_revoked_while_the_store_is_full);
    tcase_add_test(tcase, a_larger_map_frees_a_full_store);
    return harness_main(suite);
}
