#include "core/maintainer.h"

#include "core/log.h"
#include "core/scoreboard.h"
#include "store/maintenance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 19
#define LATER_MS 1000   /* until readers may be gone that need a file */
#define RETRY_MS 10000  /* until what failed is tried again */
#define LOGGED_MS 60000 /* between two lines of the log about failures */

struct maintainer {
    struct writer_thread thread;
    struct maintenance *maintenance;
    uint64_t retry_at_ms, logged_ms;
};

static struct store_answer carry_out(void *arg, const struct store_change *change)
{
    struct maintainer *m = arg;
    const unsigned long long workspace = change->workspace;
    if (change->kind == CHANGE_INDEX_LOST && change->id != 0)
        log_warn("index/%016llx-%016llx.seg is missing or damaged: rebuilding the index of reports "
                 "of workspace %llu",
                 workspace, (unsigned long long)change->id, workspace);
    else if (change->kind == CHANGE_INDEX_LOST)
        log_warn("the index of reports of workspace %llu contradicts its reports: rebuilding it",
                 workspace);
    struct store_answer answer = writer_thread_carry(&m->thread, change);
    if (change->kind == CHANGE_INDEX_INSTALL && answer.status == STORE_OK && answer.id != 0)
        log_info("rebuilt the index of reports of workspace %llu: %llu reports", workspace,
                 (unsigned long long)answer.id);
    return answer;
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

static uint64_t until_retry_ms(const struct maintainer *m)
{
    uint64_t now = clock_mono_ms();
    return now < m->retry_at_ms ? m->retry_at_ms - now : 0;
}

static void log_failure(struct maintainer *m)
{
    uint64_t now = clock_mono_ms();
    if (ends(m) || (m->logged_ms != 0 && now - m->logged_ms < LOGGED_MS))
        return;
    m->logged_ms = now;
    log_error("maintenance of the store failed, it is tried again every 10 s: %s",
              maintenance_why(m->maintenance));
}

static void work(void *arg)
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
            writer_thread_wait(&m->thread, until_retry_ms(m));
            break;
        }
    }
}

struct writer_thread *maintainer_thread(struct maintainer *m)
{
    return &m->thread;
}

void maintainer_progress(struct maintainer *m, struct store_maintenance_status *out)
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

bool maintainer_end(struct maintainer *m)
{
    return writer_thread_end(&m->thread);
}

void maintainer_free(struct maintainer *m)
{
    if (m == NULL)
        return;
    maintenance_free(m->maintenance);
    writer_thread_free(&m->thread);
    free(m);
}
