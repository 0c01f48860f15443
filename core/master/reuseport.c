#include "core/master/reuseport.h"

#include "core/base/log.h"

#include <errno.h>
#include <string.h>

/* the i-th listener with a socket for each slot, or NULL: it is shared */
static struct listener *split(struct master *m, size_t i)
{
    return m->listeners[i].shared ? NULL : &m->listeners[i];
}

int reuseport_bind(struct master *m, unsigned workers)
{
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL && listen_grow(split(m, i), workers) != 0)
            return -1;
    return 0;
}

void reuseport_unbind(struct master *m)
{
    int kept = errno;
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL)
            listen_shrink(split(m, i), split(m, i)->listening);
    errno = kept;
}

/* the first ${count} listeners */
static void unsteer(struct master *m, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (split(m, i) != NULL)
            listen_unsteer(split(m, i));
}

static void steer(struct master *m, unsigned slots)
{
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL && listen_steer(split(m, i), slots) != 0) {
            log_warn("listen: the kernel does not steer connections to %u slots (%s): removed ones "
                     "are served on",
                     slots, strerror(errno));
            unsteer(m, i);
            m->steered = 0;
            return;
        }
    m->steered = slots;
    m->quiet_from_ms = clock_mono_ms() + listen_handshake_ms();
}

void reuseport_change(struct master *m)
{
    unsigned workers = master_conf(m)->workers, used = m->steered != 0 ? m->steered : m->slots,
             most = m->slots;
    if (used == workers && m->slots == workers)
        return;
    if (m->steered != used || workers < used)
        steer(m, workers < used ? workers : used);
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL && listen_hear(split(m, i)) != 0) {
            log_error("%s: %s: some workers have no socket of their own", m->listeners[i].url,
                      strerror(errno));
            listen_shrink(split(m, i), split(m, i)->listening);
        }
    m->slots = workers > most ? workers : most;
    score_set(m->scoreboard->listener_slots, m->slots);
}

void reuseport_restore(struct master *m)
{
    if (m->steered != 0)
        steer(m, m->steered);
    else
        unsteer(m, m->listeners_count);
}

/* every worker is of the newest generation and serves */
static bool is_settled(const struct master *m)
{
    for (size_t i = 0; i < m->child_slots_count; i++) {
        const struct child *c =
            m->child_slots[i].role == ROLE_WORKER ? m->child_slots[i].child : NULL;
        if (c != NULL && c->process.generation != m->generation->number)
            return false;
    }
    return children_ready(m, ROLE_WORKER);
}

static bool is_quiet(struct master *m, unsigned slots)
{
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL && !listen_quiet(split(m, i), slots))
            return false;
    return true;
}

static bool is_held(const struct master *m, unsigned slots)
{
    for (const struct child *c = m->children; c != NULL; c = c->next)
        if (score_get(c->score->slots) > slots)
            return true;
    return false;
}

static void close_removed(struct master *m, unsigned slots)
{
    bool told = score_get(m->scoreboard->listener_slots) == slots;
    if (!told && (clock_mono_ms() < m->quiet_from_ms || !is_quiet(m, slots)))
        return;
    score_set(m->scoreboard->listener_slots, slots);
    if (is_held(m, slots))
        return;
    for (size_t i = 0; i < m->listeners_count; i++)
        if (split(m, i) != NULL)
            listen_shrink(split(m, i), slots);
    log_info("listen: the sockets of slots %u to %u are closed", slots, m->slots - 1);
    m->slots = slots;
}

void reuseport_tick(struct master *m)
{
    unsigned workers = master_conf(m)->workers;
    if (m->steered == 0 || !is_settled(m))
        return;
    if (m->steered < workers)
        steer(m, workers);
    if (m->steered == workers && m->slots > workers)
        close_removed(m, workers);
}
