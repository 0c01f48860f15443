/*
 * The log of a cluster: row sets (store/rows.h) in the order in which every node applies them. One
 * node leads and appends entries. All other nodes read them. An engine orders the entries, makes
 * them durable and replicates them. A struct cluster_log_engine has the calls of an engine;
 * log_postgresql.c implements one.
 *
 * Fence: each lead has an epoch, which is greater than all earlier epochs. After lead has returned
 * an epoch, no append with an earlier epoch succeeds.
 *
 * A struct cluster_log is one connection, used by one thread. A call blocks for at most
 * CLUSTER_LOG_CALL_MS. A call that connects may block longer: it resolves host names, and each of
 * several hosts that does not answer takes two seconds.
 */
#ifndef ASSAY_CLUSTER_CLUSTER_LOG_H
#define ASSAY_CLUSTER_CLUSTER_LOG_H

#include "core/cluster/chain.h"
#include "core/shm/cluster_score.h"

#define CLUSTER_LOG_CALL_MS 5000
#define CLUSTER_LOG_LEASE_MS CLUSTER_LEASE_MS
#define CLUSTER_LOG_RENEW_MS 2000
#define CLUSTER_LOG_ENTRY_BYTES (1u << 20) /* an entry of several changes is not larger */
#define CLUSTER_LOG_READ_BYTES (4u << 20)  /* one read ends after that; at least one entry */
#define CLUSTER_CLOCK_MS 5000     /* a larger difference from the clock of the engine is an error */
#define NODE_BYTES STORE_ID_BYTES /* a node is its store: store_id */
#define NODE_TEXT 64              /* of a name or an address, with the NUL */
#define NODE_WHY 512              /* of a sentence, with the NUL */

enum cluster_log_status {
    CLUSTER_LOG_OK,
    CLUSTER_LOG_NONE, /* there is no such entry; or the database has no log: assay cluster init */
    CLUSTER_LOG_LED,  /* another node leads, or has led since */
    CLUSTER_LOG_UNKNOWN, /* the connection was lost during a commit, which may have happened */
    CLUSTER_LOG_AWAY,    /* not reachable, or too slow: why */
    CLUSTER_LOG_REFUSED, /* the engine answers with an error: why */
};

/* A node, as others see it. */
struct cluster_log_node {
    uint8_t id[NODE_BYTES];
    char name[NODE_TEXT], address[NODE_TEXT], version[NODE_TEXT];
    uint32_t format;        /* the newest one of entries that it knows */
    uint64_t sequence;      /* of the last entry that it applied */
    uint64_t free_bytes;    /* that its store can still grow by */
    uint64_t hash_sequence; /* of the last entry with a hash of its rows; 0: none */
    uint8_t hash[STORE_HASH_BYTES];
    uint64_t differs_at;    /* the entry at which its rows differ, which stopped it; 0: none */
    char stopped[NODE_WHY]; /* why it applies nothing; "": it applies entries */
    int64_t seen_ms;        /* since it was last noted, by the engine's clock */
};

/* The head of the log. */
struct cluster_log_head {
    uint8_t log[STORE_LOG_BYTES];
    uint64_t epoch;
    uint8_t leader[NODE_BYTES]; /* zeros: nobody has led */
    char leader_name[NODE_TEXT], leader_address[NODE_TEXT];
    int64_t lease_ms;  /* time left of the lead, by the engine's clock; 0 or less: it has ended */
    uint64_t sequence; /* of the last entry; 0: none */
    uint32_t format;   /* its format; 0: there is none */
    int64_t at_ms;     /* its time */
    uint8_t chain[STORE_CHAIN_BYTES];
    int64_t clock_ms; /* the engine's clock, since the epoch of Unix */
    bool verify;      /* requests an entry without rows, at which all nodes hash */
    /* of position with a node: */
    uint64_t differs_at;
    bool taken;         /* another live server has this store; this node was not registered */
    bool taken_by_name; /* that server has this node's name, and another store */
    char taken_name[NODE_TEXT], taken_address[NODE_TEXT]; /* of that server */
};

struct cluster_log_entry {
    uint64_t sequence, epoch;
    int64_t at_ms;   /* for append: never less than that of the entry before */
    uint32_t format; /* of its row set: store_rows_formats */
    struct str rows;
    uint8_t chain[STORE_CHAIN_BYTES];
    uint8_t before[STORE_CHAIN_BYTES]; /* for append: the chain of the entry before */
    bool mark;                         /* for append: it has no rows */
};

