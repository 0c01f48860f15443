/* Neither a log nor a core file contains a secret. */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <openssl/hmac.h>
#include <signal.h>
#include <sys/resource.h>
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

/* ---- secrets ---- */

static const char *secrets[64];
static size_t secrets_count;

static const char *secret(const char *value)
{
    ck_assert_uint_lt(secrets_count, COUNT(secrets));
    ck_assert_msg(value && strlen(value) >= 8, "the secret is too short to search for");
    return secrets[secrets_count++] = value;
}

static void expect_no_secret_in(const char *what, const char *logged)
{
    ck_assert_msg(strlen(logged) > 0, "%s is empty", what);
    for (size_t i = 0; i < secrets_count; i++)
        ck_assert_msg(!strstr(logged, secrets[i]), "%s has \"%s\":\n%s", what, secrets[i], logged);
}

/* a certificate and its key, whose lines are secrets */
static void write_certificate(const char *certificate, const char *path)
{
    char line[128];
    EVP_PKEY_free(tls_pair(certificate, path, false, 1));
    FILE *file = fopen(path, "r");
    ck_assert(file && fgets(line, sizeof(line), file) && fgets(line, sizeof(line), file));
    secret(text("%.60s", line));
    ck_assert_int_eq(fclose(file), 0);
}

static void learn_signing_secrets(void)
{
    char hex[129];
    FILE *file = fopen(text("%s/secrets", server->data), "r");
    ck_assert_ptr_nonnull(file);
    while (fscanf(file, "%128s", hex) == 1)
        if (strlen(hex) >= 32)
            secret(text("%s", hex));
    fclose(file);
}

/* any answer is accepted: this test checks the logs */
static struct response *use(const char *method, const char *path, const char *key, const char *type,
                            const char *more, const char *body)
{
    return http(server, .method = method, .path = path, .key = key, .headers = {type, more},
                .body = body);
}

#define FORM "Content-Type: application/x-www-form-urlencoded"
#define JSON "Content-Type: application/json"
#define NOTHING "Accept: */*"

static void use_api_keys(void)
{
    const char *key = secret(server->key),
               *narrow = secret(key_new(server, "main", "projects:read", NULL));
    const char *revoked = secret(key_new(server, "main", NULL)),
               *wrong = secret("asy_key_ThisOneIsNoKeyOfOursAtAllAndNeverWas1");
    const char *paths[] = {"/api/v1/reports", "/api/v1/reports/99999", "/api/v1/nothing",
                           "/api/v1/reports?per_page=x", "/healthz"};
    const char *keys[] = {key, narrow, revoked, wrong};
    struct json_object *list = assay_list(server, "key", "list", NULL), *id = NULL;
    json_object_object_get_ex(json_object_array_get_idx(list, json_object_array_length(list) - 1),
                              "id", &id);
    if (id != NULL)
        assay(server, "key", "revoke", json_object_get_string(id), NULL);
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (size_t k = 0; k < COUNT(paths); k++)
            use("GET", paths[k], keys[i], NOTHING, NULL, NULL);
        use("GET", text("/api/v1/reports?api_key=%s", keys[i]), "", NOTHING, NULL, NULL);
        use("GET", text("/api/v1/reports/%s", keys[i]), "", NOTHING, NULL, NULL);
        use("GET", text("/%s/x?%s", keys[i], keys[i]), "", text("User-Agent: curl %s", keys[i]),
            NULL, NULL);
        use("GET", "/api/v1/reports", "", text("Authorization: Basic %s", keys[i]),
            text("X-Api-Key: %s", keys[i]), NULL);
        use("GET", "/api/v1/reports", "", text("Cookie: key=%s", keys[i]), NULL, NULL);
    }
}

static void use_passwords(void)
{
    const char *good = secret("correct horse battery"),
               *coded = secret("correct%20horse%20battery"),
               *plus = secret("correct+horse+battery");
    char *long_one = calloc(1, 400);
    memset(long_one, 'q', 300);
    secret(text("%.60s", long_one));
    (void)coded, (void)plus;
    int64_t id = report_new(server, origin_url(origin, "/good"));
    use("POST", "/api/v1/reports", NULL, FORM, NULL,
        form("url", origin_url(origin, "/good"), "privacy", "2", "password", good, NULL));
    use("POST", "/api/v1/reports", NULL, FORM, NULL,
        form("url", origin_url(origin, "/good"), "privacy", "2", "password", long_one, NULL));
    use("POST", "/api/v1/reports", NULL, FORM, NULL,
        form("url", "nonsense", "privacy", "2", "password", good, NULL));
    use("POST", "/api/v1/reports", NULL, JSON, NULL, text("{\"password\":\"%s\"}", good));
    use("POST", "/api/v1/reports", NULL, FORM, NULL, text("password=%s%%zz", coded));
    use("PUT", report_path(id), NULL, FORM, NULL, form("privacy", "2", "password", good, NULL));
    use("PUT", report_path(id), "", FORM, NULL, form("privacy", "2", "password", good, NULL));
    use("GET", text("%s?password=%s", report_path(id), coded), NULL, NOTHING,
        text("X-Password: %s", good), NULL);
    use("GET", text("/reports/1?pass%%77ord=%s&x=1", plus), "", NOTHING, NULL, NULL);
    use("GET", text("/reports/1?PASSWORD=%s&x=1", plus), "", NOTHING,
        text("Cookie: unlock=%s", plus), NULL);
}

