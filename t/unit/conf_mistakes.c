/* Errors in a configuration: each is refused with its line and what to do. */
#include "t/kit/conf.h"
#include "t/kit/suite.h"

#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_REDIS
#define REDIS_MISTAKE "the engine redis needs a key file"
#else
#define REDIS_MISTAKE "this program is built without Redis; install the package assay-cluster"
#endif

static const struct {
    const char *yaml;
    unsigned line;
    const char *sentence;
} mistakes_table[] = {
    {"\nworker: 2\n", 2, "unknown key worker; did you mean workers?"},
    {"xyzzy: 2\n", 1, "unknown key xyzzy\n"},
    {"audit:\n  port: [1]\n", 2, "unknown key audit.port; did you mean audit.ports?"},
    {"adit:\n  ports: [1]\n", 1, "unknown key adit; did you mean audit?"},
    {"drain: 1s\n", 1, "did you mean timeouts.drain?"},
    {"workres: 1\n", 1, "did you mean workers?"},
    {"max_connections_per_ip: 1000001\n", 1, "1000001 is out of range; give 0 to 1000000"},
    {"listen:\n  - address: a:1\n    proxy_protocol: yes\n", 3,
     "\"yes\" is neither true nor false"},
    {"limits: { slots: 5 }\n", 1, "5 is out of range; give 1024 to 1073741824"},
    {"limits: { ipv6_prefix: 129 }\n", 1, "129 is out of range; give 16 to 128"},
    {"limits: { engine: local, redis: { prefix: 'a:b' } }\n", 1,
     "use at most 32 letters, digits, . _ and -"},
    {"limits:\n  redis: { sentinels: [ 10.0.0.5 ] }\n", 2, "\"10.0.0.5\" is not an address"},
    {"limits: { engine: memcached }\n", 1, "\"memcached\" is not one of local, redis"},
    {"limits:\n  engine: redis\n", 2, REDIS_MISTAKE},
    {"cluster: { key_file: /k }\nlimits:\n  engine: redis\n", 3, REDIS_MISTAKE}, /* no cluster */
    {"limits: { redis: { nodes: 0 } }\n", 1, "0 is out of range; give 1 to 1000, or auto"},
    {"limits: { limiters: { api: { fallback: never } } }\n", 1,
     "\"never\" is not one of local, refuse, admit"},
    {"limits: { limiters: { api: { lease: 100001 } } }\n", 1, "from 0 to 100000"},
    {"limits: { limiters: { report-password: { lease: 2 } } }\n", 1,
     "lease needs windows that count the same key"},
    {"limits: { limiters: [] }\n", 1,
     "limits.limiters: wrong type; give a map of limiters by name"},
    {"limits:\n  limiters:\n    API: {}\n", 3,
     "limits.limiters.API: the name of a limiter has 1 to 32 lowercase letters"},
    {"limits:\n  limiters:\n    api: {}\n    api: {}\n", 4, "api is set twice, first on line 3"},
    {"limits:\n  limiters:\n    api:\n      window: []\n", 4,
     "limits.limiters.api.window: unknown key"},
    {"limits: {limiters: {api: {dry_run: yes}}}\n", 1,
     "limits.limiters.api.dry_run: give true or false"},
    {"limits: {limiters: {api: {windows: []}}}\n", 1,
     "limits.limiters.api.windows: give 1 to 4 items"},
    {"limits: {limiters: {api: {windows: {limit: 1}}}}\n", 1,
     "limits.limiters.api.windows: wrong type; give a list"},
    {"limits:\n  limiters:\n    api:\n      windows:\n        - { limit: 5, seconds: 60 }\n", 5,
     "limits.limiters.api.windows.0: key is missing"},
    {"limits:\n  limiters:\n    api:\n      windows:\n        - { limit: 5, seconds: 60, key: host "
     "}\n",
     5, "\"host\" is not one of ip, ip+agent, jwt, token, api_key, report"},
    {"limits:\n  limiters:\n    api:\n      windows:\n        - { limit: 5, seconds: 0, key: ip "
     "}\n",
     5, "windows.0.seconds: \"0\" is not a whole number from 1 to 2678400"},
    {"limits:\n  limiters:\n    api:\n      windows:\n        - { limit: -5, seconds: 1, key: ip "
     "}\n",
     5, "windows.0.limit: \"-5\" is not a whole number from 0 to 8388607"},
    {"limits:\n  limiters:\n    api:\n      windows:\n        - { limit: 1, limit: 2, seconds: 1, "
     "key: ip }\n",
     5, "windows.0.limit: is set twice"},
    {"limits: {limiters: {api: {windows: [{limit: 1, seconds: 9, key: ip}, {limit: 2, seconds: 9, "
     "key: ip}]}}}\n",
     1, "windows.1: has the same key and seconds as another window"},
    {"limits: {limiters: {mine: {routes: ['GET /a']}}}\n", 1,
     "limits.limiters.mine: a limiter that is not built in needs windows"},
    {"limits: {limiters: {mine: {windows: [{limit: 1, seconds: 9, key: ip}]}}}\n", 1,
     "limits.limiters.mine: a limiter that is not built in needs routes"},
    {"limits: {limiters: {api: {routes: ['/a']}}}\n", 1,
     "limits.limiters.api.routes.0: \"/a\" is not a route"},
    {"limits: {limiters: {api: {routes: ['GET /a*b']}}}\n", 1, "\"GET /a*b\" is not a route"},
    {"limits: {limiters: {api: {routes: ['GET /a', 'GET /nowhere']}}}\n", 1,
     "routes.1: there is no route \"GET /nowhere\""},
    {"limits: {limiters: {api: {routes: ['* /v1/wp/*']}}}\n", 1,
     "\"* /v1/wp/*\" is already a route of bulk-sync"},
    {"limits:\n  limiters:\n    api:\n      overrides:\n        - { key: 1.2.3.4.5, limit: 1 }\n",
     5, "limits.limiters.api: \"1.2.3.4.5\" is not a key of its windows"},
    {"limits:\n  limiters:\n    api:\n      overrides:\n        - { key: '7', limit: 1 }\n        "
     "- { key: '07', limit: 2 }\n",
     6, "there are two overrides of \"07\""},
    {"limits:\n  limiters:\n    api:\n      overrides:\n        - { key: '7', limit: 1, seconds: "
     "61 }\n",
     5, "\"7\" is not a key of its windows"},
    {"limits:\n  limiters:\n    widget-init:\n      overrides:\n        - { key: 1.2.3.4/x, limit: "
     "1 }\n",
     5, "\"1.2.3.4/x\" is not a key of its windows"},
    {"workers: 12abc\n", 1, "\"12abc\" is not a whole number; give 1 to 512, or auto"},
    {"workers: 0\n", 1, "0 is out of range; give 1 to 512, or auto"},
    {"workers: -1\n", 1, "not a whole number"},
    {"workers: 1e3\n", 1, "not a whole number"},
    {"workers: 99999999999999999999999\n", 1, "not a whole number"},
    {"workers:\n", 1, "workers: \"\" is not a whole number"},
    {"workers: [2]\n", 1, "workers: wrong type; give auto or one whole number"},
    {"auditors: {a: b}\n", 1, "auditors: wrong type"},
    {"auditors: 65\n", 1, "65 is out of range; give 1 to 64"},
    {"a: 1\nworkers: 2\nworkers: 2\n", 3, "workers is set twice, first on line 2"},
    {"log: {level: info}\nlog: {format: json}\n", 2, "log is set twice, first on line 1"},
    {"log: {level: info, level: warn}\n", 1, "log.level is set twice"},
    {"log: {level: loud}\n", 1, "\"loud\" is not one of error, warn, info, debug"},
    {"log: debug\n", 1, "log: wrong type; write its options below it"},
    {"- a\n- b\n", 1, "the configuration: wrong type"},
    {"reports: {wait: 10}\n", 1, "\"10\" is not a duration"},
    {"reports: {wait: 10 seconds}\n", 1, "is not a duration"},
    {"reports: {wait: 31s}\n", 1, "31s is out of range; give 0s to 30s"},
    {"reports:\n  good: 30\n  decent: 40\n", 3,
     "reports.decent: 40 is greater than reports.good, which is 30"},
    {"reports:\n  good: 30\n", 2, "reports.decent: 50 is greater than reports.good, which is 30"},
    {"store: {map_size: 64GB}\n", 1, "\"64GB\" is not a size"},
    {"store: {map_size: 100TiB}\n", 1, "is out of range; give 1MiB to 64TiB"},
    {"sync: {max_bytes: 17MiB}\n", 1, "is out of range; give 64KiB to 16MiB"},
    {"store: {sync: async}\n", 1, "async"},
    {"store: {sync: {async: 5ms, full: 1}}\n", 1, "store.sync: wrong type"},
    {"trusted_proxies: [10.0.0.1/8]\n", 1, "\"10.0.0.1/8\" is not an address or network"},
    {"trusted_proxies:\n  - 10.0.0.0/8\n  - [a]\n", 3, "wrong type of item"},
    {"trusted_proxies: 10.0.0.0/8\n", 1, "trusted_proxies: wrong type; give a list"},
    {"audit: {ports: [0]}\n", 1, "\"0\" is not a port"},
    {"audit: {ports: [65536]}\n", 1, "is not a port"},
    {"audit: {ports: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}\n", 1, "at most 16 ports"},
    {"listen: 127.0.0.1:80\n", 1, "listen: give a list"},
    {"listen: []\n", 1, "listen: give a list of at least one"},
    {"listen: [127.0.0.1:80]\n", 1, "listen: wrong type of item"},
    {"listen:\n  - tls: { certificate: a, key: b }\n", 2, "listen.0 has no address"},
    {"listen:\n  - address: 8080\n", 2, "\"8080\" is not an address"},
    {"listen:\n  - address: 127.0.0.1\n", 2, "is not an address"},
    {"listen:\n  - address: '127.0.0.1:'\n", 2, "the port of"},
    {"listen:\n  - address: 127.0.0.1:65536\n", 2, "is not a number from 0 to 65535"},
    {"listen:\n  - address: 127.0.0.256:80\n", 2, "neither a name nor an address"},
    {"listen:\n  - address: ::1:80\n", 2, "write an IPv6 address in brackets"},
    {"listen:\n  - address: 'unix:x.sock'\n", 2, "the path of a Unix socket must be absolute"},
    {"listen:\n  - address: 127.0.0.1:1\n  - address: 127.0.0.1:1\n", 3,
     "listen.1.address: 127.0.0.1:1 is already the address of listen.0"},
    {"listen:\n  - address: 127.0.0.1:1\n    tls: { key: a }\n", 3, "set both certificate and key"},
    {"data_dir: ''\n", 1, "data_dir: must not be empty"},
    {"data_dir: \"a\\nb\"\n", 1, "control character"},
    {"data_dir: \"a\\0b\"\n", 1, "data_dir: wrong type"},
    {"base_url: api.example.com\n", 1, "is not a base URL"},
    {"base_url: https://\n", 1, "is not a base URL"},
    {"base_url: https://a/?b\n", 1, "is not a base URL"},
    {"base_url: https://a/b;c\n", 1, "is not a base URL"},
    {"user: &a assay\n", 1, "anchors (&name) are not allowed"},
    {"user: *a\n", 1, "aliases (*name) are not allowed"},
    {"user: !!str assay\n", 1, "tags (!name) are not allowed"},
    {"user: a\n---\nuser: b\n", 2, "a second document"},
    {"workers: 2\n\tuser: a\n", 2, "not YAML: a tab in column 1; use spaces"},
    {"listen:\n\t- address: 127.0.0.1:1\n", 2, "a tab in column 1; use spaces"},
    {"reports:\n  wait: 1s\n \tgood: 90\n", 3, "a tab in column 2; use spaces"},
    {"# \303\244\nlog:\n  {level: info, \303\244:\n\t @}\n", 4, "a tab in column 1; use spaces"},
    {"listen:\n  -\taddress: 127.0.0.1:1\n", 2, "a tab in column 4; use spaces"},
    {"user: a @\nlog: @\n", 2, "not YAML: found character that cannot start any token"},
    {"user: 'a\n", 2, "not YAML: "},
    {"? [a, b]\n: c\n", 1, "a key must be a name"},
    {"user: \xff\n", 1, "not YAML: "},
};

