/*
 * The configuration. One option table (conf_options in table.c) drives parsing, range checks,
 * defaults, help, `config dump`, the sample file and the man page.
 *
 * The master reads the configuration before it forks, and again on HUP. A struct conf is immutable
 * once loaded; every process reads the one it was forked with.
 */
#ifndef ASSAY_CONF_CONF_H
#define ASSAY_CONF_CONF_H

#include "core/base/cidr.h"
#include "core/base/log.h"
#include "core/conf/limiters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_DEFAULT_PATH "/etc/assay/assay.yaml"
#define CONF_LISTEN_MAX 16
#define CONF_PORTS_MAX 16
#define CONF_SENTINELS_MAX 16
#define CONF_REDIS_PREFIX_MAX 32
#define CONF_WORKERS_MAX 512
#define CONF_NODE_NAME_MAX 63
#define CONF_QUERY_THREADS_MAX 7 /* per worker; the event loop is one more reader of the store */
/*
 * Slots of the store's reader table, for two generations of workers. The first process fixes the
 * size of the table, but a reload may raise the number of workers and threads.
 */
#define CONF_STORE_READERS (2 * (1 + CONF_QUERY_THREADS_MAX) * CONF_WORKERS_MAX + 256)

struct conf_listen {
    char *address;                                 /* host:port, [v6]:port or unix:/path */
    bool proxy_protocol;                           /* every connection begins with a PROXY header */
    char *tls_certificate, *tls_key;               /* "": plain HTTP */
    char *tls_second_certificate, *tls_second_key; /* another key type; "": none */
    uint64_t tls_hsts_ms; /* max-age of Strict-Transport-Security; 0: no header */
};

#define CONF_NODES_AUTO 0

/* Addresses, host:port each. */
struct conf_addresses {
    char *items[CONF_SENTINELS_MAX];
    size_t count;
};

/* Where limiters count: in shared memory of this host, or in a Redis that several nodes share. */
enum limits_engine { LIMITS_LOCAL, LIMITS_REDIS };

/* When a change is answered. Before the commit, readers could not see it yet, so "full" is all. */
enum store_sync { STORE_SYNC_FULL };

struct conf {
    struct conf_listen listen[CONF_LISTEN_MAX];
    size_t listen_count;
    char *internal_listen;  /* "": none */
    char *base_url;         /* without a trailing slash; "": http://<first listener> */
    unsigned workers;       /* 1–512; `auto` is resolved to the number of cores */
    unsigned query_threads; /* per worker */
    unsigned auditors;      /* 1–64 */
    char *data_dir, *run_dir, *user;
    struct cidr_list trusted_proxies;
    uint64_t store_map_size, store_index_map_size; /* bytes */
    enum store_sync store_sync;
    unsigned reports_wait_ms;
    bool reports_indexable;
    unsigned reports_good, reports_decent; /* 0–100 */
    unsigned reports_weight_high, reports_weight_medium, reports_weight_low;
    unsigned jwt_ttl_ms;
    char *jwt_secrets_file;
    uint64_t retention_events_ms, retention_conversations_ms; /* 0: forever */
    uint64_t sync_max_bytes; /* of a bulk sync body, after decompression */
    struct cidr_list audit_allow_private;
    uint16_t audit_ports[CONF_PORTS_MAX];
    size_t audit_ports_count;
    unsigned audit_concurrency; /* pages at once in one auditor */
    unsigned audit_timeout_ms;
    uint64_t audit_max_bytes; /* after decompression */
    unsigned audit_max_redirects;
    unsigned limits_slots;
    unsigned limits_ipv6_prefix; /* leading bits that identify a caller */
    struct cidr_list limits_exempt;
    struct limiters *limits; /* includes the two options above */
    char *cluster_log;       /* connection string of PostgreSQL; "": no cluster */
    char *cluster_name;      /* of this node */
    char *cluster_address;   /* where other nodes reach this one */
    char *cluster_key_file;  /* the key that all nodes have */
    unsigned cluster_wait_ms, cluster_max_lag_ms;
    bool cluster_stale_reads; /* also after cluster_max_lag_ms */
    uint64_t cluster_keep_ms; /* entries that are not older stay in the log */
    uint64_t cluster_away_ms; /* a node that was not seen for longer is deregistered */
    enum limits_engine limits_engine;
    char *redis_address;                   /* unused with sentinels */
    struct conf_addresses redis_sentinels; /* count 0: none */
    char *redis_sentinel_name;             /* what the sentinels call the primary */
    /* "": none */
    char *redis_user, *redis_password_file, *redis_sentinel_password_file, *redis_key_file;
    char *redis_prefix; /* of every key in Redis */
    unsigned redis_timeout_ms;
    unsigned redis_nodes; /* that share the Redis; CONF_NODES_AUTO: those of the cluster */
    enum log_level log_level;
    char *log_access; /* file; "": none; "-": standard output */
    enum log_format log_format;
    unsigned header_timeout_ms, body_timeout_ms, send_timeout_ms, idle_timeout_ms, drain_timeout_ms,
        upgrade_timeout_ms;
    unsigned max_connections; /* whole server; the master lowers it to fit the descriptor limit */
    unsigned max_connections_per_ip; /* 0: no limit */
    /* Not options: per worker, computed from the descriptor limit (descriptor_limits.h). */
    unsigned worker_connections, lingering_connections;
};

