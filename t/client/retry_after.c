/*
 * Clients that wait for Retry-After: after a 429 they retry once and succeed. Built for curl and,
 * with CLIENT_GOT, for npm's got. The got program exits with 77 (skipped) when got is in neither
 * t/client/node_modules (installed by ./bootstrap --all-tests) nor $ASSAY_NPM/node_modules.
 */
#include "t/kit/harness.h"

#include <signal.h>

static struct server *server;

static void setup(void)
{
    server = server_new(
        &(struct server_options){.yaml = "limits: { limiters: { api: { windows: [ { limit: 2, "
                                         "seconds: 3, key: api_key } ] } } }"});
    server_start(server);
}

static void teardown(void)
{
    server_discard(server);
}

#ifdef CLIENT_GOT
#define IN_NPM "cd \"${ASSAY_NPM:-" SRCDIR "/t/client}\" && "
static const char missing[] =
    "skipped: node or npm's got is not installed: ./bootstrap --all-tests";
static const char probe[] =
    IN_NPM "node --input-type=module -e \"await import('got')\" >/dev/null 2>&1";

static struct run retry_once(const char *url)
{
    const char *script = "import got from 'got';"
                         "const r = await got(process.argv[1], {headers: {authorization: 'Bearer ' "
                         "+ process.argv[2]}, retry: {limit: 1}});"
                         "process.stdout.write(String(r.statusCode));";
    return run_program("/bin/sh", "-c",
                       IN_NPM "exec node --input-type=module -e \"$0\" \"$1\" \"$2\"", script, url,
                       server->key, NULL);
}
#else
static const char missing[] = "skipped: curl is not installed";
static const char probe[] = "curl --version >/dev/null 2>&1";

static struct run retry_once(const char *url)
{
    char *authorization = text("Authorization: Bearer %s", server->key);
    /* to a file: curl truncates it before the retry */
    return run_program(
        "/bin/sh", "-c",
        "exec curl -sS --noproxy '*' --retry 1 -o \"$2\" -w '%{http_code}' -H \"$0\" \"$1\"",
        authorization, url, text("%s/answer", server->dir), NULL);
}
#endif

static long refusals(void)
{
    struct json_object *list = assay_list(server, "limits", "list", NULL), *name, *refused;
    long count = -1;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *row = json_object_array_get_idx(list, i);
        if (json_object_object_get_ex(row, "limiter", &name) &&
            strcmp(json_object_get_string(name), "api") == 0 &&
            json_object_object_get_ex(row, "refused", &refused))
            count = (long)json_object_get_int64(refused);
    }
    json_object_put(list);
    ck_assert_int_ge(count, 0);
    return count;
}

START_TEST(one_retry_after_the_header_succeeds)
{
    char *url = text("%s/api/v1/reports", server->url);
    int refused_once = 0;
    for (int round = 0; round < 12 && refused_once < 3; round++) {
        struct response *r;
        for (int i = 0; (r = http(server, .path = "/api/v1/reports"))->status != 429; i++)
            expect(r, i < 100);
        long before = refusals();
        struct run run = retry_once(url);
        long refused = refusals() - before; /* 0 when a new window started before the request */
        ck_assert_msg(run.status == 0 && strstr(run.out, "200") != NULL,
                      "after %ld refusals: %d %s%s", refused, run.status, run.out, run.err);
        ck_assert_msg(refused <= 1, "it was refused %ld times", refused);
        refused_once += refused == 1;
    }
    ck_assert_int_eq(refused_once, 3);
    server_stop(server);
}
END_TEST

int main(void)
{
    if (system(probe) != 0) {
        fprintf(stderr, "%s\n", missing);
        return 77;
    }
    Suite *suite = suite_create("retry_after");
    TCase *tcase = harness_case(suite, "a server");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_retry_after_the_header_succeeds);
    return harness_main(suite);
}
