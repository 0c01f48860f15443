/* The configuration: loading, defaults, settings on the command line, and the dump. */
#include "t/kit/conf.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

START_TEST(an_empty_file_is_the_defaults)
{
    struct conf *a = conf_kit_loaded("", NO_SETS), *b = conf_kit_loaded(NULL, NO_SETS),
                *c = conf_kit_loaded("# only words\n", NO_SETS);
    char *texts[] = {conf_kit_dumped(a), conf_kit_dumped(b), conf_kit_dumped(c)};
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_eq(texts[0], texts[2]);
    ck_assert_uint_eq(a->listen_count, 1);
    ck_assert_str_eq(a->listen[0].address, "127.0.0.1:8080");
    ck_assert_str_eq(a->listen[0].tls_certificate, "");
    ck_assert_uint_ge(a->workers, 1);
    ck_assert_uint_eq(a->store_map_size, (uint64_t)64 << 30);
    ck_assert_int_eq(a->store_sync, STORE_SYNC_FULL);
    ck_assert_uint_eq(a->jwt_ttl_ms, 3600000);
    ck_assert_uint_eq(a->redis_nodes, CONF_NODES_AUTO);
    ck_assert_uint_eq(a->audit_ports_count, 2);
    ck_assert_uint_eq(a->audit_ports[1], 443);
    ck_assert_int_eq(a->log_level, LOG_LEVEL_INFO);
    for (int i = 0; i < 3; i++)
        free(texts[i]);
    conf_free(a);
    conf_free(b);
    conf_free(c);
}
END_TEST

static const char everything[] =
    "listen:\n"
    "  - address: '[::]:8443'\n"
    "    tls: { certificate: /etc/a b.pem, key: /etc/\"k\\.pem }\n"
    "  - { address: unix:/run/x.sock }\n"
    "internal_listen: localhost:0\n"
    "base_url: https://api.example.com/x//\n"
    "workers: 7\n"
    "auditors: 3\n"
    "data_dir: /d\n"
    "run_dir: /r\n"
    "user: \"\"\n"
    "trusted_proxies: [ 10.0.0.0/8, '2001:db8::/32', '::1', '::/0', 1.2.3.4 ]\n"
    "store: { map_size: 1048577, sync: full }\n"
    "reports: { wait: 0s, good: 90, decent: 90 }\n"
    "jwt: { ttl: 90s, secrets_file: /s }\n"
    "audit:\n"
    "  allow_private:\n"
    "    - 127.0.0.1/32\n"
    "  ports: [8080]\n"
    "  concurrency: 1\n"
    "  timeout: 1500ms\n"
    "  max_bytes: 5 MiB\n"
    "  max_redirects: 0\n"
    "limits:\n"
    "  redis: { sentinels: [ 10.0.0.5:26379, '[2001:db8::5]:26379' ], nodes: 3, timeout: 50ms }\n"
    "  slots: 2048\n"
    "  ipv6_prefix: 56\n"
    "  exempt: [ 192.0.2.0/24, '2001:db8::/48' ]\n"
    "  limiters:\n"
    "    api: { windows: [ { limit: 9, seconds: 3600, key: ip }, { limit: 5, seconds: 60, key: "
    "api_key } ],\n"
    "           overrides: [ { key: 7, limit: 50 }, { key: '2001:db8:0:ff00::/56', limit: 0, "
    "seconds: 3600 } ] }\n"
    "    widget-leads: { fallback: refuse, lease: 20 }\n"
    "    widget-init: { dry_run: true, overrides: [ { key: 192.0.2.7/-, limit: 3 } ] }\n"
    "    exports: { windows: [ { limit: 1, seconds: 1, key: jwt } ], routes: [ 'GET /a', '* /b/*' "
    "] }\n"
    "log: { level: debug, access: '-', format: combined }\n"
    "timeouts: { header: 1s, body: 2m, send: 1h, idle: 100ms, drain: 0 }\n"
    "max_connections: 1\n";

