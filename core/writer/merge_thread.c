#include "core/writer/merge_thread.h"

#include "core/base/log.h"
#include "core/shm/scoreboard.h"
#include "store/maintenance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 19
#define LATER_MS 1000   /* readers may still use a file */
#define RETRY_MS 10000  /* after a failure */
#define LOGGED_MS 60000 /* between two lines of the log about failures */

struct merge_thread {
    struct background_thread thread;
    struct maintenance *maintenance;
    uint64_t retry_at_ms, logged_ms;
};

static struct store_answer apply_change(void *arg, const struct store_change *change)
{
    struct merge_thread *m = arg;
    const unsigned long long workspace = change->workspace;
    if (change->kind == CHANGE_INDEX_LOST && change->id != 0)
        log_warn("index/%016llx-%016llx.seg is missing or damaged: rebuilding the index of reports "
                 "of workspace %llu",
                 workspace, (unsigned long long)change->id, workspace);
    else if (change->kind == CHANGE_INDEX_LOST)
        log_warn("the index of reports of workspace %llu contradicts its reports: rebuilding it",
                 workspace);
    struct store_answer answer = background_thread_apply(&m->thread, change);
    if (change->kind == CHANGE_INDEX_INSTALL && answer.status == STORE_OK && answer.id != 0)
        log_info("rebuilt the index of reports of workspace %llu: %llu reports", workspace,
                 (unsigned long long)answer.id);
    return answer;
}

static bool is_ending(void *arg)
{
    struct merge_thread *m = arg;
    return background_thread_is_ending(&m->thread);
}

static bool is_retry_due(struct merge_thread *m)
{
    uint64_t now = clock_mono_ms();
    if (now < m->retry_at_ms)
        return false;
    m->retry_at_ms = now + RETRY_MS;
    return true;
}

static uint64_t until_retry_ms(const struct merge_thread *m)
{
    uint64_t now = clock_mono_ms();
    return now < m->retry_at_ms ? m->retry_at_ms - now : 0;
}

static void log_failure(struct merge_thread *m)
{
    uint64_t now = clock_mono_ms();
    if (is_ending(m) || (m->logged_ms != 0 && now - m->logged_ms < LOGGED_MS))
        return;
    m->logged_ms = now;
    log_error("store maintenance failed, retrying every 10 s: %s", maintenance_why(m->maintenance));
}

static void work(void *arg)
{
    struct merge_thread *m = arg;
    background_thread_configure("merge", NICE);
    while (!is_ending(m)) {
        switch (maintenance_step(m->maintenance, is_retry_due(m))) {
        case MAINTENANCE_MORE:
            break;
        case MAINTENANCE_IDLE:
            background_thread_wait(&m->thread, UINT64_MAX);
            break;
        case MAINTENANCE_LATER:
            background_thread_wait(&m->thread, LATER_MS);
            break;
        case MAINTENANCE_FAILED:
            log_failure(m);
            background_thread_wait(&m->thread, until_retry_ms(m));
            break;
        }
    }
}

struct background_thread *merge_thread_base(struct merge_thread *m)
{
    return &m->thread;
}

void merge_thread_progress(struct merge_thread *m, struct store_maintenance_status *out)
{
    maintenance_progress(m->maintenance, out);
}

struct merge_thread *merge_thread_new(struct store *store)
{
    static const char what[] = "the merge thread";
    struct merge_thread *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        log_error("%s cannot start: %s", what, strerror(errno));
        return NULL;
    }
    if (background_thread_open(&m->thread, store, what) &&
        (m->maintenance = maintenance_new(m->thread.store, apply_change, is_ending, m)) != NULL &&
        background_thread_start(&m->thread, what, work, m))
        return m;
    merge_thread_free(m);
    return NULL;
}

bool merge_thread_end(struct merge_thread *m)
{
    return background_thread_end(&m->thread);
}

void merge_thread_free(struct merge_thread *m)
{
    if (m == NULL)
        return;
    maintenance_free(m->maintenance);
    background_thread_free(&m->thread);
    free(m);
}
