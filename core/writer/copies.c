#include "core/writer/copies.h"

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/cluster/store_copy.h"
#include "core/writer/background_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define NICE 15 /* requests go first */
#define END_MS 2000

struct copy {
    struct copy *next;
    struct copies *all;
    struct channel channel;
    struct store *store; /* of the thread */
    pthread_t id;
    atomic_bool ended;
};

static bool goes_on(void *arg, uint64_t done, uint64_t total)
{
    struct copy *copy = arg;
    (void)done;
    (void)total;
    return !atomic_load(&copy->all->ending);
}

static void *run(void *arg)
{
    char why[STORE_COPY_WHY];
    struct copy *copy = arg;
    background_thread_configure("copy", NICE);
    if (store_copy_send(&copy->channel, copy->store, goes_on, copy, why))
        log_info("the cluster: sent a copy of the store to a node that joins");
    else
        log_warn("the cluster: a copy of the store for a node that joins ended early: %s",
                 why[0] != '\0' ? why : "the writer ends");
    atomic_store(&copy->ended, true);
    return NULL;
}

static void copy_free(struct copy *copy)
{
    if (copy == NULL)
        return;
    channel_close(&copy->channel);
    store_close(copy->store);
    free(copy);
}

/* NULL: ${why} says why; the channel is still the client's. */
static struct copy *copy_new(struct copies *c, char *why, size_t why_size)
{
    if (c->count == COPIES_MAX) {
        snprintf(why, why_size, "it already sends %d copies of its store; try again later",
                 COPIES_MAX);
        return NULL;
    }
    struct copy *copy = calloc(1, sizeof(*copy));
    if (copy == NULL)
        snprintf(why, why_size, "out of memory");
    else if (store_share(c->store, &copy->store, why, why_size) != STORE_OK) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* Take over the connection of a client of the loop. */
static void take_over(struct copies *c, struct copy *copy, struct client *client)
{
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, client->channel.fd, NULL);
    copy->all = c;
    copy->channel = client->channel;
    copy->next = c->list;
    client->channel = (struct channel){.fd = -1};
    c->list = copy;
    c->count++;
}

void copies_start(struct copies *c, struct client *client)
{
    char why[STORE_COPY_WHY];
    struct copy *copy = copy_new(c, why, sizeof(why));
    client->gone = true;
    if (copy == NULL) {
        store_copy_refuse(&client->channel, why);
        return;
    }
    take_over(c, copy, client);
    int error = thread_start(&copy->id, run, copy);
    if (error == 0)
        return;
    log_error("the cluster: a copy of the store cannot start: %s", strerror(error));
    c->list = copy->next;
    c->count--;
    copy_free(copy);
}

void copies_step(struct copies *c)
{
    for (struct copy **at = &c->list; *at != NULL;) {
        struct copy *copy = *at;
        if (!atomic_load(&copy->ended)) {
            at = &copy->next;
            continue;
        }
        pthread_join(copy->id, NULL);
        *at = copy->next;
        c->count--;
        copy_free(copy);
    }
}

bool copies_end(struct copies *c)
{
    atomic_store(&c->ending, true);
    for (unsigned ms = 0; c->list != NULL && ms < END_MS; ms += 10) {
        copies_step(c);
        if (c->list != NULL)
            usleep(10000);
    }
    return c->list == NULL;
}