START_TEST(an_error_names_its_line_and_cause)
{
    char *mistakes;
    struct conf *conf = (struct conf *)1;
    ck_assert_int_ge(conf_kit_load(mistakes_table[_i].yaml, NO_SETS, &mistakes, &conf), 1);
    ck_assert_ptr_null(conf);
    if (strchr(mistakes_table[_i].sentence, '\n') != NULL)
        ck_assert_ptr_nonnull(strstr(mistakes, mistakes_table[_i].sentence));
    else
        conf_kit_has(mistakes, mistakes_table[_i].line, mistakes_table[_i].sentence);
    free(mistakes);
}
END_TEST

#ifdef HAVE_POSTGRESQL
static const struct {
    const char *address;
    bool good;
} node_addresses[] = {
    {"192.0.2.1:1", true}, {"127.0.0.1:1", true}, {"\"[2001:db8::1]:1\"", true},
    {"0.0.0.0:1", false},  {"\"[::]:1\"", false}, {"localhost:1", false},
};

START_TEST(other_nodes_can_use_the_address_of_a_node)
{
    char *mistakes, text[256];
    struct conf *conf;
    snprintf(text, sizeof(text), "cluster: { log: x, address: %s, key_file: /k }\n",
             node_addresses[_i].address);
    if (node_addresses[_i].good) {
        conf_free(conf_kit_loaded(text, NO_SETS));
        return;
    }
    ck_assert_int_eq(conf_kit_load(text, NO_SETS, &mistakes, &conf), 1);
    conf_kit_has(mistakes, 1, "write the numeric address of this host as");
    free(mistakes);
}
END_TEST
#endif

