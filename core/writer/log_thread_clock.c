/* The log thread: compares the clock of this node with that of the log. */
#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CALL_MS 1000 /* a slower one tells nothing */

static void say_difference(long long offset_ms)
{
    log_warn("the cluster: the clock of this node is %lld ms %s that of PostgreSQL: set both by "
             "NTP, for example with chrony",
             llabs(offset_ms), offset_ms > 0 ? "ahead of" : "behind");
}

void log_compare_clocks(struct log_thread *t, const struct cluster_log_head *head, int64_t began_ms)
{
    const int64_t now_ms = clock_wall_ms(), offset_ms = (began_ms + now_ms) / 2 - head->clock_ms;
    if (now_ms < began_ms || now_ms > began_ms + CALL_MS)
        return;
    pthread_mutex_lock(&t->lock);
    t->view.clock_offset_ms = offset_ms;
    pthread_mutex_unlock(&t->lock);
    const bool differs = llabs(offset_ms) > CLUSTER_CLOCK_MS;
    if (differs && !t->clock_differs)
        say_difference(offset_ms);
    else if (!differs && t->clock_differs)
        log_info("the cluster: the clock of this node is that of PostgreSQL again");
    t->clock_differs = differs;
}
