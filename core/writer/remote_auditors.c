#include "core/writer/remote_auditors.h"

#include "core/audit/url.h"
#include "core/base/log.h"
#include "core/shm/host_slots.h"

#include <stdlib.h>
#include <string.h>

#define HOST_MAX (URL_MAX_BYTES + 1)
#define LOG_MS 60000
#define STOPPED_MS 1000 /* a turn that takes longer: frames may wait in sockets */

bool remote_auditors_start(struct remote_auditors *r)
{
    if (r->leading->thread == NULL)
        return true;
    r->slots = calloc(1, sizeof(*r->slots));
    if (r->slots != NULL)
        host_slots_init(r->slots);
    return r->slots != NULL;
}

void remote_auditors_free(struct remote_auditors *r)
{
    free(r->slots);
}

/* ---- auditors ---- */

static void refuse(struct remote_auditors *r, struct client *client)
{
    const uint64_t now = clock_mono_ms();
    client->gone = true;
    if (r->logged_ms != 0 && now < r->logged_ms + LOG_MS)
        return;
    r->logged_ms = now;
    log_warn("the cluster: an auditor of another node gets no pages, since a cluster has at most "
             "%d auditors: lower the option auditors",
             JOB_QUEUE_AUDITORS);
}

void remote_auditors_joined(struct remote_auditors *r, struct client *client,
                            const struct frame *frame)
{
    const uint64_t capacity = frame->head.a;
    int index = job_queue_auditor_joined(r->queue, capacity < UINT16_MAX ? (unsigned)capacity : 0);
    if (index < 0) {
        refuse(r, client);
        return;
    }
    client->role = ROLE_AUDITOR;
    client->remote = client->has_hello = true;
    client->index = (unsigned)index;
    client->heard_ms = clock_mono_ms();
}

static int32_t holder_of(const struct client *client)
{
    return (int32_t)client->index + 1;
}

void remote_auditors_left(struct remote_auditors *r, const struct client *client)
{
    if (r->slots != NULL)
        host_slots_release_all(r->slots, holder_of(client));
    if (client->remote)
        job_queue_auditor_left(r->queue, client->index);
}

static bool is_silent(const struct client *client, uint64_t now)
{
    return client->remote && !client->gone && now - client->heard_ms > REMOTE_AUDITOR_SILENT_MS;
}

void remote_auditors_end_silent(struct remote_auditors *r)
{
    const uint64_t now = clock_mono_ms();
    const bool stopped = now - r->turn_ms > STOPPED_MS;
    r->turn_ms = now;
    for (size_t i = 0; i < r->clients->count; i++) {
        struct client *client = r->clients->list[i];
        if (stopped)
            client->heard_ms = now;
        if (!is_silent(client, now))
            continue;
        log_warn("the cluster: disconnected an auditor of another node: it sent nothing for %d s; "
                 "its pages are graded again",
                 REMOTE_AUDITOR_SILENT_MS / 1000);
        client->gone = true;
    }
}

/* ---- host slots ---- */

/* False: it is too long for a host. */
static bool copy_host(char out[HOST_MAX], struct str host)
{
    if (host.n >= HOST_MAX)
        return false;
    memcpy(out, host.p, host.n);
    out[host.n] = '\0';
    return true;
}

void remote_auditors_take_slot(struct remote_auditors *r, struct client *client,
                               const struct frame *frame)
{
    char host[HOST_MAX];
    bool taken = r->leading->leads && r->slots != NULL && copy_host(host, frame->payload) &&
                 (frame->head.b != 0 ? host_slots_take_redirected
                                     : host_slots_take)(r->slots, host, holder_of(client));
    channel_put(&client->channel, FRAME_SLOT, frame->head.a, taken, frame->payload);
    client_flush(r->clients, client); /* before the commit of this turn */
}

void remote_auditors_free_slot(struct remote_auditors *r, const struct client *client,
                               const struct frame *frame)
{
    char host[HOST_MAX];
    if (r->slots != NULL && copy_host(host, frame->payload))
        host_slots_release(r->slots, host, holder_of(client));
}
