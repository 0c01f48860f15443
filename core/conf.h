/*
 * The configuration: one option table (conf_options, in conf_table.c) feeds parsing, range checks, defaults, --help, `config dump`, the
 * sample file and the man page.
 *
 * The master reads it before it forks, and again on HUP; a struct conf is immutable once made. Every process may read the one it was forked
 * with.
 */
#ifndef ASSAY_CONF_H
#define ASSAY_CONF_H

#include "cidr.h"
#include "limiters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_LISTEN_MAX 16
#define CONF_PORTS_MAX 16
#define CONF_WORKERS_MAX 512
#define CONF_QUERY_THREADS_MAX 7 /* of a worker; its event loop is one reader of the store more */
/*
 * Slots of the store's table of readers, for two generations of workers. The table keeps the size
 * that the first process gave it, while a reload may raise workers and their threads.
 */
#define CONF_STORE_READERS (2 * (1 + CONF_QUERY_THREADS_MAX) * CONF_WORKERS_MAX + 256)

struct conf_listen {
    char *address;                   /* host:port, [v6]:port or unix:/path */
    bool proxy_protocol;             /* every connection begins with the PROXY protocol's header */
    char *tls_certificate, *tls_key; /* "" without TLS */
    char *tls_second_certificate, *tls_second_key; /* of another kind of key, "" for none */
    uint64_t tls_hsts_ms; /* for so long browsers are told to come by TLS alone; 0: they are not */
};

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_COMBINED };

/* when a change is answered; answering before the commit would need readers that see what is not committed */
enum store_sync { STORE_SYNC_FULL };

struct conf {
    struct conf_listen listen[CONF_LISTEN_MAX];
    size_t listen_count;
    char *internal_listen;  /* "" none */
    char *base_url;         /* without a trailing slash; "" means http://<first listener> */
    unsigned workers;       /* 1–512; `auto` is resolved to the cores */
    unsigned query_threads; /* of a worker */
    unsigned auditors;      /* 1–64 */
    char *data_dir, *run_dir, *user;
    struct cidr_list trusted_proxies;
    uint64_t store_map_size, store_index_map_size; /* bytes */
    enum store_sync store_sync;
    unsigned reports_wait_ms;
    unsigned reports_good, reports_decent; /* 0–100 */
    unsigned reports_weight_high, reports_weight_medium,
        reports_weight_low; /* of a check in the score */
    unsigned jwt_ttl_ms;
    char *jwt_secrets_file;
    uint64_t retention_events_ms, retention_conversations_ms; /* 0: for ever */
    uint64_t sync_max_bytes; /* of a body of bulk sync, decompressed */
    struct cidr_list audit_allow_private;
    uint16_t audit_ports[CONF_PORTS_MAX];
    size_t audit_ports_count;
    unsigned audit_concurrency; /* transfers at once in one auditor */
    unsigned audit_timeout_ms;
    uint64_t audit_max_bytes; /* decoded */
    unsigned audit_max_redirects;
    unsigned limits_slots;       /* keys that the limiter's table holds */
    unsigned limits_ipv6_prefix; /* bits of an IPv6 address that count */
    struct cidr_list limits_exempt;
    struct limiters *limits; /* the limiters, with the two above in them */
    enum log_level log_level;
    char *log_access; /* file; "" none, "-" standard output */
    enum log_format log_format;
    unsigned header_timeout_ms, body_timeout_ms, send_timeout_ms, idle_timeout_ms, drain_timeout_ms,
        upgrade_timeout_ms;
    unsigned max_connections; /* whole server; the master lowers it to what descriptors allow */
    unsigned worker_connections,
        lingering_connections;       /* of one worker, no options: descriptors.h */
    unsigned max_connections_per_ip; /* 0: no limit */
};

/*
 * conf_load(path, required, sets, set_count, mistakes, out):
 * Read ${path} (NULL, or missing and not ${required}: the defaults alone), then apply the ${sets} ("listen.0.address=127.0.0.1:0"). All
 * mistakes are found in one run and
 * written to ${mistakes}, a line each: "FILE:LINE: sentence". Return 0 and a configuration to be freed with conf_free, or the number of
 * mistakes.
 */
int conf_load(const char *path, bool required, const char *const *sets, size_t set_count,
              FILE *mistakes, struct conf **out) __attribute__((warn_unused_result));
void conf_free(struct conf *conf);

/*
 * conf_know_routes(known): which routes limiters of the configuration may name; before the first conf_load. Without it every well-formed
 * one. ${method} may be "*", ${path} may end in "*".
 */
typedef bool conf_route_fn(struct str method, struct str path);
void conf_know_routes(conf_route_fn *known);

/*
 * conf_know_files(can_use): ask this of each file that an option names, and refuse the option where it says no; the server's, before
 * the first conf_load. Without it no file is looked at.
 */
enum conf_file_use { FILE_APPENDED, FILE_OF_SECRETS };
typedef bool conf_file_fn(const struct conf *conf, const char *path, enum conf_file_use use,
                          char *why, size_t size);
void conf_know_files(conf_file_fn *can_use);

/* conf_reload_refusals(old, new, mistakes): how many options that need a restart differ; a sentence each to ${mistakes}. */
int conf_reload_refusals(const struct conf *old, const struct conf *new_conf, FILE *mistakes);

/*
 * conf_dump(conf, out): the whole configuration in force as YAML that conf_load reads back to the same. conf_sample: every option with its
 * comment and default, as the packages' assay.yaml.
 */
void conf_dump(const struct conf *conf, FILE *out);
void conf_sample(FILE *out);

/* conf_option_at(i): the i-th row of the option table, for help texts, man page and tests; NULL past the end. */
struct conf_option_view {
    const char *key;     /* dotted */
    const char *type;    /* "duration", "size", "integer 1–512", "text", … */
    const char *initial; /* default as YAML */
    const char *help;    /* one sentence */
    bool reload;         /* HUP applies it; else it needs a restart */
};
bool conf_option_at(size_t i, struct conf_option_view *out);

#endif