START_TEST(every_option_is_read)
{
    struct conf *c = conf_kit_loaded(everything, NO_SETS);
    ck_assert_uint_eq(c->listen_count, 2);
    ck_assert_str_eq(c->listen[0].address, "[::]:8443");
    ck_assert_str_eq(c->listen[0].tls_certificate, "/etc/a b.pem");
    ck_assert_str_eq(c->listen[0].tls_key, "/etc/\"k\\.pem");
    ck_assert_str_eq(c->listen[1].address, "unix:/run/x.sock");
    ck_assert_str_eq(c->listen[1].tls_key, "");
    ck_assert_str_eq(c->internal_listen, "localhost:0");
    ck_assert_str_eq(c->base_url, "https://api.example.com/x");
    ck_assert_uint_eq(c->workers, 7);
    ck_assert_uint_eq(c->auditors, 3);
    ck_assert_str_eq(c->data_dir, "/d");
    ck_assert_str_eq(c->run_dir, "/r");
    ck_assert_str_eq(c->user, "");
    ck_assert_uint_eq(c->trusted_proxies.count, 5);
    ck_assert_uint_eq(c->trusted_proxies.items[0].bits, 104);
    ck_assert_uint_eq(c->store_map_size, 1048577);
    ck_assert_uint_eq(c->reports_wait_ms, 0);
    ck_assert_uint_eq(c->limits_slots, 2048);
    ck_assert_uint_eq(c->limits->ipv6_prefix, 56);
    ck_assert_uint_eq(c->limits->exempt_count, 2);
    ck_assert_uint_eq(c->limits->exempt[0].bits, 120);
    ck_assert_uint_eq(c->limits->count, LIMITERS_BUILT_IN + 1);
    const struct limiter_row *row = &c->limits->rows[LIMITER_API];
    ck_assert_uint_eq(row->windows_count, 2);
    ck_assert_uint_eq(row->windows[0].by, BY_API_KEY); /* the more specific key first */
    ck_assert_uint_eq(row->windows[0].limit, 5);
    ck_assert_uint_eq(row->windows[1].seconds, 3600);
    ck_assert_uint_eq(c->limits->overrides_count, 3);
    ck_assert_uint_eq(c->redis_sentinels.count, 2);
    ck_assert_str_eq(c->redis_sentinels.items[1], "[2001:db8::5]:26379");
    ck_assert_uint_eq(c->redis_nodes, 3);
    ck_assert_uint_eq(c->redis_timeout_ms, 50);
    ck_assert_uint_eq(c->limits->rows[LIMITER_WIDGET_LEADS].fallback, FALLBACK_REFUSE);
    ck_assert_uint_eq(c->limits->rows[LIMITER_WIDGET_LEADS].lease, 20);
    ck_assert(c->limits->rows[LIMITER_WIDGET_INIT].dry_run);
    ck_assert_uint_eq(c->limits->rows[LIMITER_WIDGET_INIT].windows_count, 2);
    row = &c->limits->rows[LIMITERS_BUILT_IN];
    ck_assert_str_eq(row->name, "exports");
    ck_assert_uint_eq(row->routes_count, 2);
    ck_assert_str_eq(row->routes[1], "* /b/*");
    ck_assert_uint_eq(c->reports_good, 90);
    ck_assert_uint_eq(c->reports_decent, 90);
    ck_assert_uint_eq(c->jwt_ttl_ms, 90000);
    ck_assert_str_eq(c->jwt_secrets_file, "/s");
    ck_assert_uint_eq(c->audit_allow_private.count, 1);
    ck_assert_uint_eq(c->audit_ports_count, 1);
    ck_assert_uint_eq(c->audit_ports[0], 8080);
    ck_assert_uint_eq(c->audit_concurrency, 1);
    ck_assert_uint_eq(c->audit_timeout_ms, 1500);
    ck_assert_uint_eq(c->audit_max_bytes, 5u << 20);
    ck_assert_uint_eq(c->audit_max_redirects, 0);
    ck_assert_int_eq(c->log_level, LOG_LEVEL_DEBUG);
    ck_assert_str_eq(c->log_access, "-");
    ck_assert_int_eq(c->log_format, LOG_FORMAT_COMBINED);
    ck_assert_uint_eq(c->header_timeout_ms, 1000);
    ck_assert_uint_eq(c->body_timeout_ms, 120000);
    ck_assert_uint_eq(c->send_timeout_ms, 3600000);
    ck_assert_uint_eq(c->idle_timeout_ms, 100);
    ck_assert_uint_eq(c->drain_timeout_ms, 0);
    ck_assert_uint_eq(c->max_connections, 1);
    conf_free(c);
}
END_TEST

static const char *const sources[] = {"", everything};

START_TEST(a_dump_reads_back_to_the_same)
{
    struct conf *first = conf_kit_loaded(sources[_i], NO_SETS);
    char *text = conf_kit_dumped(first);
    struct conf *second = conf_kit_loaded(text, NO_SETS);
    char *again = conf_kit_dumped(second);
    ck_assert_str_eq(text, again);
    free(text);
    free(again);
    conf_free(first);
    conf_free(second);
}
END_TEST

static char *sample(void)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    conf_sample(out);
    fclose(out);
    return text;
}