#if defined(HAVE_REDIS) && defined(HAVE_POSTGRESQL)
/* The key of the cluster is that of Redis, too; without it, it is the one mistake. */
START_TEST(in_a_cluster_the_engine_redis_needs_no_key_file)
{
    static const char yaml[] = "limits: { engine: redis }\ncluster: { log: x, address: 10.0.0.1:1";
    char *mistakes, text[256];
    struct conf *conf;
    snprintf(text, sizeof(text), "%s, key_file: /k }\n", yaml);
    conf_free(conf_kit_loaded(text, NO_SETS));
    snprintf(text, sizeof(text), "%s }\n", yaml);
    ck_assert_int_eq(conf_kit_load(text, NO_SETS, &mistakes, &conf), 1);
    conf_kit_has(mistakes, 2, "cluster.key_file: a cluster needs it");
    free(mistakes);
}
END_TEST
#endif

START_TEST(all_errors_are_reported_together)
{
    char *mistakes;
    struct conf *conf;
    const char *sets[] = {"worker=1", "auditors=x"};
    ck_assert_int_eq(
        conf_kit_load("wrkers: 1\nreports: { wait: x, good: 101 }\nlog: { level: a, formt: b }\n",
                      sets, 2, &mistakes, &conf),
        7);
    conf_kit_has(mistakes, 1, "wrkers");
    conf_kit_has(mistakes, 2, "reports.wait");
    conf_kit_has(mistakes, 2, "reports.good");
    conf_kit_has(mistakes, 3, "log.level");
    conf_kit_has(mistakes, 3, "log.formt");
    conf_kit_has(mistakes, 0, "worker;");
    conf_kit_has(mistakes, 0, "auditors");
    free(mistakes);
}
END_TEST

