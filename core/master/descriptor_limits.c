#include "core/master/descriptor_limits.h"

#include "core/base/log.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>

/*
 * Of a worker, beside its connections and what it inherits: those that wait in the lobby, the
 * internal listener's own, those that are let in before the ones that gave way are closed; the store,
 * the writer's channel, the event loop, threads, logs; open answer files. And in part, those that
 * linger (lingering_close.h).
 */
#define RESERVE (64 + 16 + 32 + 48)
#define ANSWER_FILES_RESERVE 24 /* of each query thread: READER_CACHE_FILES with three each */
#define LINGERING_PART 8
#define LINGERING_MOST 256
#define PLACES_LEAST 8

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
    return limit / LINGERING_PART < LINGERING_MOST ? limit / LINGERING_PART : LINGERING_MOST;
}

/* the soft limit afterwards; root may raise the hard one */
static rlim_t raise_to(rlim_t want, rlim_t *hard)
{
    struct rlimit have = {0};
    getrlimit(RLIMIT_NOFILE, &have);
    if (have.rlim_cur < want) {
        struct rlimit more = {want, have.rlim_max < want ? want : have.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &more) != 0)
            setrlimit(RLIMIT_NOFILE, &(struct rlimit){have.rlim_max, have.rlim_max});
        getrlimit(RLIMIT_NOFILE, &have);
    }
    *hard = have.rlim_max;
    return have.rlim_cur;
}

int descriptors_fit(struct conf *conf, size_t acceptor)
{
    rlim_t hard,
        taken = open_now() + acceptor + RESERVE + ANSWER_FILES_RESERVE * (conf->query_threads + 1),
        want = taken + LINGERING_MOST + conf->max_connections;
    rlim_t limit = raise_to(want, &hard), over = taken + lingering_of(limit);
    if (limit < over + PLACES_LEAST) {
        log_error("RLIMIT_NOFILE: a process may open %llu descriptors, which is too few to serve "
                  "connections: set LimitNOFILE= of the "
                  "service, or ulimit -n, to %llu",
                  (unsigned long long)limit, (unsigned long long)want);
        return -1;
    }
    uint64_t places = limit - over, all = places * conf->workers;
    conf->lingering_connections = (unsigned)lingering_of(limit);
    conf->worker_connections = places < UINT_MAX ? (unsigned)places : UINT_MAX;
    if (all >= conf->max_connections)
        return 0;
    log_warn(
        "max_connections is lowered from %u to %llu: a process may open %llu descriptors "
        "(RLIMIT_NOFILE), which leaves %llu "
        "connections to each of %u workers; set LimitNOFILE= of the service, or ulimit -n, to %llu",
        conf->max_connections, (unsigned long long)all, (unsigned long long)limit,
        (unsigned long long)places, conf->workers, (unsigned long long)want);
    conf->max_connections = (unsigned)all;
    return 0;
}
