#include "conf.h"
#include "conf_value.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NO_SETS NULL, 0

static char dir[] = "/tmp/assay-conf-XXXXXX";
static char path[64];

static void make_dir(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/c.yaml", dir);
}

static void remove_dir(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void write_bytes(const char *text, size_t size)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Load ${text} from a file (NULL: no file). ${mistakes}, to be freed, is all that was said. */
static int load(const char *text, const char *const *sets, size_t set_count, char **mistakes, struct conf **conf)
{
    size_t size;
    if (text != NULL)
        write_bytes(text, strlen(text));
    FILE *out = open_memstream(mistakes, &size);
    ck_assert_ptr_nonnull(out);
    int count = conf_load(text == NULL ? NULL : path, true, sets, set_count, out, conf);
    fclose(out);
    return count;
}

static struct conf *loaded(const char *text, const char *const *sets, size_t set_count)
{
    char *mistakes;
    struct conf *conf;
    int count = load(text, sets, set_count, &mistakes, &conf);
    ck_assert_msg(count == 0, "%s", mistakes);
    ck_assert_str_eq(mistakes, "");
    free(mistakes);
    return conf;
}

static char *dumped(const struct conf *conf)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    conf_dump(conf, out);
    fclose(out);
    return text;
}

/* ${mistakes} has a line "PATH:LINE: …SENTENCE…". */
static void assert_mistake(const char *mistakes, unsigned line, const char *sentence)
{
    char start[96];
    if (line == 0)
        snprintf(start, sizeof(start), "--set: ");
    else
        snprintf(start, sizeof(start), "%s:%u: ", path, line);
    const char *at = mistakes;
    while ((at = strstr(at, start)) != NULL) {
        const char *end = strchr(at, '\n'), *found = strstr(at, sentence);
        if (found != NULL && found < end)
            return;
        at = end;
    }
    ck_abort_msg("wanted %s…%s in:\n%s", start, sentence, mistakes);
}

/* ---- values ---- */