START_TEST(an_error_is_reported_once)
{
    char *mistakes;
    struct conf *conf;
    ck_assert_int_eq(conf_kit_load("reports: { good: x, decent: 90 }\nlisten: [ { address: x }, { "
                                   "address: y }, { adress: z } ]\n",
                                   NO_SETS, &mistakes, &conf),
                     5);
    free(mistakes);
}
END_TEST

START_TEST(a_missing_file_is_an_error_only_when_named)
{
    char *mistakes;
    size_t size;
    struct conf *conf;
    FILE *out = open_memstream(&mistakes, &size);
    ck_assert_int_eq(conf_load("/nonexistent/assay.yaml", false, NO_SETS, out, &conf), 0);
    conf_free(conf);
    ck_assert_int_eq(conf_load("/nonexistent/assay.yaml", true, NO_SETS, out, &conf), 1);
    ck_assert_int_eq(conf_load("/", false, NO_SETS, out, &conf), 1);
    fclose(out);
    ck_assert_str_eq(mistakes, "/nonexistent/assay.yaml: cannot be read: No such file or "
                               "directory\n/: cannot be read: Is a directory\n");
    free(mistakes);
}
END_TEST

START_TEST(nested_aliases_are_refused_before_they_expand)
{
    char text[4096] = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n", *mistakes;
    size_t n = strlen(text);
    for (int i = 1; i < 30; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "*a%d,", i - 1);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "x]\n");
    }
    struct conf *conf;
    ck_assert_int_ge(conf_kit_load(text, NO_SETS, &mistakes, &conf), 30);
    conf_kit_has(mistakes, 2, "aliases");
    free(mistakes);
}
END_TEST