START_TEST(the_sample_has_the_defaults_and_the_packages_internal_listener)
{
    char *text = sample();
    const char *set = "internal_listen=127.0.0.1:9180";
    struct conf *a = conf_kit_loaded(text, NO_SETS), *b = conf_kit_loaded(NULL, &set, 1);
    char *from_sample = conf_kit_dumped(a), *from_table = conf_kit_dumped(b);
    ck_assert_str_eq(from_sample, from_table);
    free(text);
    free(from_sample);
    free(from_table);
    conf_free(a);
    conf_free(b);
}
END_TEST

/* Whether ${text} starts with ${sentence}, which can continue in the next line of a comment. */
static bool begins_with(const char *text, const char *sentence)
{
    for (; *sentence != '\0'; sentence++) {
        if (*sentence == ' ' && *text == '\n') {
            text += 1 + strspn(text + 1, " ");
            if (strncmp(text, "# ", 2) != 0)
                return false;
            text += 2;
        } else if (*text++ != *sentence) {
            return false;
        }
    }
    return true;
}

static bool explains(const char *text, const char *sentence)
{
    while (*text != '\0' && !begins_with(text, sentence))
        text++;
    return *text != '\0';
}

START_TEST(the_sample_describes_every_option)
{
    char *text = sample();
    struct conf_option_view option;
    size_t count = 0;
    for (; conf_option_at(count, &option); count++) {
        char line[256];
        const char *leaf = strrchr(option.key, '.');
        snprintf(line, sizeof(line), "# %s; default %s; %s\n", option.type, option.initial,
                 option.reload ? "reload" : "restart");
        ck_assert_msg(strstr(text, line) != NULL, "%s", line);
        ck_assert_msg(explains(text, option.help), "%s", option.help);
        snprintf(line, sizeof(line), "%s: ", leaf == NULL ? option.key : leaf + 1);
        ck_assert_msg(strstr(text, line) != NULL, "%s", line);
    }
    ck_assert_uint_gt(count, 30);
    free(text);
}
END_TEST

START_TEST(every_key_appears_once)
{
    struct conf_option_view a, b;
    for (size_t i = 0; conf_option_at(i, &a); i++)
        for (size_t j = 0; j < i && conf_option_at(j, &b); j++)
            ck_assert_str_ne(a.key, b.key);
}
END_TEST

/* ---- --set ---- */

START_TEST(set_overrides_the_file)
{
    const char *sets[] = {
        "listen.0.address=127.0.0.1:0",
        "listen.1.address=[::1]:0",
        "listen.1.tls.certificate=/c",
        "listen.1.tls.key=/k",
        "workers=3",
        "workers=4",
        "audit.ports=80,8080",
        "audit.allow_private=[127.0.0.1/32, \"::1\"]",
        "trusted_proxies=",
        "user=",
        "data_dir=a=b",
        "limits.limiters.api={windows: [{limit: 5, seconds: 2, key: api_key}]}",
        "limits.limiters={api: {dry_run: true}}",
    };
    struct conf *c = conf_kit_loaded("workers: 2\ntrusted_proxies: [1.2.3.4]\n", sets,
                                     sizeof(sets) / sizeof(sets[0]));
    ck_assert_str_eq(c->listen[0].address, "127.0.0.1:0");
    ck_assert_uint_eq(c->listen_count, 2);
    ck_assert_str_eq(c->listen[1].address, "[::1]:0");
    ck_assert_str_eq(c->listen[1].tls_key, "/k");
    ck_assert_uint_eq(c->workers, 4);
    ck_assert_uint_eq(c->audit_ports_count, 2);
    ck_assert_uint_eq(c->audit_ports[1], 8080);
    ck_assert_uint_eq(c->audit_allow_private.count, 2);
    ck_assert_uint_eq(c->trusted_proxies.count, 0);
    ck_assert_str_eq(c->user, "");
    ck_assert_str_eq(c->data_dir, "a=b");
    ck_assert_uint_eq(c->limits->rows[LIMITER_API].windows[0].limit, 5);
    ck_assert(c->limits->rows[LIMITER_API].dry_run);
    conf_free(c);
}
END_TEST

