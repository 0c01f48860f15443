#include "core/master/reuseport.h"

#include "core/base/log.h"

#include <errno.h>
#include <string.h>

/* the i-th listener with a socket for each slot; NULL: it is shared */
static struct listener *split(const struct reuseport *r, size_t i)
{
    return r->listeners->list[i].shared ? NULL : &r->listeners->list[i];
}

int reuseport_bind(struct reuseport *r, unsigned workers)
{
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL && listener_add_slots(split(r, i), workers) != 0)
            return -1;
    return 0;
}

void reuseport_unbind(struct reuseport *r)
{
    int error = errno;
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL)
            listener_remove_slots(split(r, i), split(r, i)->listening);
    errno = error;
}

static void unsteer(struct reuseport *r, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (split(r, i) != NULL)
            listener_unsteer(split(r, i));
}

static void steer(struct reuseport *r, unsigned slots)
{
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL && listener_steer(split(r, i), slots) != 0) {
            log_warn("listen: the kernel cannot steer connections to %u slots (%s): removed slots "
                     "stay open",
                     slots, strerror(errno));
            unsteer(r, i);
            r->steered = 0;
            return;
        }
    r->steered = slots;
    r->quiet_from_ms = clock_mono_ms() + listeners_handshake_ms();
}

void reuseport_change(struct reuseport *r, unsigned workers)
{
    unsigned used = r->steered != 0 ? r->steered : r->slots;
    if (used == workers && r->slots == workers)
        return;
    if (r->steered != used || workers < used)
        steer(r, workers < used ? workers : used);
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL && listener_listen(split(r, i)) != 0) {
            log_error("%s: %s: some workers have no socket of their own", r->listeners->list[i].url,
                      strerror(errno));
            listener_remove_slots(split(r, i), split(r, i)->listening);
        }
    r->slots = workers > r->slots ? workers : r->slots;
    score_set(r->scoreboard->listener_slots, r->slots);
}

void reuseport_take_over(struct reuseport *r, unsigned slots, unsigned steered)
{
    r->slots = slots;
    r->steered = steered;
    r->quiet_from_ms = clock_mono_ms() + listeners_handshake_ms();
}

void reuseport_restore(struct reuseport *r)
{
    if (r->steered != 0)
        steer(r, r->steered);
    else
        unsteer(r, r->listeners->count);
}

static bool is_idle(const struct reuseport *r, unsigned from)
{
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL && !listener_is_idle(split(r, i), from))
            return false;
    return true;
}

/* first the workers close their copies, once they see listener_slots; then the master */
static void close_removed(struct reuseport *r, unsigned slots, unsigned used)
{
    bool published = score_get(r->scoreboard->listener_slots) == slots;
    if (!published && (clock_mono_ms() < r->quiet_from_ms || !is_idle(r, slots)))
        return;
    score_set(r->scoreboard->listener_slots, slots);
    if (used > slots)
        return;
    for (size_t i = 0; i < r->listeners->count; i++)
        if (split(r, i) != NULL)
            listener_remove_slots(split(r, i), slots);
    log_info("listen: the sockets of slots %u to %u are closed", slots, r->slots - 1);
    r->slots = slots;
}

bool reuseport_is_changing(const struct reuseport *r)
{
    return r->steered != 0;
}

void reuseport_tick(struct reuseport *r, unsigned workers, unsigned used)
{
    if (r->steered < workers)
        steer(r, workers);
    if (r->steered == workers && r->slots > workers)
        close_removed(r, workers, used);
}