START_TEST(an_empty_file_is_the_defaults)
{
    struct conf *a = loaded("", NO_SETS), *b = loaded(NULL, NO_SETS), *c = loaded("# only words\n", NO_SETS);
    char *texts[] = {dumped(a), dumped(b), dumped(c)};
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_eq(texts[0], texts[2]);
    ck_assert_uint_eq(a->listen_count, 1);
    ck_assert_str_eq(a->listen[0].address, "127.0.0.1:8080");
    ck_assert_str_eq(a->listen[0].tls_certificate, "");
    ck_assert_uint_ge(a->workers, 1);
    ck_assert_uint_eq(a->store_map_size, (uint64_t)64 << 30);
    ck_assert_uint_eq(a->store_sync_ms, 0);
    ck_assert_uint_eq(a->jwt_ttl_ms, 3600000);
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

static const char everything[] = "listen:\n"
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
                                 "store: { map_size: 1048577, sync: 'async:7ms' }\n"
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
                                 "log: { level: debug, access: '-', format: combined }\n"
                                 "timeouts: { header: 1s, body: 2m, send: 1h, idle: 100ms, drain: 0 }\n"
                                 "max_connections: 1\n"
                                 "max_connections_per_ip: 12\n";

START_TEST(every_option_is_read)
{
    struct conf *c = loaded(everything, NO_SETS);
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
    ck_assert_uint_eq(c->store_sync_ms, 7);
    ck_assert_uint_eq(c->reports_wait_ms, 0);
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
    ck_assert_uint_eq(c->max_connections_per_ip, 12);
    conf_free(c);
}
END_TEST

static const char *const sources[] = {"", everything};

START_TEST(a_dump_reads_back_to_the_same)
{
    struct conf *first = loaded(sources[_i], NO_SETS);
    char *text = dumped(first);
    struct conf *second = loaded(text, NO_SETS);
    char *again = dumped(second);
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

START_TEST(the_sample_is_the_defaults_and_the_packages_internal_listener)
{
    char *text = sample();
    const char *set = "internal_listen=127.0.0.1:9180";
    struct conf *a = loaded(text, NO_SETS), *b = loaded(NULL, &set, 1);
    char *from_sample = dumped(a), *from_table = dumped(b);
    ck_assert_str_eq(from_sample, from_table);
    free(text);
    free(from_sample);
    free(from_table);
    conf_free(a);
    conf_free(b);
}
END_TEST

START_TEST(the_sample_explains_every_option_with_type_default_and_when)
{
    char *text = sample();
    struct conf_option_view option;
    size_t count = 0;
    for (; conf_option_at(count, &option); count++) {
        char line[256];
        const char *leaf = strrchr(option.key, '.');
        snprintf(line, sizeof(line), "# %s; default %s; %s\n", option.type, option.initial, option.reload ? "reload" : "restart");
        ck_assert_msg(strstr(text, line) != NULL, "%s", line);
        ck_assert_msg(strstr(text, option.help) != NULL, "%s", option.help);
        snprintf(line, sizeof(line), "%s: ", leaf == NULL ? option.key : leaf + 1);
        ck_assert_msg(strstr(text, line) != NULL, "%s", line);
    }
    ck_assert_uint_gt(count, 30);
    free(text);
}
END_TEST

START_TEST(every_key_is_there_once)
{
    struct conf_option_view a, b;
    for (size_t i = 0; conf_option_at(i, &a); i++)
        for (size_t j = 0; j < i && conf_option_at(j, &b); j++)
            ck_assert_str_ne(a.key, b.key);
}
END_TEST

/* ---- spellings of numbers ---- */

static const struct {
    const char *text;
    uint64_t ms; /* UINT64_MAX: refused */
} durations[] = {
    {"10s", 10000},
    {"500ms", 500},
    {"2m", 120000},
    {"24h", 86400000},
    {"90d", 7776000000},
    {"0", 0},
    {"0s", 0},
    {"5 ms", 5},
    {"007s", 7000},
    {"", UINT64_MAX},
    {"10", UINT64_MAX},
    {"s", UINT64_MAX},
    {"-1s", UINT64_MAX},
    {"+1s", UINT64_MAX},
    {"1.5s", UINT64_MAX},
    {"1sec", UINT64_MAX},
    {"1S", UINT64_MAX},
    {"1s ", UINT64_MAX},
    {" 1s", UINT64_MAX},
    {"1  s", UINT64_MAX},
    {"1 ", UINT64_MAX},
    {"1m30s", UINT64_MAX},
    {"99999999999999999999s", UINT64_MAX},
    {"18446744073709551615d", UINT64_MAX},
    {"1w", UINT64_MAX},
};

START_TEST(durations_are_read_strictly)
{
    uint64_t ms = UINT64_MAX;
    bool read = value_duration(durations[_i].text, &ms);
    ck_assert_msg(read == (durations[_i].ms != UINT64_MAX), "%s", durations[_i].text);
    if (read)
        ck_assert_uint_eq(ms, durations[_i].ms);
}
END_TEST

static const struct {
    const char *text;
    uint64_t bytes; /* UINT64_MAX: refused */
} sizes[] = {
    {"64GiB", (uint64_t)64 << 30},
    {"5MiB", 5 << 20},
    {"512KiB", 512 << 10},
    {"2TiB", (uint64_t)2 << 40},
    {"1234", 1234},
    {"0", 0},
    {"1 KiB", 1024},
    {"", UINT64_MAX},
    {"1KB", UINT64_MAX},
    {"1K", UINT64_MAX},
    {"1kib", UINT64_MAX},
    {"1.5GiB", UINT64_MAX},
    {"-1", UINT64_MAX},
    {"0x10", UINT64_MAX},
    {"1 ", UINT64_MAX},
    {"16777216TiB", UINT64_MAX},
    {"18446744073709551616", UINT64_MAX},
};

START_TEST(sizes_are_read_strictly)
{
    uint64_t bytes = UINT64_MAX;
    bool read = value_size(sizes[_i].text, &bytes);
    ck_assert_msg(read == (sizes[_i].bytes != UINT64_MAX), "%s", sizes[_i].text);
    if (read)
        ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

static const uint64_t numbers[] = {0, 1, 999, 1000, 1024, 1025, 60000, 61000, 3600000, 86400000, 1 << 20, (uint64_t)3 << 40, UINT64_MAX};

START_TEST(written_numbers_read_back)
{
    char text[VALUE_TEXT_SIZE];
    uint64_t back = 7;
    value_duration_text(numbers[_i], text);
    ck_assert_msg(value_duration(text, &back) && back == numbers[_i], "%s", text);
    value_size_text(numbers[_i], text);
    ck_assert_msg(value_size(text, &back) && back == numbers[_i], "%s", text);
}
END_TEST

static const struct {
    const char *yaml;
    unsigned ms;
} syncs[] = {
    {"store: { sync: full }", 0},           {"store: { sync: 'async:5ms' }", 5},      {"store: { sync: 'async: 5 ms' }", 5},
    {"store:\n  sync: async:250ms\n", 250}, {"store:\n  sync:\n    async: 5ms\n", 5}, {"store: { sync: { async: 1s } }", 1000},
};

START_TEST(every_spelling_of_sync_is_read)
{
    struct conf *c = loaded(syncs[_i].yaml, NO_SETS);
    ck_assert_uint_eq(c->store_sync_ms, syncs[_i].ms);
    conf_free(c);
}
END_TEST

/* ---- mistakes ---- */

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
    {"limits: { slots: 5 }\n", 1, "limits is not available in this version"},
    {"listen:\n  - address: a:1\n    proxy_protocol: true\n", 3, "proxy_protocol is not available in this version"},
    {"workers: 12abc\n", 1, "\"12abc\" is not a whole number; give 1 to 512, or auto"},
    {"workers: 0\n", 1, "0 is out of range; give 1 to 512, or auto"},
    {"workers: -1\n", 1, "not a whole number"},
    {"workers: 1e3\n", 1, "not a whole number"},
    {"workers: 99999999999999999999999\n", 1, "not a whole number"},
    {"workers:\n", 1, "workers: \"\" is not a whole number"},
    {"workers: [2]\n", 1, "workers: wrong type; give auto or one whole number"},
    {"auditors: {a: b}\n", 1, "auditors: wrong type"},
    {"auditors: 65\n", 1, "65 is out of range; give 1 to 64"},
    {"a: 1\nworkers: 2\nworkers: 2\n", 3, "workers is there twice, first on line 2"},
    {"log: {level: info}\nlog: {format: json}\n", 2, "log is there twice, first on line 1"},
    {"log: {level: info, level: warn}\n", 1, "log.level is there twice"},
    {"log: {level: loud}\n", 1, "\"loud\" is not one of error, warn, info, debug"},
    {"log: debug\n", 1, "log: wrong type; its options stand below it"},
    {"- a\n- b\n", 1, "the configuration: wrong type"},
    {"reports: {wait: 10}\n", 1, "\"10\" is not a duration"},
    {"reports: {wait: 10 seconds}\n", 1, "is not a duration"},
    {"reports: {wait: 31s}\n", 1, "31s is out of range; give 0s to 30s"},
    {"reports:\n  good: 30\n  decent: 40\n", 3, "reports.decent: 40 is over reports.good, which is 30"},
    {"reports:\n  good: 30\n", 2, "reports.decent: 50 is over reports.good, which is 30"},
    {"store: {map_size: 64GB}\n", 1, "\"64GB\" is not a size"},
    {"store: {map_size: 100TiB}\n", 1, "is out of range; give 1MiB to 64TiB"},
    {"store: {sync: async}\n", 1, "\"async\" is neither full nor"},
    {"store: {sync: 'async: 0ms'}\n", 1, "out of range"},
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
    {"listen:\n  - address: ::1:80\n", 2, "an IPv6 address stands in brackets"},
    {"listen:\n  - address: 'unix:x.sock'\n", 2, "the path of a Unix socket is absolute"},
    {"listen:\n  - address: 127.0.0.1:1\n  - address: 127.0.0.1:1\n", 3,
     "listen.1.address: 127.0.0.1:1 is already the address of listen.0"},
    {"listen:\n  - address: 127.0.0.1:1\n    tls: { key: a }\n", 3, "certificate and key belong together"},
    {"data_dir: ''\n", 1, "data_dir: must not be empty"},
    {"data_dir: \"a\\nb\"\n", 1, "control character"},
    {"data_dir: \"a\\0b\"\n", 1, "data_dir: wrong type"},
    {"base_url: api.example.com\n", 1, "is not a base address"},
    {"base_url: https://\n", 1, "is not a base address"},
    {"base_url: https://a/?b\n", 1, "is not a base address"},
    {"user: &a assay\n", 1, "anchors (&name) are not allowed"},
    {"user: *a\n", 1, "aliases (*name) are not allowed"},
    {"user: !!str assay\n", 1, "tags (!name) are not allowed"},
    {"user: a\n---\nuser: b\n", 2, "a second document"},
    {"workers: 2\n\tuser: a\n", 2, "not YAML: "},
    {"user: 'a\n", 2, "not YAML: "},
    {"? [a, b]\n: c\n", 1, "a key must be a word"},
    {"user: \xff\n", 1, "not YAML: "},
};

START_TEST(a_mistake_has_its_line_and_a_sentence)
{
    char *mistakes;
    struct conf *conf = (struct conf *)1;
    ck_assert_int_ge(load(mistakes_table[_i].yaml, NO_SETS, &mistakes, &conf), 1);
    ck_assert_ptr_null(conf);
    if (strchr(mistakes_table[_i].sentence, '\n') != NULL)
        ck_assert_ptr_nonnull(strstr(mistakes, mistakes_table[_i].sentence));
    else
        assert_mistake(mistakes, mistakes_table[_i].line, mistakes_table[_i].sentence);
    free(mistakes);
}
END_TEST

START_TEST(all_mistakes_come_at_once)
{
    char *mistakes;
    struct conf *conf;
    const char *sets[] = {"worker=1", "auditors=x"};
    ck_assert_int_eq(load("wrkers: 1\nreports: { wait: x, good: 101 }\nlog: { level: a, formt: b }\n", sets, 2, &mistakes, &conf), 7);
    assert_mistake(mistakes, 1, "wrkers");
    assert_mistake(mistakes, 2, "reports.wait");
    assert_mistake(mistakes, 2, "reports.good");
    assert_mistake(mistakes, 3, "log.level");
    assert_mistake(mistakes, 3, "log.formt");
    assert_mistake(mistakes, 0, "worker;");
    assert_mistake(mistakes, 0, "auditors");
    free(mistakes);
}
END_TEST

START_TEST(a_mistake_is_said_once)
{
    char *mistakes;
    struct conf *conf;
    ck_assert_int_eq(
        load("reports: { good: x, decent: 90 }\nlisten: [ { address: x }, { address: y }, { adress: z } ]\n", NO_SETS, &mistakes, &conf),
        5);
    free(mistakes);
}
END_TEST

START_TEST(a_missing_file_is_a_mistake_only_when_it_was_named)
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
    ck_assert_str_eq(mistakes, "/nonexistent/assay.yaml: cannot be read: No such file or directory\n/: cannot be read: Is a directory\n");
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
    ck_assert_int_ge(load(text, NO_SETS, &mistakes, &conf), 30);
    assert_mistake(mistakes, 2, "aliases");
    free(mistakes);
}
END_TEST

START_TEST(hostile_files_end_soon_with_a_mistake)
{
    static char text[2 << 20];
    char *mistakes;
    size_t size;
    struct conf *conf;
    const char *const fills[] = {"[", "{a: ", "- ", "? ", "a: 1\n", "workers: 1\n", "x", "\n- a:\n", "!"};
    for (size_t f = 0; f < sizeof(fills) / sizeof(fills[0]); f++) {
        size_t n = strlen(fills[f]), at = 0;
        for (; at + n < 100000; at += n)
            memcpy(text + at, fills[f], n);
        write_bytes(text, at);
        FILE *out = open_memstream(&mistakes, &size);
        ck_assert_msg(conf_load(path, true, NO_SETS, out, &conf) > 0, "%s", fills[f]);
        fclose(out);
        ck_assert_msg(size < 40000, "%s: %zu bytes of mistakes", fills[f], size);
        free(mistakes);
    }
    memset(text, '#', sizeof(text) - 1);
    ck_assert_int_eq(load(text, NO_SETS, &mistakes, &conf), 1);
    ck_assert_ptr_nonnull(strstr(mistakes, "is larger than 1048576 bytes"));
    free(mistakes);
}
END_TEST

START_TEST(any_truncation_is_read_or_refused)
{
    struct conf *conf;
    FILE *out = fopen("/dev/null", "w");
    for (size_t n = 0; n < sizeof(everything) - 1; n += 3) {
        write_bytes(everything, n);
        if (conf_load(path, true, NO_SETS, out, &conf) == 0)
            conf_free(conf);
        else
            ck_assert_ptr_null(conf);
    }
    fclose(out);
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
        "store.sync=async: 5 ms",
        "user=",
        "data_dir=a=b",
    };
    struct conf *c = loaded("workers: 2\ntrusted_proxies: [1.2.3.4]\n", sets, sizeof(sets) / sizeof(sets[0]));
    ck_assert_str_eq(c->listen[0].address, "127.0.0.1:0");
    ck_assert_uint_eq(c->listen_count, 2);
    ck_assert_str_eq(c->listen[1].address, "[::1]:0");
    ck_assert_str_eq(c->listen[1].tls_key, "/k");
    ck_assert_uint_eq(c->workers, 4);
    ck_assert_uint_eq(c->audit_ports_count, 2);
    ck_assert_uint_eq(c->audit_ports[1], 8080);
    ck_assert_uint_eq(c->audit_allow_private.count, 2);
    ck_assert_uint_eq(c->trusted_proxies.count, 0);
    ck_assert_uint_eq(c->store_sync_ms, 5);
    ck_assert_str_eq(c->user, "");
    ck_assert_str_eq(c->data_dir, "a=b");
    conf_free(c);
}
END_TEST

