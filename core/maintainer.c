#include "maintainer.h"

#include "log.h"
#include "scoreboard.h"
#include "../store/maintenance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 19
#define LATER_MS 1000  /* until readers may be gone that need a file */
#define RETRY_MS 60000 /* until what failed is tried again */

struct maintainer {
    struct writer_thread thread;
    struct maintenance *maintenance;
    uint64_t retry_at_ms, logged_ms;
};

static struct store_answer carry_out(void *arg, const struct store_change *change)
{
    struct maintainer *m = arg;
    if (change->kind == CHANGE_INDEX_LOST)
        log_warn("rebuilding the index of reports of workspace %llu: a segment is missing or "
                 "damaged",
                 (unsigned long long)change->workspace);
    return writer_thread_carry(&m->thread, change);
}

static bool ends(void *arg)
{
    struct maintainer *m = arg;
    return writer_thread_ends(&m->thread);
}

/* Time for what failed to be tried again? */
static bool is_retry_due(struct maintainer *m)
{
    uint64_t now = clock_mono_ms();
    if (now < m->retry_at_ms)
        return false;
    m->retry_at_ms = now + RETRY_MS;
    return true;
}

static void log_failure(struct maintainer *m)
{
    uint64_t now = clock_mono_ms();
    if (ends(m) || (m->logged_ms != 0 && now - m->logged_ms < RETRY_MS))
        return;
    m->logged_ms = now;
    log_error("maintenance of the store failed, it is tried again every minute: %s",
              maintenance_why(m->maintenance));
}

static void *work(void *arg)
{
    struct maintainer *m = arg;
    writer_thread_name("maintainer", NICE);
    while (!ends(m)) {
        switch (maintenance_step(m->maintenance, is_retry_due(m))) {
        case MAINTENANCE_MORE:
            break;
        case MAINTENANCE_IDLE:
            writer_thread_wait(&m->thread, UINT64_MAX);
            break;
        case MAINTENANCE_LATER:
            writer_thread_wait(&m->thread, LATER_MS);
            break;
        case MAINTENANCE_FAILED:
            log_failure(m);
            writer_thread_wait(&m->thread, RETRY_MS);
            break;
        }
    }
    return NULL;
}

struct writer_thread *maintainer_thread(struct maintainer *m)
{
    return &m->thread;
}

void maintainer_progress(struct maintainer *m, struct store_upkeep *out)
{
    maintenance_progress(m->maintenance, out);
}

struct maintainer *maintainer_new(struct store *store)
{
    static const char what[] = "the maintainer";
    struct maintainer *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        log_error("%s cannot start: %s", what, strerror(errno));
        return NULL;
    }
    if (writer_thread_open(&m->thread, store, what) &&
        (m->maintenance = maintenance_new(m->thread.store, carry_out, ends, m)) != NULL &&
        writer_thread_start(&m->thread, what, work, m))
        return m;
    maintainer_free(m);
    return NULL;
}

void maintainer_free(struct maintainer *m)
{
    if (m == NULL)
        return;
    writer_thread_end(&m->thread);
    maintenance_free(m->maintenance);
    writer_thread_free(&m->thread);
    free(m);
}