static const struct {
    const char *set, *sentence;
} bad_sets[] = {
    {"workers", "\"workers\" is not KEY=VALUE"},
    {"=5", "is not KEY=VALUE"},
    {"wokers=5", "unknown key wokers; did you mean workers?"},
    {"audit=5", "audit is a group"},
    {"listen=5", "listen is a group"},
    {"listen.5.address=a:1", "the number of listeners is 1 (maximum 16); the next one is listen.1"},
    {"listen.x.address=a:1",
     "is not an option; the options of a listener are written listen.0.address"},
    {"listen.0=a:1", "the options of a listener are written"},
    {"listen.0.adress=a:1", "did you mean"},
    {"listen.0.address=a", "listen.0.address: \"a\" is not an address"},
    {"limits.slots=5", "limits.slots: 5 is out of range"},
    {"limits=5", "limits is a group"},
    {"limits.limiters=5", "limits.limiters: wrong type; give a map of limiters by name"},
    {"limits.limiters.api=5", "limits.limiters.api: wrong type; give a map such as {windows: …}"},
    {"limits.limiters.api={windows: 5}", "limits.limiters.api.windows: wrong type; give a list"},
    {"limits.limiters.api={windows: [", "not YAML: "},
    {"limits.limiters.api={}}, workers: {", "unknown key limits.workers"},
    {"limits.limiters.Api={}", "limits.limiters.Api: the name of a limiter"},
    {"workers=", "workers: \"\" is not a whole number"},
    {"audit.ports=80,x", "\"x\" is not a port"},
    {"workers=\n\x1b[31m", "workers: \"??[31m\" is not a whole number"},
};

START_TEST(a_set_option_with_too_many_items_is_an_error)
{
    char text[2048] = "trusted_proxies=", *mistakes;
    const char *set = text;
    struct conf *conf;
    for (int i = 0; i < 257; i++)
        strcat(text, "::1,");
    ck_assert_int_eq(conf_kit_load(NULL, &set, 1, &mistakes, &conf), 1);
    conf_kit_has(mistakes, 0, "trusted_proxies: more than 256 items");
    free(mistakes);
}
END_TEST

START_TEST(a_wrong_set_option_is_an_error)
{
    char *mistakes;
    struct conf *conf;
    ck_assert_int_eq(conf_kit_load(NULL, &bad_sets[_i].set, 1, &mistakes, &conf), 1);
    conf_kit_has(mistakes, 0, bad_sets[_i].sentence);
    free(mistakes);
}
END_TEST

/* ---- reload ---- */

static const struct {
    const char *set;
    int refusals;
} changes[] = {
    {"workers=31", 0},
    {"log.level=debug", 0},
    {"listen.0.tls.certificate=/other", 0},
    {"base_url=http://b", 0},
    {"audit.ports=1", 0},
    {"trusted_proxies=1.1.1.1", 0},
    {"limits.limiters.api={dry_run: true}", 0},
    {"limits.exempt=1.1.1.1", 0},
    {"listen.0.proxy_protocol=true", 0},
    {"limits.slots=4096", 1},
    {"listen.0.address=a:2", 1},
    {"listen.1.address=a:2", 1},
    {"data_dir=/o", 1},
    {"run_dir=/o", 1},
    {"user=o", 1},
    {"store.map_size=1GiB", 1},
    {"internal_listen=a:1", 1},
    {"jwt.secrets_file=/o", 1},
};

START_TEST(a_reload_refuses_only_options_that_need_a_restart)
{
    const char *tls[] = {"listen.0.tls.certificate=/c", "listen.0.tls.key=/k"};
    const char *sets[] = {tls[0], tls[1], changes[_i].set};
    struct conf *old = conf_kit_loaded(NULL, tls, 2), *changed = conf_kit_loaded(NULL, sets, 3);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(conf_reload_refusals(old, changed, out), changes[_i].refusals);
    ck_assert_int_eq(conf_reload_refusals(old, old, out), 0);
    fclose(out);
    ck_assert_int_eq(strstr(text, "needs a restart") != NULL, changes[_i].refusals);
    free(text);
    conf_free(old);
    conf_free(changed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf");
    TCase *tcase = tcase_create("conf");
    tcase_add_checked_fixture(tcase, conf_kit_open, conf_kit_close);
    tcase_add_test(tcase, an_empty_file_is_the_defaults);
    tcase_add_test(tcase, every_option_is_read);
    tcase_add_loop_test(tcase, a_dump_reads_back_to_the_same, 0, COUNT(sources));
    tcase_add_test(tcase, the_sample_has_the_defaults_and_the_packages_internal_listener);
    tcase_add_test(tcase, the_sample_describes_every_option);
    tcase_add_test(tcase, every_key_appears_once);
    tcase_add_test(tcase, set_overrides_the_file);
    tcase_add_test(tcase, a_set_option_with_too_many_items_is_an_error);
    tcase_add_loop_test(tcase, a_wrong_set_option_is_an_error, 0, COUNT(bad_sets));
    tcase_add_loop_test(tcase, a_reload_refuses_only_options_that_need_a_restart, 0,
                        COUNT(changes));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
