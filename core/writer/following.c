#include "core/writer/following.h"

#include "core/base/log.h"
#include "store/rows.h"

#include <sys/epoll.h>
#include <unistd.h>

#define NOTE_MS 1000
#define LOOK_MS 100 /* interval for confirmations, which do not signal the loop */

bool following_watch(struct following *f, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &f->told};
    struct log_thread *thread = f->leading->thread;
    return thread == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, log_thread_fd(thread), &event) == 0;
}

/* ---- entries ---- */

static enum store_status apply_entries(struct store_txn *t, const struct log_batch *b)
{
    enum store_status status = STORE_OK;
    for (size_t i = 0; i < b->count && status == STORE_OK; i++)
        status = store_rows_apply(t, log_batch_rows(b, i));
    if (status == STORE_OK)
        store_position_set(t, log_batch_end(b));
    store_mark_in_log(t);
    return status;
}

static enum store_status apply(struct following *f, const struct log_batch *b)
{
    struct store_txn *t;
    struct cluster_score *score = &f->process->scoreboard->cluster;
    enum store_status status = store_begin(f->store, &t);
    if (status != STORE_OK)
        return status;
    status = apply_entries(t, b);
    cluster_score_begin(score, log_batch_end(b)->sequence);
    if (status == STORE_OK)
        status = store_commit(t);
    else
        store_abort(t);
    if (status != STORE_OK)
        cluster_score_begin(score, f->leading->position.sequence);
    return status;
}

/* If the last entry has no rows, all nodes hash their store after it. */
static bool asks_for_hash(const struct log_batch *b)
{
    return store_rows_are_none(log_batch_rows(b, b->count - 1));
}

/* Applies all entries or none: a follower never skips an entry. */
static void take_entries(struct following *f)
{
    char why[POSITION_WHY] = "";
    struct leading *l = f->leading;
    const struct log_batch *b = log_thread_take(l->thread);
    if (b == NULL)
        return;
    score_set(f->process->score->busy_since_ms, clock_mono_ms());
    enum store_status status = apply(f, b);
    if (status == STORE_OK) {
        l->position = *log_batch_end(b);
        sequences_show(f->sequences);
        if (asks_for_hash(b))
            verifier_start(f->verifier, l->thread, &l->position);
        change_feed_notify(f->change_feed);
        clients_flush(f->clients);
        change_feed_follow(f->change_feed, NULL, 0);
        score_add(f->process->score->batches, 1);
    } else {
        snprintf(why, sizeof(why), "entry %llu of the log cannot be applied: %s: %s",
                 (unsigned long long)b->entries[0].position.sequence, store_status_text(status),
                 store_why(f->store));
    }
    log_thread_applied(l->thread, status, why);
}

/* ---- the lead ---- */

static void lost(void)
{
    log_warn("the cluster: this node lost the lead: restarting the writer as a follower");
    _exit(EXIT_RETRY);
}

/* Publishes the free space: the leader refuses creates if a node has no space for them. */
static void note_space(struct following *f)
{
    struct store_space space;
    const uint64_t now = clock_mono_ms();
    if (now < f->noted_ms + NOTE_MS)
        return;
    f->noted_ms = now;
    if (store_space(f->store, &space) == STORE_OK)
        log_thread_note(f->leading->thread, space.growth_bytes);
    store_read_end(f->store);
}

/* Other nodes must be able to apply what this one executes. */
static void refuse_growth(struct following *f)
{
    const char *full = f->view.full_node;
    if (strcmp(f->full_node, full) == 0)
        return;
    if (full[0] != '\0')
        log_warn("the cluster: creates are refused: node %s has no space left", full);
    else
        log_info("the cluster: every node has space again");
    snprintf(f->full_node, sizeof(f->full_node), "%s", full);
    store_refuse_growth(f->store, full[0] != '\0');
}

/* All live nodes must be able to read what this one appends. */
static void choose_format(struct following *f)
{
    struct leading *l = f->leading;
    const uint32_t format = f->view.format;
    if (f->view.state != LOG_LEADS || format == l->format)
        return;
    if (l->format != 0)
        log_info("the cluster: entries have format %u from now on: all live nodes read it", format);
    l->format = format;
}

/* An operator requested a verification. */
static void mark(struct following *f)
{
    struct leading *l = f->leading;
    if (!l->leads || !f->view.head.verify)
        return;
    f->view.head.verify = false;
    if (!leading_mark(l))
        return;
    verifier_start(f->verifier, l->thread, &l->position);
    leading_show(l, NULL);
}

static void note_leader(struct following *f)
{
    struct leading *l = f->leading;
    const struct cluster_log_head *head = &f->view.head;
    bool known = f->view.state == LOG_FOLLOWS && head->lease_ms > 0 &&
                 memcmp(head->leader, l->node, sizeof(l->node)) != 0;
    snprintf(l->leader, sizeof(l->leader), "%s", known ? head->leader_address : "");
}

bool following_step(struct following *f)
{
    struct leading *l = f->leading;
    if (l->thread == NULL)
        return false;
    note_space(f);
    if (!f->told && clock_mono_ms() < f->looked_ms + LOOK_MS)
        return false;
    f->told = false;
    f->looked_ms = clock_mono_ms();
    log_thread_look(l->thread, &f->view);
    note_leader(f);
    refuse_growth(f);
    choose_format(f);
    leading_show(l, &f->view);
    take_entries(f);
    if (f->view.state == LOG_LOST)
        lost();
    mark(f);
    if (l->leads || f->view.state != LOG_LEADS)
        return false;
    leading_begin(l, &f->view);
    log_info("the cluster: this node leads, epoch %llu, from entry %llu on",
             (unsigned long long)f->view.epoch, (unsigned long long)l->position.sequence);
    return true;
}
