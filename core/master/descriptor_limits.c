#include "core/master/descriptor_limits.h"

#include "core/base/log.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>

/*
 * What a worker opens beside its connections and what it inherits: connections in the accept queue,
 * those of the internal listener, those admitted before an evicted one is closed; the store, the
 * writer's channel, the event loop, threads, logs; answer files. And connections in lingering close
 * (core/conn/lingering_close_internal.h), in proportion to the limit.
 */
#define RESERVE (64 + 16 + 32 + 48)
#define ANSWER_FILES_RESERVE 24 /* of each query thread: READER_CACHE_FILES with three each */
#define LINGERING_SHARE 8       /* one in so many descriptors */
#define LINGERING_MAX 256
#define CONNECTIONS_MIN 8

static size_t open_now(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static rlim_t lingering_of(rlim_t limit)
{
    return limit / LINGERING_SHARE < LINGERING_MAX ? limit / LINGERING_SHARE : LINGERING_MAX;
}

/* the new soft limit; root may raise the hard one */
static rlim_t raise_to(rlim_t wanted)
{
    struct rlimit have = {0};
    getrlimit(RLIMIT_NOFILE, &have);
    if (have.rlim_cur >= wanted)
        return have.rlim_cur;
    struct rlimit more = {wanted, have.rlim_max < wanted ? wanted : have.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) != 0)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){have.rlim_max, have.rlim_max});
    getrlimit(RLIMIT_NOFILE, &have);
    return have.rlim_cur;
}

int descriptors_fit(struct conf *conf, size_t sockets)
{
    rlim_t reserved =
        open_now() + sockets + RESERVE + ANSWER_FILES_RESERVE * (conf->query_threads + 1);
    rlim_t wanted = reserved + LINGERING_MAX + conf->max_connections;
    rlim_t limit = raise_to(wanted), over = reserved + lingering_of(limit);
    if (limit < over + CONNECTIONS_MIN) {
        log_error("RLIMIT_NOFILE: a process may open %llu descriptors, which is too few to serve "
                  "connections: set LimitNOFILE= of the service, or ulimit -n, to %llu",
                  (unsigned long long)limit, (unsigned long long)wanted);
        return -1;
    }
    uint64_t each = limit - over, all = each * conf->workers;
    conf->lingering_connections = (unsigned)lingering_of(limit);
    conf->worker_connections = each < UINT_MAX ? (unsigned)each : UINT_MAX;
    if (all >= conf->max_connections)
        return 0;
    log_warn("max_connections is lowered from %u to %llu: a process may open %llu descriptors "
             "(RLIMIT_NOFILE), which leaves %llu connections to each of %u workers; set "
             "LimitNOFILE= of the service, or ulimit -n, to %llu",
             conf->max_connections, (unsigned long long)all, (unsigned long long)limit,
             (unsigned long long)each, conf->workers, (unsigned long long)wanted);
    conf->max_connections = (unsigned)all;
    return 0;
}
