#include "core/conf/conf_internal.h"
#include "core/conf/values.h"

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
 * The option table; struct conf_option explains the columns. Durations are in ms, sizes in bytes.
 * The options of a group stand together, in the order of the sample file.
 */
const struct conf_option conf_options[] = {
    {.key = CONF_LISTEN_PREFIX "address",
     .type = &conf_type_address,
     .offset = LISTENER(address),
     .initial = "127.0.0.1:8080",
     .reload = RESTART,
     .help = "Address to accept connections on: host:port, [ipv6]:port or unix:/path. Port 0: any "
             "free port."},
    {.key = CONF_LISTEN_PREFIX "proxy_protocol",
     .type = &conf_type_bool,
     .offset = LISTENER(proxy_protocol),
     .initial = "false",
     .reload = RELOAD,
     .help = "Each connection must begin with a PROXY protocol header, version 1 or 2. Only "
             "addresses in trusted_proxies can connect."},
    {.key = CONF_LISTEN_PREFIX "tls.certificate",
     .type = &conf_type_path,
     .offset = LISTENER(tls_certificate),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the certificate and its chain. Empty: plain HTTP."},
    {.key = CONF_LISTEN_PREFIX "tls.key",
     .type = &conf_type_path,
     .offset = LISTENER(tls_key),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the private key of the certificate."},
    {.key = CONF_LISTEN_PREFIX "tls.second_certificate",
     .type = &conf_type_path,
     .offset = LISTENER(tls_second_certificate),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with a certificate of another key type, for example RSA in addition to "
             "ECDSA, for clients that support only that type. Empty: none."},
    {.key = CONF_LISTEN_PREFIX "tls.second_key",
     .type = &conf_type_path,
     .offset = LISTENER(tls_second_key),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "PEM file with the private key of the second certificate."},
    {.key = CONF_LISTEN_PREFIX "tls.hsts",
     .type = &conf_type_age,
     .offset = LISTENER(tls_hsts_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "max-age of the Strict-Transport-Security header, for example 365d. 0 disables the "
             "header."},
    {.key = "internal_listen",
     .type = &conf_type_address,
     .offset = MEMBER(internal_listen),
     .max = 1,
     .initial = "",
     .sample = "127.0.0.1:9180",
     .reload = RESTART,
     .help = "Address that serves /metrics, /healthz and /readyz to operators. Empty: no metrics."},
    {.key = "base_url",
     .type = &conf_type_url,
     .offset = MEMBER(base_url),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "Public URL used in links, for example https://api.example.com. Empty: the address "
             "of the first listener."},
    {.key = "workers",
     .type = &conf_type_workers,
     .offset = MEMBER(workers),
     .min = 1,
     .max = CONF_WORKERS_MAX,
     .initial = "auto",
     .reload = RELOAD,
     .help = "Number of worker processes. auto: one per CPU core."},
    {.key = "query_threads",
     .type = &conf_type_integer,
     .offset = MEMBER(query_threads),
     .max = CONF_QUERY_THREADS_MAX,
     .initial = "2",
     .reload = RELOAD,
     .help = "Threads per worker for lists and searches. If there are several, one of them runs "
             "no searches. 0: the event loop runs both."},
    {.key = "auditors",
     .type = &conf_type_integer,
     .offset = MEMBER(auditors),
     .min = 1,
     .max = 64,
     .initial = "1",
     .reload = RELOAD,
     .help = "Number of processes that fetch and grade pages."},
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
     .help = "Directory of sockets, shared memory and the lock file."},
    {.key = "user",
     .type = &conf_type_text,
     .offset = MEMBER(user),
     .max = 1,
     .initial = "assay",
     .reload = RESTART,
     .help = "User to switch to after binding, when started as root. Empty or root: stay root."},
    {.key = "trusted_proxies",
     .type = &conf_type_cidrs,
     .offset = MEMBER(trusted_proxies),
     .initial = "",
     .reload = RELOAD,
     .help = "Addresses and networks of your proxies. X-Forwarded-For and PROXY protocol headers "
             "are trusted only from these."},
    {.key = "store.map_size",
     .type = &conf_type_size,
     .offset = MEMBER(store_map_size),
     .min = MIB(1),
     .max = MIB(64) << 20,
     .initial = "64GiB",
     .reload = RESTART,
     .help = "Maximum size of data.mdb. The file grows as it is used."},
    {.key = "store.index_map_size",
     .type = &conf_type_size,
     .offset = MEMBER(store_index_map_size),
     .min = MIB(16),
     .max = MIB(64) << 20,
     .initial = "16GiB",
     .reload = RESTART,
     .help = "Maximum size of the segment files that one process keeps mapped. When exceeded, a "
             "thread unmaps the files that it used least recently, but not the index that it is "
             "reading."},
    {.key = "store.sync",
     .type = &conf_type_choice,
     .offset = MEMBER(store_sync),
     .choices = sync_choices,
     .initial = "full",
     .reload = RESTART,
     .help = "When a change is answered. full: after it is written to disk."},
    {.key = "reports.wait",
     .type = &conf_type_duration,
     .offset = MEMBER(reports_wait_ms),
     .max = SECONDS(30),
     .initial = "10s",
     .reload = RELOAD,
     .help = "How long a request that creates a report waits for the grading before it is "
             "answered with status pending."},
    {.key = "reports.good",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_good),
     .max = 100,
     .initial = "80",
     .reload = RELOAD,
     .help = "Lowest score with the result good."},
    {.key = "reports.decent",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_decent),
     .max = 100,
     .initial = "50",
     .reload = RELOAD,
     .help = "Lowest score with the result decent. A lower score is bad."},
    {.key = "reports.weight_high",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_high),
     .min = 1,
     .max = 1000,
     .initial = "10",
     .reload = RELOAD,
     .help = "Weight of a check of high importance in the score."},
    {.key = "reports.weight_medium",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_medium),
     .max = 1000,
     .initial = "5",
     .reload = RELOAD,
     .help = "Weight of a check of medium importance in the score."},
    {.key = "reports.weight_low",
     .type = &conf_type_integer,
     .offset = MEMBER(reports_weight_low),
     .max = 1000,
     .initial = "1",
     .reload = RELOAD,
     .help = "Weight of a check of low importance in the score."},
    {.key = "reports.indexable",
     .type = &conf_type_bool,
     .offset = MEMBER(reports_indexable),
     .max = 1,
     .initial = "false",
     .reload = RELOAD,
     .help = "Let search engines index the pages of public reports."},
    {.key = "jwt.ttl",
     .type = &conf_type_duration,
     .offset = MEMBER(jwt_ttl_ms),
     .min = SECONDS(1),
     .max = SECONDS(30 * 86400),
     .initial = "60m",
     .reload = RELOAD,
     .help = "Lifetime of a visitor's token."},
    {.key = "jwt.secrets_file",
     .type = &conf_type_path,
     .offset = MEMBER(jwt_secrets_file),
     .max = 1,
     .initial = "",
     .reload = RESTART,
     .help = "File with the secrets that sign visitors' tokens. Empty: a file in data_dir, "
             "created by the server."},
    {.key = "retention.events",
     .type = &conf_type_age,
     .offset = MEMBER(retention_events_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "How long visitors' events are kept, for example 90d. 0: forever."},
    {.key = "retention.conversations",
     .type = &conf_type_age,
     .offset = MEMBER(retention_conversations_ms),
     .max = SECONDS(3650 * 86400),
     .initial = "0",
     .reload = RELOAD,
     .help = "How long conversations are kept after they begin, for example 365d. 0: forever."},
    {.key = "sync.max_bytes",
     .type = &conf_type_size,
     .offset = MEMBER(sync_max_bytes),
     .min = 1 << 16,
     .max = MIB(16),
     .initial = "5MiB",
     .reload = RELOAD,
     .help = "Maximum size of a bulk sync body, after decompression."},
    {.key = "audit.allow_private",
     .type = &conf_type_cidrs,
     .offset = MEMBER(audit_allow_private),
     .initial = "",
     .reload = RELOAD,
     .help = "Private addresses and networks that may be graded, for example of an intranet."},
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
     .help = "Number of pages that one auditor fetches at once. One workspace takes at most three "
             "quarters of them."},
    {.key = "audit.timeout",
     .type = &conf_type_duration,
     .offset = MEMBER(audit_timeout_ms),
     .min = 100,
     .max = SECONDS(300),
     .initial = "15s",
     .reload = RELOAD,
     .help = "Maximum time to fetch and read one page, including its redirects and probes."},
    {.key = "audit.max_bytes",
     .type = &conf_type_size,
     .offset = MEMBER(audit_max_bytes),
     .min = 1024,
     .max = MIB(1024),
     .initial = "5MiB",
     .reload = RELOAD,
     .help = "Maximum size of a page, after decompression."},
    {.key = "audit.max_redirects",
     .type = &conf_type_integer,
     .offset = MEMBER(audit_max_redirects),
     .max = 20,
     .initial = "5",
     .reload = RELOAD,
     .help = "Maximum number of redirects to follow for one page."},
    {.key = "limits.slots",
     .type = &conf_type_integer,
     .offset = MEMBER(limits_slots),
     .min = 1024,
     .max = 1u << 30,
     .initial = "1048576",
     .reload = RESTART,
     .help = "How many callers are counted at once. When full, the least active caller that is "
             "not at its limit is forgotten."},
    {.key = "limits.ipv6_prefix",
     .type = &conf_type_integer,
     .offset = MEMBER(limits_ipv6_prefix),
     .min = 16,
     .max = 128,
     .initial = "64",
     .reload = RELOAD,
     .help = "Leading bits of an IPv6 address that identify a caller."},
    {.key = "limits.exempt",
     .type = &conf_type_cidrs,
     .offset = MEMBER(limits_exempt),
     .initial = "",
     .reload = RELOAD,
     .help = "Addresses and networks that are counted but never refused."},
    {.key = "limits.limiters",
     .type = &conf_type_limiters,
     .offset = MEMBER(limits),
     .initial = "{}",
     .reload = RELOAD,
     .help = "Limiters by name. An entry changes a built-in limiter or adds a new one. See "
             "LIMITERS in assay.yaml(5)."},
    {.key = "log.level",
     .type = &conf_type_choice,
     .offset = MEMBER(log_level),
     .choices = level_choices,
     .initial = "info",
     .reload = RELOAD,
     .help = "Lowest level of messages that are logged."},
    {.key = "log.access",
     .type = &conf_type_path,
     .offset = MEMBER(log_access),
     .max = 1,
     .initial = "",
     .reload = RELOAD,
     .help = "File of the access log. -: standard output. Empty: no access log."},
    {.key = "log.format",
     .type = &conf_type_choice,
     .offset = MEMBER(log_format),
     .choices = format_choices,
     .initial = "json",
     .reload = RELOAD,
     .help = "Format of both logs. json: one object per line. combined: plain text, in the access "
             "log the combined log format."},
    {.key = "timeouts.header",
     .type = &conf_type_duration,
     .offset = MEMBER(header_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "10s",
     .reload = RELOAD,
     .help = "Maximum time to receive the header of a request."},
    {.key = "timeouts.body",
     .type = &conf_type_duration,
     .offset = MEMBER(body_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "30s",
     .reload = RELOAD,
     .help = "Maximum time to receive the body of a request."},
    {.key = "timeouts.send",
     .type = &conf_type_duration,
     .offset = MEMBER(send_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "60s",
     .reload = RELOAD,
     .help = "Maximum time without progress while a client receives a response."},
    {.key = "timeouts.idle",
     .type = &conf_type_duration,
     .offset = MEMBER(idle_timeout_ms),
     .min = 100,
     .max = SECONDS(3600),
     .initial = "60s",
     .reload = RELOAD,
     .help = "Maximum time that a connection stays open between requests."},
    {.key = "timeouts.drain",
     .type = &conf_type_duration,
     .offset = MEMBER(drain_timeout_ms),
     .max = SECONDS(3600),
     .initial = "90s",
     .reload = RELOAD,
     .help = "Maximum time for a stopping worker to finish its requests."},
    {.key = "timeouts.upgrade",
     .type = &conf_type_duration,
     .offset = MEMBER(upgrade_timeout_ms),
     .min = SECONDS(1),
     .max = SECONDS(3600),
     .initial = "30s",
     .reload = RELOAD,
     .help = "Maximum time for a new binary to start during an upgrade (USR2). After that, the "
             "old one continues."},
    {.key = "max_connections",
     .type = &conf_type_integer,
     .offset = MEMBER(max_connections),
     .min = 1,
     .max = 1000000,
     .initial = "10000",
     .reload = RELOAD,
     .help = "Maximum number of open connections. When reached, the longest-idle or slowest "
             "connection is closed to admit a new one."},
    {.key = "max_connections_per_ip",
     .type = &conf_type_integer,
     .offset = MEMBER(max_connections_per_ip),
     .max = 1000000,
     .initial = "0",
     .reload = RELOAD,
     .help = "Maximum number of open connections per client address (IPv6: per "
             "limits.ipv6_prefix). 0: no limit. Does not apply to trusted_proxies and "
             "limits.exempt."},
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

/* A bound of the range, in the option's unit. */
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

    /* To get the default as YAML, set it in an empty configuration and print it. */
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