static void use_visitors(void)
{
    const char *origin_header = "Origin: https://shop.example", *agent;
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "https://shop.example", NULL);
    struct response *r = use("POST", "/api/v1/widget/init", "", JSON, origin_header,
                             text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    const char *jwt = secret(str_at(r, "data.jwt")),
               *anonymous = secret(str_at(r, "data.anonymous_id"));
    secret(text("%s", strrchr(jwt, '.') + 1)); /* its signature only */
    use("POST", "/api/v1/widget/init", "", JSON, origin_header,
        text("{\"agent_id\":\"%s\",\"anon_id\":\"%s\"}", agent, anonymous));
    use("POST", "/api/v1/widget/init", "", JSON, "Origin: https://evil.example",
        text("{\"agent_id\":\"%s\",\"anon_id\":\"%s\"}", agent, anonymous));
    use("GET", text("/api/v1/widget/conversation?x=%s", anonymous), "", NOTHING, NULL, NULL);
    use("GET", text("/api/v1/widget/%s/x", anonymous), "", NOTHING, NULL, NULL);
    use("POST", "/api/v1/widget/messages", jwt, JSON, origin_header, "{\"message\":\"hello\"}");
    use("POST", "/api/v1/widget/messages", jwt, JSON, "Origin: https://evil.example",
        "{\"message\":\"hello\"}");
    use("POST", "/api/v1/widget/messages", text("%sx", jwt), JSON, origin_header,
        "{\"message\":\"hello\"}");
    use("GET", text("/api/v1/widget/conversation/messages?token=%s", jwt), "", NOTHING, NULL, NULL);
    use("GET", text("/api/v1/widget/conversation/messages?x=%s", jwt), "", NOTHING, NULL, NULL);
    use("POST", "/api/v1/widget/coupon/apply", jwt, JSON, origin_header,
        text("{\"code\":\"%s\"}", secret("SUMMER-SECRET-2026")));
    expect_status(use("DELETE", "/api/v1/widget/me", jwt, NOTHING, origin_header, NULL), 200);
    use("DELETE", "/api/v1/widget/me", jwt, NOTHING, origin_header, NULL);
}

static const char *signature(const char *token, const char *body, long t)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    char *signed_text = text("%ld.%s", t, body), *hex = calloc(1, 2 * sizeof(mac) + 1);
    HMAC(EVP_sha256(), token, (int)strlen(token), (unsigned char *)signed_text, strlen(signed_text),
         mac, &size);
    for (unsigned i = 0; i < size; i++)
        sprintf(hex + 2 * (size_t)i, "%02x", mac[i]);
    return hex;
}

static void use_workspace_tokens(void)
{
    const char *body = "{\"site_url\":\"https://"
                       "shop.example\",\"plugin_version\":\"1\",\"woocommerce_active\":true}";
    const char *token = secret(
        assay_ok(server, "token", "create", "--workspace", "main", "--require-signature", NULL));
    long now = (long)time(NULL);
    const char *hex = secret(signature(token, body, now));
    expect_status(use("POST", "/v1/wp/handshake", token, JSON,
                      text("X-Signature: t=%ld,v1=%s", now, hex), body),
                  200);
    use("POST", "/v1/wp/handshake", token, JSON, NULL, body);
    use("POST", "/v1/wp/handshake", token, JSON, text("X-Signature: t=%ld,v1=%s", now - 9999, hex),
        body);
    use("POST", "/v1/wp/handshake", token, JSON, text("X-Signature: t=%ld,v1=%.60s", now, hex),
        body);
    use("GET", text("/v1/wp/status?agent_id=%s&signature=%s", token, hex), "", NOTHING, NULL, NULL);
    use("GET", text("/v1/wp/status?%%73ig=%s", hex), "", NOTHING, NULL, NULL);
    use("POST", text("/v1/wp/nothing?wp_token=%s", token), token, JSON, NULL, body);
}

