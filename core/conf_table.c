#include "conf_table.h"
#include "conf_value.h"

#include <inttypes.h>
#include <string.h>

#define RELOAD true
#define RESTART false
#define MEMBER(name) offsetof(struct conf, name)
#define LISTENER(name) offsetof(struct conf_listen, name)
#define SECONDS(n) ((uint64_t)(n)*1000)
#define MIB(n) ((uint64_t)(n) << 20)

static const char *const level_choices[] = {[LOG_LEVEL_ERROR] = "error",
                                            [LOG_LEVEL_WARN] = "warn",
                                            [LOG_LEVEL_INFO] = "info",
                                            [LOG_LEVEL_DEBUG] = "debug",
                                            NULL};
static const char *const sync_choices[] = {[STORE_SYNC_FULL] = "full", NULL};
static const char *const format_choices[] = {
    [LOG_FORMAT_JSON] = "json", [LOG_FORMAT_COMBINED] = "combined", NULL};

/*
 * The option table. Columns by name: key; type; where the member lies; min and max of a number (durations in ms, sizes in bytes), or max =
 * 1 for a text that may be
 * empty; initial, the default as one writes it; sample, what the packages' file says instead; reload or restart; help, one sentence. Rows
 * of one
 * group stand together, in the order of the sample file.
 */
