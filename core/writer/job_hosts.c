#include "core/writer/job_hosts.h"

#include "core/shm/host_hash.h"

#include <stdlib.h>
#include <string.h>

void job_hosts_init(struct job_hosts *h)
{
    h->seed = host_hash_seed();
}

/* the part between "://" and the port, "/", "?" or "#"; an IPv6 address is in brackets */
static uint64_t hash_host(const struct job_hosts *h, struct str url)
{
    size_t from = 0;
    while (from + 3 <= url.n && memcmp(url.p + from, "://", 3) != 0)
        from++;
    from = from + 3 <= url.n ? from + 3 : 0;
    const char end = from < url.n && url.p[from] == '[' ? ']' : ':';
    size_t at = from;
    while (at < url.n && url.p[at] != '/' && url.p[at] != '?' && url.p[at] != '#' &&
           url.p[at] != end)
        at++;
    return host_hash(h->seed, url.p + from, at - from);
}

struct job_host *job_host_of(struct job_hosts *h, struct str url)
{
    uint64_t hash = hash_host(h, url);
    struct job_host **bucket = &h->bucket[hash % JOB_HOST_BUCKETS], *host = *bucket;
    while (host != NULL && host->hash != hash)
        host = host->next_same;
    if (host != NULL)
        return host;
    host = calloc(1, sizeof(*host));
    if (host == NULL)
        return NULL;
    host->hash = hash;
    host->next_same = *bucket;
    *bucket = host;
    return host;
}

void job_host_drop_idle(struct job_hosts *h, struct job_host *host)
{
    struct job_host **at = &h->bucket[host->hash % JOB_HOST_BUCKETS];
    if (host->jobs > 0)
        return;
    while (*at != host)
        at = &(*at)->next_same;
    *at = host->next_same;
    free(host);
}