static void use_what_is_no_request(void)
{
    const char *head = secret("CONFIDENTIAL-IN-A-BROKEN-HEAD");
    static const char *const broken[] = {
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\nAuthorization: Bearer %s\r\n\r\n",
        "GET / HTTP/1.1\r\nAuthorization: Bearer %s\r\nAuthorization: Bearer y\r\nHost: x\r\n\r\n",
        ("POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: "
         "99999999999\r\nAuthorization: "
         "Bearer %s\r\n\r\n"),
        "\x16\x03\x01 %s\r\n\r\n",
        "GET / HTTP/1.1\r\nAuthorization: Bearer %s",
    };
    for (size_t i = 0; i < COUNT(broken); i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw, broken[i], head);
        raw_response(raw, false, 300);
        raw_close(raw);
    }
}

static void refuse_a_reload(const char *certificate)
{
    server_configure(
        server, text("log: { level: debug, access: %s }\njwt: { secrets_file: %s }\nworkers: 2",
                     log_path, certificate));
    server_signal(server, SIGHUP);
}

static bool refused_reload(void *arg)
{
    (void)arg;
    return strstr(server_log(server), "reload refused") != NULL;
}

static bool worker_came_back(void *arg)
{
    pid_t now = server_process(server, "assayd: worker 0");
    return now > 0 && now != *(pid_t *)arg;
}

static const char *const formats[] = {"json", "combined"};

START_TEST(no_secret_is_ever_logged)
{
    char *certificate = text("%s/cert.pem", server->dir), *key = text("%s/key.pem", server->dir);
    secrets_count = 0;
    write_certificate(certificate, key);
    server_configure(server,
                     text("log: { level: debug, access: %s, format: %s }", log_path, formats[_i]));
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", certificate), "--set",
                 text("listen.1.tls.key=%s", key), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    assay_ok(server, "workspace", "create", "main", NULL);
    server->key = key_new(server, "main", NULL);
    learn_signing_secrets();
    use_api_keys();
    use_passwords();
    use_visitors();
    use_workspace_tokens();
    use_what_is_no_request();
    refuse_a_reload(key);
    ck_assert_msg(wait_until(refused_reload, NULL, 5000), "%s", server_log(server));
    pid_t worker = server_process(server, "assayd: worker 0");
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_assert(wait_until(worker_came_back, &worker, 5000));
    expect_status(http(server, .path = "/healthz?the-last", .headers = {NOTHING}), 200);
    server_stop(server);
    char *logged = run_program("/bin/cat", log_path, NULL).out;
    ck_assert_msg(strstr(logged, "the-last") != NULL, "the log is incomplete");
    expect_no_secret_in("the access log", logged);
    expect_no_secret_in("the error log", server_log(server));
}
END_TEST

/* ---- core files ---- */

static bool has_a_core(const char *dir)
{
    struct run run = run_program("/usr/bin/find", dir, "-name", "core*", "-size", "+0", NULL);
    return run.out[0] != '\0';
}

static const char *const titles[] = {"assayd: worker 0", "assayd: writer", "assayd: auditor 0"};

static void expect_no_core_limit(pid_t pid)
{
    struct rlimit limit = {1, 1};
    ck_assert_int_eq(prlimit(pid, RLIMIT_CORE, NULL, &limit), 0);
    ck_assert_msg(limit.rlim_cur == 0 && limit.rlim_max == 0, "%s can leave a core file",
                  process_title(pid));
}

static pid_t running;

/* an auditor exits with its writer and is replaced */
static bool is_running(void *title)
{
    return (running = server_process(server, title)) > 0;
}

static bool has_exited(void *pid)
{
    return !process_alive(*(pid_t *)pid);
}

/*
 * A process that is not dumpable has /proc files owned by root. Only a user other than root sees
 * the difference; as root all files are root's.
 */
START_TEST(no_process_leaves_a_core_file)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    char program[PATH_MAX], command[PATH_MAX];
    ck_assert(realpath(assayd_path(), program) && realpath(assay_path(), command));
    setenv("ASSAYD", program, 1);
    setenv("ASSAY", command, 1);
    ck_assert_int_eq(chdir(server->dir), 0); /* where it would be */
    start("");
    expect_no_core_limit(server->pid);
    for (size_t i = 0; i < COUNT(titles); i++) {
        ck_assert(wait_until(is_running, (void *)(uintptr_t)titles[i], 5000));
        pid_t pid = running;
        expect_no_core_limit(pid);
        ck_assert_int_eq(kill(pid, SIGTRAP), 0);
        ck_assert_int_eq(wait_until(has_exited, &pid, 5000), true);
    }
    ck_assert(!has_a_core(server->dir));
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("log_secrets");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, no_secret_is_ever_logged, 0, COUNT(formats));
    tcase_add_test(tcase, no_process_leaves_a_core_file);
    return harness_main(suite);
}