/*
 * conf_load(path, required, sets, set_count, mistakes, out): read ${path}, then apply ${sets}
 * ("listen.0.address=127.0.0.1:0"). Without a path, or if the file is missing and not ${required},
 * the defaults are used. Every error is reported to ${mistakes}, one line each: "FILE:LINE:
 * sentence". Returns 0 and a configuration to free with conf_free, or the number of errors.
 */
int conf_load(const char *path, bool required, const char *const *sets, size_t set_count,
              FILE *mistakes, struct conf **out) __attribute__((warn_unused_result));
void conf_free(struct conf *conf);

/*
 * conf_know_routes(known): set the function that says which routes a limiter may name. Call it
 * before the first conf_load; without it every well-formed route is accepted. ${method} may be "*",
 * ${path} may end in "*".
 */
typedef bool conf_route_fn(struct str method, struct str path);
void conf_know_routes(conf_route_fn *known);

/*
 * conf_know_files(can_use): set the function that checks each file an option names; the option is
 * refused if it returns false. The server calls this before the first conf_load; without it files
 * are not checked.
 */
enum conf_file_use {
    FILE_APPENDED,
    FILE_OF_SECRETS,  /* signing_keys.h */
    FILE_OF_KEY,      /* secret_file.h */
    FILE_OF_PASSWORD, /* secret_file.h */
};
typedef bool conf_file_fn(const struct conf *conf, const char *path, enum conf_file_use use,
                          char *why, size_t size);
void conf_know_files(conf_file_fn *can_use);

/*
 * conf_reload_refusals(old, new, mistakes): the number of changed options that need a restart, each
 * reported to ${mistakes}.
 */
int conf_reload_refusals(const struct conf *old, const struct conf *new_conf, FILE *mistakes);

/*
 * conf_dump(conf, out): the whole configuration as YAML, which conf_load reads back to the same
 * values. conf_sample(out): every option with its description and default: packaging/assay.yaml.
 */
void conf_dump(const struct conf *conf, FILE *out);
void conf_sample(FILE *out);

/* conf_option_at(i, out): row ${i} of the option table, for help and tests; false past the end. */
struct conf_option_view {
    const char *key;     /* dotted */
    const char *type;    /* "duration", "size", "integer 1–512", "text", … */
    const char *initial; /* default, as YAML */
    const char *help;
    bool reload; /* HUP applies it; otherwise it needs a restart */
};
bool conf_option_at(size_t i, struct conf_option_view *out);

#endif