const struct conf_option conf_options[] = {
    {.key = CONF_LISTEN_PREFIX "address",
     .type = &conf_type_address,
     .offset = LISTENER(address),
     .initial = "127.0.0.1:8080",
     .reload = RESTART,
     .help = "Where to accept connections: host:port, [ipv6]:port or unix:/path; port 0 takes any "
             "free one."},
    {.key = CONF_LISTEN_PREFIX "proxy_protocol",
     .type = &conf_type_bool,
     .offset = LISTENER(proxy_protocol),
     .initial = "false",
     .reload = RELOAD,
     .help = "Whether every connection begins with a PROXY protocol header, version 1 or 2; only "
             "from trusted_proxies."},
    {.key = CONF_LISTEN_PREFIX "tls.certificate",
     .type = &conf_type_path,
     .offset = LISTENER(tls_certificate),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the certificate and its chain; empty for plain HTTP."},
    {.key = CONF_LISTEN_PREFIX "tls.key",
     .type = &conf_type_path,
     .offset = LISTENER(tls_key),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the certificate's private key."},
    {.key = CONF_LISTEN_PREFIX "tls.second_certificate",
     .type = &conf_type_path,
     .offset = LISTENER(tls_second_certificate),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "A certificate with another kind of key, such as RSA beside ECDSA, for clients that "
             "know only that; empty for none."},
    {.key = CONF_LISTEN_PREFIX "tls.second_key",
     .type = &conf_type_path,
     .offset = LISTENER(tls_second_key),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the second certificate's private key."},
    {.key = CONF_LISTEN_PREFIX "tls.hsts",
     .type = &conf_type_age,
     .offset = LISTENER(tls_hsts_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "For how long, such as 365d, browsers are told to come by TLS alone "
             "(Strict-Transport-Security); 0 to say nothing."},
    {.key = "internal_listen",
     .type = &conf_type_address,
     .offset = MEMBER(internal_listen),
     .max = 1,
     .initial = "",
     .sample = "127.0.0.1:9180",
     .reload = RESTART,
     .help = "Address of /metrics, and of /healthz and /readyz, for operators; without it there "
             "are no metrics."},
    {.key = "base_url",
     .type = &conf_type_url,
     .offset = MEMBER(base_url),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "Public address used in links, such as https://api.example.com; empty for the first "
             "listener's."},
    {.key = "workers",
     .type = &conf_type_workers,
     .offset = MEMBER(workers),
     .min = 1,
     .max = CONF_WORKERS_MAX,
     .initial = "auto",
     .reload = RELOAD,
     .help = "Worker processes; auto is one per core."},
    {.key = "query_threads",
     .type = &conf_type_integer,
     .offset = MEMBER(query_threads),
     .max = CONF_QUERY_THREADS_MAX,
     .initial = "2",
     .reload = RELOAD,
     .help = "Threads of each worker for lists and searches. One of several takes no searches. "
             "0: the event loop does both."},
    {.key = "auditors",
     .type = &conf_type_integer,
     .offset = MEMBER(auditors),
     .min = 1,
     .max = 64,
     .initial = "1",
     .reload = RELOAD,
     .help = "Processes that fetch and grade pages."},
    {.key = "data_dir",
     .type = &conf_type_path,
     .offset = MEMBER(data_dir),
     .initial = "/var/lib/assay",
     .reload = RESTART,
     .help = "Directory of the store."},
    {.key = "run_dir",
     .type = &conf_type_path,
     .offset = MEMBER(run_dir),
     .initial = "/run/assay",
     .reload = RESTART,
     .help = "Directory of sockets, shared memory and the lock."},
    {.key = "user",
     .type = &conf_type_text,
     .offset = MEMBER(user),
     .max = 1,
     .initial = "assay",
     .reload = RESTART,
     .help = "Account to drop to after binding when started as root; empty or root to stay root."},
    {.key = "trusted_proxies",
     .type = &conf_type_cidrs,
     .offset = MEMBER(trusted_proxies),
     .initial = "",
     .reload = RELOAD,
     .help = "Addresses and networks whose X-Forwarded-For and PROXY protocol are believed."},
    {.key = "store.map_size",
     .type = &conf_type_size,
     .offset = MEMBER(store_map_size),
     .min = MIB(1),
     .max = MIB(64) << 20,
     .initial = "64GiB",
     .reload = RESTART,
     .help = "Largest size of data.mdb. The file takes what is used."},
    {.key = "store.index_map_size",
     .type = &conf_type_size,
     .offset = MEMBER(store_index_map_size),
     .min = MIB(16),
     .max = MIB(64) << 20,
     .initial = "16GiB",
     .reload = RESTART,
     .help = "Bytes of segment files that a process keeps mapped. Past it, a thread unmaps what it "
             "used longest ago, but not the index that it reads."},
    {.key = "store.sync",
     .type = &conf_type_choice,
     .offset = MEMBER(store_sync),
     .choices = sync_choices,
     .initial = "full",
     .reload = RESTART,
     .help = "When a change is answered: full, once it is on the disk."},
    {.key = "reports.wait",
     .type = &conf_type_duration,
     .offset = MEMBER(reports_wait_ms),
     .max = SECONDS(30),
     .initial = "10s",
     .reload = RELOAD,
     .help = "How long creating a report waits for its grade before it answers pending."},
    {.key = "reports.good",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_good),
     .max = 100,
     .initial = "80",
     .reload = RELOAD,
     .help = "Lowest score that is good."},
    {.key = "reports.decent",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_decent),
     .max = 100,
     .initial = "50",
     .reload = RELOAD,
     .help = "Lowest score that is decent; below it a page is bad."},
    {.key = "reports.weight_high",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_high),
     .min = 1,
     .max = 1000,
     .initial = "10",
     .reload = RELOAD,
     .help = "What a check of high importance weighs in the score."},
    {.key = "reports.weight_medium",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_medium),
     .max = 1000,
     .initial = "5",
     .reload = RELOAD,
     .help = "What a check of medium importance weighs in the score."},
    {.key = "reports.weight_low",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_low),
     .max = 1000,
     .initial = "1",
     .reload = RELOAD,
     .help = "What a check of low importance weighs in the score."},
    {.key = "jwt.ttl",
     .type = &conf_type_duration,
     .offset = MEMBER(jwt_ttl_ms),
     .min = SECONDS(1),
     .max = SECONDS(30 * 86400),
     .initial = "60m",
     .reload = RELOAD,
     .help = "Life of a visitor's token."},
    {.key = "jwt.secrets_file",
     .type = &conf_type_path,
     .offset = MEMBER(jwt_secrets_file),
     .max = 1,
     .initial = "",
     .reload = RESTART,
     .help = "File of the signing secrets; empty for one made in data_dir."},
    {.key = "retention.events",
     .type = &conf_type_age,
     .offset = MEMBER(retention_events_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "How long visitors' events are kept, such as 90d; 0 for ever."},
    {.key = "retention.conversations",
     .type = &conf_type_age,
     .offset = MEMBER(retention_conversations_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "How long conversations are kept from their beginning, such as 365d; 0 for ever."},
    {.key = "sync.max_bytes",
     .type = &conf_type_size,
     .offset = MEMBER(sync_max_bytes),
     .min = 1 << 16,
     .max = MIB(16),
     .initial = "5MiB",
     .reload = RELOAD,
     .help = "Largest body that bulk sync takes, counted after decompression."},
    {.key = "audit.allow_private",
     .type = &conf_type_cidrs,
     .offset = MEMBER(audit_allow_private),
     .initial = "",
     .reload = RELOAD,
     .help = "Private addresses and networks that may be graded, for an intranet."},
    {.key = "audit.ports",
     .type = &conf_type_ports,
     .offset = MEMBER(audit_ports),
     .count_offset = MEMBER(audit_ports_count),
     .min = 1,
     .max = 65535,
     .initial = "80 443",
     .reload = RELOAD,
     .help = "Ports of pages that may be graded."},
    {.key = "audit.concurrency",
     .type = &conf_type_integer,
     .offset = MEMBER(audit_concurrency),
     .min = 1,
     .max = 1024,
     .initial = "32",
     .reload = RELOAD,
     .help = "Pages that one auditor fetches at once. "
             "One workspace takes at most three quarters of them."},
    {.key = "audit.timeout",
     .type = &conf_type_duration,
     .offset = MEMBER(audit_timeout_ms),
     .min = 100,
     .max = SECONDS(300),
     .initial = "15s",
     .reload = RELOAD,
     .help = "Time for one page: fetching it with its redirects and probes, and reading it."},
    {.key = "audit.max_bytes",
     .type = &conf_type_size,
     .offset = MEMBER(audit_max_bytes),
     .min = 1024,
     .max = MIB(1024),
     .initial = "5MiB",
     .reload = RELOAD,
     .help = "Largest page, counted after decompression."},
    {.key = "audit.max_redirects",
     .type = &conf_type_integer,
     .offset = MEMBER(audit_max_redirects),
     .max = 20,
     .initial = "5",
     .reload = RELOAD,
     .help = "Redirects that are followed for one page."},
    {.key = "limits.slots",
     .type = &conf_type_integer,
     .offset = MEMBER(limits_slots),
     .min = 1024,
     .max = 1u << 30,
     .initial = "1048576",
     .reload = RESTART,
     .help = "Keys that can be counted at once; past it, the least used of those that are not at "
             "their limit is forgotten."},
    {.key = "limits.ipv6_prefix",
     .type = &conf_type_integer,
     .offset = MEMBER(limits_ipv6_prefix),
     .min = 16,
     .max = 128,
     .initial = "64",
     .reload = RELOAD,
     .help = "Bits of an IPv6 address that tell callers apart."},
    {.key = "limits.exempt",
     .type = &conf_type_cidrs,
     .offset = MEMBER(limits_exempt),
     .initial = "",
     .reload = RELOAD,
     .help = "Addresses and networks that are counted and never refused."},
    {.key = "limits.limiters",
     .type = &conf_type_limiters,
     .offset = MEMBER(limits),
     .initial = "{}",
     .reload = RELOAD,
     .help = "Limiters by name: those built in, as they stand here, and any others; see LIMITERS "
             "in assay.yaml(5)."},
    {.key = "log.level",
     .type = &conf_type_choice,
     .offset = MEMBER(log_level),
     .choices = level_choices,
     .initial = "info",
     .reload = RELOAD,
     .help = "The least important messages that are logged."},
    {.key = "log.access",
     .type = &conf_type_path,
     .offset = MEMBER(log_access),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "File of the access log; - for standard output, empty for none."},
    {.key = "log.format",
     .type = &conf_type_choice,
     .offset = MEMBER(log_format),
     .choices = format_choices,
     .initial = "json",
     .reload = RELOAD,
     .help = "Lines as JSON objects, or as text (access log: combined)."},
    {.key = "timeouts.header",
     .type = &conf_type_duration,
     .offset = MEMBER(header_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "10s",
     .reload = RELOAD,
     .help = "Time for a request's head to arrive."},
    {.key = "timeouts.body",
     .type = &conf_type_duration,
     .offset = MEMBER(body_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "30s",
     .reload = RELOAD,
     .help = "Time for a request's body to arrive."},
    {.key = "timeouts.send",
     .type = &conf_type_duration,
     .offset = MEMBER(send_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "60s",
     .reload = RELOAD,
     .help = "Time for a client to take its response."},
    {.key = "timeouts.idle",
     .type = &conf_type_duration,
     .offset = MEMBER(idle_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "60s",
     .reload = RELOAD,
     .help = "Time that a connection may rest between requests."},
    {.key = "timeouts.drain",
     .type = &conf_type_duration,
     .offset = MEMBER(drain_timeout_ms),
     .max = SECONDS(3600),
     .initial = "90s",
     .reload = RELOAD,
     .help = "Time for a stopping worker to end its requests."},
    {.key = "timeouts.upgrade",
     .type = &conf_type_duration,
     .offset = MEMBER(upgrade_timeout_ms),
     .min = SECONDS(1),
     .max = SECONDS(3600),
     .initial = "30s",
     .reload = RELOAD,
     .help =
         "Time for a new binary to come up before it takes over (USR2); then the old one goes on."},
    {.key = "max_connections",
     .type = &conf_type_integer,
     .offset = MEMBER(max_connections),
     .min = 1,
     .max = 1000000,
     .initial = "10000",
     .reload = RELOAD,
     .help =
         "Connections of the whole server; past it whoever rests longest or is slowest gives way."},
    {.key = "max_connections_per_ip",
     .type = &conf_type_integer,
     .offset = MEMBER(max_connections_per_ip),
     .max = 1000000,
     .initial = "0",
     .reload = RELOAD,
     .help = "Connections of one address, of IPv6 as limits.ipv6_prefix says; 0: no limit. Not of "
             "trusted_proxies and limits.exempt."},
};
#define OPTIONS (sizeof(conf_options) / sizeof(conf_options[0]))
const size_t conf_options_count = OPTIONS;

bool conf_option_in_listen(const struct conf_option *option)
{
    return strncmp(option->key, CONF_LISTEN_PREFIX, strlen(CONF_LISTEN_PREFIX)) == 0;
}

const struct conf_option *conf_find(const char *key)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strcmp(conf_options[i].key, key) == 0)
            return &conf_options[i];
    return NULL;
}

bool conf_group(const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < OPTIONS; i++)
        if (strncmp(conf_options[i].key, key, n) == 0 && conf_options[i].key[n] == '.')
            return true;
    return false;
}

/* A bound of ${option}'s range in its own unit. */
static void bound_text(const struct conf_option *option, uint64_t value, char out[VALUE_TEXT_SIZE])
{
    if (option->type == &conf_type_duration || option->type == &conf_type_age)
        value_duration_text(value, out);
    else if (option->type == &conf_type_size)
        value_size_text(value, out);
    else
        snprintf(out, VALUE_TEXT_SIZE, "%" PRIu64, value);
}

static void type_text(const struct conf_option *option, char *out, size_t size)
{
    if (option->choices != NULL) {
        size_t n = 0;
        for (size_t i = 0; option->choices[i] != NULL && n < size; i++)
            n += (size_t)snprintf(out + n, size - n, "%s%s", i == 0 ? "" : " | ",
                                  option->choices[i]);
    } else if (option->type->ranged) {
        char low[VALUE_TEXT_SIZE], high[VALUE_TEXT_SIZE];
        bound_text(option, option->min, low);
        bound_text(option, option->max, high);
        snprintf(out, size, "%s %s–%s", option->type->name, low, high);
    } else {
        snprintf(out, size, "%s", option->type->name);
    }
}

bool conf_option_at(size_t i, struct conf_option_view *out)
{
    static char types[OPTIONS][96];
    static char initials[OPTIONS][64];
    if (i >= OPTIONS)
        return false;
    const struct conf_option *option = &conf_options[i];
    type_text(option, types[i], sizeof(types[i]));

    /* The default as YAML: what printing a value says, of a configuration that holds nothing else. */
    struct conf conf = {.workers = 0};
    struct conf_listen listener = {.address = NULL};
    char *base = conf_option_in_listen(option) ? (char *)&listener : (char *)&conf;
    conf_assign_text(option, base, option->initial);
    FILE *text = fmemopen(initials[i], sizeof(initials[i]), "w");
    if (text != NULL) {
        option->type->print(option, base, text);
        fclose(text);
    }
    option->type->clear(option, base);
    if (option->type == &conf_type_workers || option->type == &conf_type_limiters)
        snprintf(initials[i], sizeof(initials[i]), "%s", option->initial);

    *out = (struct conf_option_view){.key = option->key,
                                     .type = types[i],
                                     .initial = initials[i],
                                     .help = option->help,
                                     .reload = option->reload};
    return true;
}