START_TEST(hostile_files_fail_fast_with_an_error)
{
    static char text[2 << 20];
    char *mistakes;
    size_t size;
    struct conf *conf;
    const char *const fills[] = {"[", "{a: ",     "- ", "? ", "a: 1\n", "workers: 1\n",
                                 "x", "\n- a:\n", "!"};
    for (size_t f = 0; f < sizeof(fills) / sizeof(fills[0]); f++) {
        size_t n = strlen(fills[f]), at = 0;
        for (; at + n < 100000; at += n)
            memcpy(text + at, fills[f], n);
        conf_kit_write(text, at);
        FILE *out = open_memstream(&mistakes, &size);
        ck_assert_msg(conf_load(conf_kit_path, true, NO_SETS, out, &conf) > 0, "%s", fills[f]);
        fclose(out);
        ck_assert_msg(size < 40000, "%s: %zu bytes of errors", fills[f], size);
        free(mistakes);
    }
    memset(text, '#', sizeof(text) - 1);
    ck_assert_int_eq(conf_kit_load(text, NO_SETS, &mistakes, &conf), 1);
    ck_assert_ptr_nonnull(strstr(mistakes, "is larger than 1048576 bytes"));
    free(mistakes);
}
END_TEST

START_TEST(any_truncated_file_is_parsed_or_refused)
{
    struct conf *conf;
    char *text;
    size_t size;
    FILE *sample = open_memstream(&text, &size), *out = fopen("/dev/null", "w");
    conf_sample(sample);
    fclose(sample);
    ck_assert_uint_gt(size, 1000);
    for (size_t n = 0; n < size; n += 3) {
        conf_kit_write(text, n);
        if (conf_load(conf_kit_path, true, NO_SETS, out, &conf) == 0)
            conf_free(conf);
        else
            ck_assert_ptr_null(conf);
    }
    fclose(out);
    free(text);
}
END_TEST

/* the existing routes, in the programs' own words */
static bool is_a_route(struct str method, struct str path)
{
    (void)method;
    return !str_eq(path, STR("/nowhere"));
}

int main(void)
{
    conf_know_routes(is_a_route);
    Suite *suite = suite_create("conf_mistakes");
    TCase *tcase = tcase_create("conf_mistakes");
    tcase_add_checked_fixture(tcase, conf_kit_open, conf_kit_close);
    tcase_set_timeout(tcase, 30); /* thousands of small files: a busy disk takes time */
    tcase_add_loop_test(tcase, an_error_names_its_line_and_cause, 0, COUNT(mistakes_table));
#ifdef HAVE_POSTGRESQL
    tcase_add_loop_test(tcase, other_nodes_can_use_the_address_of_a_node, 0, COUNT(node_addresses));
#endif
#if defined(HAVE_REDIS) && defined(HAVE_POSTGRESQL)
    tcase_add_test(tcase, in_a_cluster_the_engine_redis_needs_no_key_file);
#endif
    tcase_add_test(tcase, all_errors_are_reported_together);
    tcase_add_test(tcase, an_error_is_reported_once);
    tcase_add_test(tcase, a_missing_file_is_an_error_only_when_named);
    tcase_add_test(tcase, nested_aliases_are_refused_before_they_expand);
    tcase_add_test(tcase, hostile_files_fail_fast_with_an_error);
    tcase_add_test(tcase, any_truncated_file_is_parsed_or_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
