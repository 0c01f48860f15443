/*
 * Redis for tests: primaries, replicas and sentinels of Debian's packages, each in a private
 * directory on a free port of loopback. They die with the process that started them. A function
 * that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_REDIS_SERVERS_H
#define ASSAY_T_KIT_REDIS_SERVERS_H

#include "t/kit/harness.h"

struct redis {
    pid_t pid; /* 0: not running */
    uint16_t port;
    char *dir, *conf;
    char *address;  /* 127.0.0.1:41873 */
    char *password; /* NULL: none */
    bool is_sentinel;
};

/* redis_installed(): redis-server and redis-sentinel are there. */
bool redis_installed(void);

/*
 * redis_primary(lines): starts a server; ${lines} are additions to its configuration, or "".
 * redis_replica(of): one that follows ${of}, and has caught up. redis_sentinels(of, out, count):
 * sentinels that watch ${of} as "mymaster" and know each other and its replicas.
 */
struct redis *redis_primary(const char *lines);
struct redis *redis_replica(const struct redis *of);
void redis_sentinels(const struct redis *of, struct redis **out, size_t count);

/*
 * redis_signal(r, signal): of the server. redis_kill: SIGKILL, and waits. redis_start: after
 * redis_kill, on the same port; an empty server. redis_stop: for teardowns; NULL is allowed.
 */
void redis_signal(const struct redis *r, int signal);
void redis_kill(struct redis *r);
void redis_start(struct redis *r);
void redis_stop(struct redis *r);

/* redis_says(r, …): what redis-cli prints for a command; words, ended by NULL. */
char *redis_says(const struct redis *r, ...);

/*
 * redis_is_primary(arg): of a struct redis; for wait_until. redis_key_file(dir): writes a key file
 * there; its path.
 */
bool redis_is_primary(void *arg);
char *redis_key_file(const char *dir);

#endif