static const struct {
    const char *set, *sentence;
} bad_sets[] = {
    {"workers", "has no key and value; write KEY=VALUE"},
    {"=5", "has no key and value"},
    {"wokers=5", "unknown key wokers; did you mean workers?"},
    {"audit=5", "audit is a group"},
    {"listen=5", "listen is a group"},
    {"listen.5.address=a:1", "there are 1 listeners, at most 16; the next is listen.1"},
    {"listen.x.address=a:1", "is not an option; a listener's are written listen.0.address"},
    {"listen.0=a:1", "a listener's are written"},
    {"listen.0.adress=a:1", "did you mean"},
    {"listen.0.address=a", "listen.0.address: \"a\" is not an address"},
    {"limits.slots=5", "limits is not available in this version"},
    {"workers=", "workers: \"\" is not a whole number"},
    {"audit.ports=80,x", "\"x\" is not a port"},
    {"workers=\n\x1b[31m", "workers: \"??[31m\" is not a whole number"},
};

START_TEST(a_set_with_too_many_items_is_a_mistake)
{
    char text[2048] = "trusted_proxies=", *mistakes;
    const char *set = text;
    struct conf *conf;
    for (int i = 0; i < 257; i++)
        strcat(text, "::1,");
    ck_assert_int_eq(load(NULL, &set, 1, &mistakes, &conf), 1);
    assert_mistake(mistakes, 0, "trusted_proxies: more than 256 items");
    free(mistakes);
}
END_TEST

