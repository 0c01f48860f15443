/* The slot of its host that a transfer holds: on this machine, and in a cluster over all nodes. */
#include "core/audit/clock_internal.h"
#include "core/audit/job_internal.h"

#include <string.h>

#define ASK_AGAIN_MS 100 /* the leader does not announce free slots */

/* Redirects between example.com and www.example.com are usual. */
static bool same_site(const char *a, const char *b)
{
    a += strncmp(a, "www.", 4) == 0 ? 4 : 0;
    b += strncmp(b, "www.", 4) == 0 ? 4 : 0;
    return strcmp(a, b) == 0;
}

static bool is_redirected(const struct transfer *t)
{
    return !same_site(t->url.host, t->job->url.host);
}

static void ask(struct audit *audit, struct transfer *t, int64_t now)
{
    t->asked_at_ms = now;
    t->slot_question = ++audit->slot_questions;
    audit->slot_asker->ask(audit->slot_asker->arg, t->slot_question, is_redirected(t), t->url.host);
}

/* It keeps the slot of this machine while it asks: at most two ask for one host at a time. */
bool transfer_take_slot(struct audit *audit, struct transfer *t, int64_t now)
{
    if (!t->has_host_slot)
        t->has_host_slot = (is_redirected(t) ? host_slots_take_redirected : host_slots_take)(
            audit->host_slots, t->url.host, audit->pid);
    if (!t->has_host_slot || audit->slot_asker == NULL || t->has_cluster_slot)
        return t->has_host_slot;
    if (t->slot_question == 0 && now >= t->ask_at_ms)
        ask(audit, t, now);
    return false;
}

void transfer_free_slot(struct audit *audit, struct transfer *t)
{
    if (t->has_host_slot)
        host_slots_release(audit->host_slots, t->url.host, audit->pid);
    if (t->has_cluster_slot)
        audit->slot_asker->free(audit->slot_asker->arg, str_of(t->url.host));
    t->has_host_slot = t->has_cluster_slot = false;
    t->slot_question = 0;
    t->ask_at_ms = 0;
}

bool job_is_asking(const struct job *job)
{
    for (unsigned i = 0; i < REQUEST_KINDS; i++)
        if (job->transfers[i].slot_question != 0)
            return true;
    return false;
}

/* A leader that waits for its database answers late, which must not fail a page. */
static void excuse(struct transfer *t, int64_t now)
{
    const int64_t waited_ms = now - t->asked_at_ms;
    t->job->deadline_ms += waited_ms;
    if (t->slot_wanted_at_ms != 0)
        t->slot_wanted_at_ms += waited_ms;
}

static struct transfer *asking(struct audit *audit, uint64_t number)
{
    for (struct job *job = audit->running.first; job != NULL; job = job->next)
        for (unsigned i = 0; i < REQUEST_KINDS; i++)
            if (job->transfers[i].slot_question == number)
                return &job->transfers[i];
    return NULL;
}

void audit_ask_for_host_slots(struct audit *audit, const struct audit_slot_asker *by)
{
    audit->slot_asker = by;
}

void audit_host_slot_answered(struct audit *audit, uint64_t number, bool taken, struct str host)
{
    struct transfer *t = number == 0 ? NULL : asking(audit, number);
    if (t == NULL) { /* it was stopped meanwhile */
        if (taken)
            audit->slot_asker->free(audit->slot_asker->arg, host);
        return;
    }
    const int64_t now = monotonic_ms();
    excuse(t, now);
    t->slot_question = 0;
    t->has_cluster_slot = taken;
    t->ask_at_ms = now + ASK_AGAIN_MS;
}