/*
 * The calls of an engine. ${l} is from cluster_log_new.
 *
 * why(l): a sentence about the last call that failed; valid until the next call.
 *
 * lead(l, node, epoch, lease_ms, out): with ${epoch} 0, begins a lead if no other node leads; its
 * epoch is out->epoch. Otherwise renews the lead with that epoch. The lead lasts for ${lease_ms},
 * at most CLUSTER_LOG_LEASE_MS; 0 ends it. CLUSTER_LOG_LED: another node leads. After
 * CLUSTER_LOG_OK all entries up to the head are as durable as an append.
 *
 * append(l, entry): appends the entry after the one with the preceding sequence, and renews the
 * lead. CLUSTER_LOG_LED: the head has another epoch, sequence or chain; nothing was appended. After
 * CLUSTER_LOG_UNKNOWN, the head that lead returns shows whether the log has the entry. If not, the
 * log may still get it while the epoch lasts: append the same entry again.
 *
 * read(l, after, each, arg): the entries after that sequence, in order, up to
 * CLUSTER_LOG_READ_BYTES. Their rows are valid during the call of ${each}, which returns false to
 * stop. CLUSTER_LOG_NONE: there are no such entries, or they were trimmed.
 *
 * position(l, node, out): the head. Also registers ${node} with its state, unless it is NULL. A
 * node is not registered if a server with another name or address registered it within the last
 * CLUSTER_LOG_LEASE_MS: ${out}->taken. Nor is a node that no server registered within that time, if
 * a node at another address has its name.
 * chain(l, sequence, out): the chain of that entry; CLUSTER_LOG_NONE: the log does not have it.
 * first(l, out): the sequence of the first entry; CLUSTER_LOG_NONE: the log is empty.
 * trim(l, before, at_ms): deletes entries before that sequence and that time, as far as the engine
 * can delete them fast. Some may stay.
 * wait(l, wake, ms): waits until an entry is appended, ${wake} is readable, or ${ms} have passed.
 *
 * For operators. make(l, head, replace): creates an empty log with the id and chain of ${head}.
 * Without ${replace}, CLUSTER_LOG_REFUSED if there is a log.
 * nodes(l, each, arg): all nodes, by name.
 * remove(l, node, unseen_ms): deregisters a node that was not seen for that long.
 * CLUSTER_LOG_NONE: it was seen since, or is not registered.
 * verify(l, sequence): requests an entry without rows after the head, ${sequence}, from the leader.
 * stop(l, node): stores why this node applies nothing: node->stopped, until position registers the
 * node; and node->differs_at, unless it is 0, until the node is removed. Does not register the
 * node, and does not count as seen.
 * warnings(l, each, arg): sentences about what makes the log less durable than promised.
 */
struct cluster_log;
typedef bool cluster_log_entry_fn(void *arg, const struct cluster_log_entry *entry);
typedef void cluster_log_node_fn(void *arg, const struct cluster_log_node *node);
typedef void cluster_log_warning_fn(void *arg, const char *sentence);

struct cluster_log_engine {
    const char *(*why)(const struct cluster_log *l);
    enum cluster_log_status (*lead)(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                    uint64_t epoch, unsigned lease_ms,
                                    struct cluster_log_head *out);
    enum cluster_log_status (*append)(struct cluster_log *l, const struct cluster_log_entry *e);
    enum cluster_log_status (*read)(struct cluster_log *l, uint64_t after,
                                    cluster_log_entry_fn *each, void *arg);
    enum cluster_log_status (*position)(struct cluster_log *l, const struct cluster_log_node *node,
                                        struct cluster_log_head *out);
    enum cluster_log_status (*chain)(struct cluster_log *l, uint64_t sequence,
                                     uint8_t out[STORE_CHAIN_BYTES]);
    enum cluster_log_status (*first)(struct cluster_log *l, uint64_t *out);
    enum cluster_log_status (*trim)(struct cluster_log *l, uint64_t before, int64_t at_ms);
    void (*wait)(struct cluster_log *l, int wake, unsigned ms);
    enum cluster_log_status (*make)(struct cluster_log *l, const struct cluster_log_head *head,
                                    bool replace);
    enum cluster_log_status (*nodes)(struct cluster_log *l, cluster_log_node_fn *each, void *arg);
    enum cluster_log_status (*remove)(struct cluster_log *l, const uint8_t node[NODE_BYTES],
                                      int64_t unseen_ms);
    enum cluster_log_status (*verify)(struct cluster_log *l, uint64_t *sequence);
    enum cluster_log_status (*stop)(struct cluster_log *l, const struct cluster_log_node *node);
    enum cluster_log_status (*warnings)(struct cluster_log *l, cluster_log_warning_fn *each,
                                        void *arg);
    void (*free)(struct cluster_log *l);
};

struct cluster_log {
    const struct cluster_log_engine *engine;
};

/*
 * cluster_log_new(source, name): ${source} is the address of the engine, borrowed; ${name} names
 * the connection in the engine's list of connections. The first call connects. NULL: out of memory,
 * or the build has no engine (cluster_log_is_built).
 */
struct cluster_log *cluster_log_new(const char *source, const char *name);
bool cluster_log_is_built(void);

#endif