START_TEST(a_wrong_set_is_a_mistake_too)
{
    char *mistakes;
    struct conf *conf;
    ck_assert_int_eq(load(NULL, &bad_sets[_i].set, 1, &mistakes, &conf), 1);
    assert_mistake(mistakes, 0, bad_sets[_i].sentence);
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
    {"listen.0.address=a:2", 1},
    {"listen.1.address=a:2", 1},
    {"data_dir=/o", 1},
    {"run_dir=/o", 1},
    {"user=o", 1},
    {"store.map_size=1GiB", 1},
    {"store.sync=async:1ms", 1},
    {"internal_listen=a:1", 1},
    {"jwt.secrets_file=/o", 1},
};

START_TEST(reload_refuses_just_what_needs_a_restart)
{
    const char *tls[] = {"listen.0.tls.certificate=/c", "listen.0.tls.key=/k"};
    const char *sets[] = {tls[0], tls[1], changes[_i].set};
    struct conf *old = loaded(NULL, tls, 2), *changed = loaded(NULL, sets, 3);
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
    tcase_add_checked_fixture(tcase, make_dir, remove_dir);
    tcase_add_test(tcase, an_empty_file_is_the_defaults);
    tcase_add_test(tcase, every_option_is_read);
    tcase_add_loop_test(tcase, a_dump_reads_back_to_the_same, 0, COUNT(sources));
    tcase_add_test(tcase, the_sample_is_the_defaults_and_the_packages_internal_listener);
    tcase_add_test(tcase, the_sample_explains_every_option_with_type_default_and_when);
    tcase_add_test(tcase, every_key_is_there_once);
    tcase_add_loop_test(tcase, durations_are_read_strictly, 0, COUNT(durations));
    tcase_add_loop_test(tcase, sizes_are_read_strictly, 0, COUNT(sizes));
    tcase_add_loop_test(tcase, written_numbers_read_back, 0, COUNT(numbers));
    tcase_add_loop_test(tcase, every_spelling_of_sync_is_read, 0, COUNT(syncs));
    tcase_add_loop_test(tcase, a_mistake_has_its_line_and_a_sentence, 0, COUNT(mistakes_table));
    tcase_add_test(tcase, all_mistakes_come_at_once);
    tcase_add_test(tcase, a_mistake_is_said_once);
    tcase_add_test(tcase, a_missing_file_is_a_mistake_only_when_it_was_named);
    tcase_add_test(tcase, nested_aliases_are_refused_before_they_expand);
    tcase_add_test(tcase, hostile_files_end_soon_with_a_mistake);
    tcase_add_test(tcase, any_truncation_is_read_or_refused);
    tcase_add_test(tcase, set_overrides_the_file);
    tcase_add_test(tcase, a_set_with_too_many_items_is_a_mistake);
    tcase_add_loop_test(tcase, a_wrong_set_is_a_mistake_too, 0, COUNT(bad_sets));
    tcase_add_loop_test(tcase, reload_refuses_just_what_needs_a_restart, 0, COUNT(changes));
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
