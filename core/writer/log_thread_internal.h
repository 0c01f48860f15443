/* What the files of the log thread share. The thread calls the functions. */
#ifndef ASSAY_WRITER_LOG_THREAD_INTERNAL_H
#define ASSAY_WRITER_LOG_THREAD_INTERNAL_H

#include "core/cluster/live_nodes.h"
#include "core/writer/log_thread.h"

#include "core/shm/scoreboard.h"

#include <pthread.h>

#define LOG_RETRY_MS 250 /* after a failure */
#define LOG_IDLE_MS 1000 /* NOTIFY wakes the thread earlier */
#define LOG_STOPPED_MS 3000

enum handover { NOTHING, OFFERED, TAKEN, APPLIED };
enum append_state { APPEND_NONE, APPEND_ASKED, APPEND_DONE, APPEND_FAILED };

struct log_thread {
    struct cluster_log *log;
    pthread_t id;
    int event_fd, wake_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool ending, ended;
    bool asked; /* for a confirmation of the head */
    struct log_view view;
    struct cluster_log_node node;
    struct log_place place;     /* of the store */
    char refusal[POSITION_WHY]; /* why the loop did not apply a batch; "": it did */
    enum store_status refused;
    enum handover handover;
    struct log_batch batch; /* the thread's until OFFERED and after APPLIED */
    enum append_state append;
    struct cluster_log_entry entry; /* its rows are the loop's */
    bool judges;                    /* the hash of this node waits for the comparison */
    uint64_t late_ms;               /* from then on, nodes without a hash do not count */
    int64_t keep_ms, away_ms;       /* away_ms 0: nothing is trimmed */
    int64_t counts_ms;              /* log_thread_counts */
    /* of the thread alone */
    uint64_t note_ms, busy_ms, trim_ms, judge_ms;
    struct live_watch watch;
    uint64_t differs_at;       /* this node was stopped at that entry; 0: it was not */
    uint64_t began_us;         /* when the call that reads the head began */
    bool answers;              /* that call is the requested confirmation */
    bool clock_differs;        /* the error log has a message about it */
    char reason[POSITION_WHY]; /* why the store does not fit the log; "": it does */
    char stopped[NODE_WHY];    /* the reason that the log has for this node; "": none */
};

/* log_tell(fd): makes it readable. log_heard(fd): makes it unreadable. Also called by the loop. */
void log_tell(int fd);
void log_heard(int fd);

/*
 * log_publish(t, state, why): publishes the state for the loop, and logs a new ${why}.
 * log_publish_away(t): publishes that the last call failed; the engine says why.
 * log_begin_call(t), log_confirm(t, head): before and after a call that reads the head: entries
 * that the log had before the call are up to ${head}.
 * log_rest(t, ms): waits until ${ms} have passed, or the loop requests an append, a confirmation or
 * the end. log_pause(t, ms): does not end for an append.
 *
 * log_read_head(t, note, out): reads the head; with ${note} by log_note.
 * log_note(t, out): registers the node and reads the head. t->reason is set if another server has
 * its id.
 * log_note_stopped(t, why, differs_at): publishes why this node applies nothing, once for each
 * reason.
 * log_look(t, last_format): log_look_at_nodes, and notifies the loop.
 */
bool log_is_ending(struct log_thread *t);
enum log_state log_state_of(struct log_thread *t);
void log_publish(struct log_thread *t, enum log_state state, const char *why);
void log_publish_away(struct log_thread *t);
void log_begin_call(struct log_thread *t);
void log_confirm(struct log_thread *t, const struct cluster_log_head *head);
void log_rest(struct log_thread *t, uint64_t ms);
void log_pause(struct log_thread *t, uint64_t ms);
enum cluster_log_status log_read_head(struct log_thread *t, bool note,
                                      struct cluster_log_head *out);
enum cluster_log_status log_note(struct log_thread *t, struct cluster_log_head *out);
enum cluster_log_status log_note_stopped(struct log_thread *t, const char *why,
                                         uint64_t differs_at);
enum cluster_log_status log_look(struct log_thread *t, uint32_t last_format);

/*
 * log_look_at_nodes(t, last_format, changed): reads the list of nodes into the view: how many are
 * live, and for a leader their formats and free space. ${last_format} is that of the last entry.
 * *changed: the view has changed.
 */
enum cluster_log_status log_look_at_nodes(struct log_thread *t, uint32_t last_format,
                                          bool *changed);

/*
 * log_follow(t), log_lead(t): the next step of a follower and of the leader. log_begin_lead(t): at
 * the head, leads if no other node does. log_end_lead(t): ends the lease, so that another node can
 * lead at once.
 */
enum cluster_log_status log_follow(struct log_thread *t);
enum cluster_log_status log_begin_lead(struct log_thread *t);
enum cluster_log_status log_lead(struct log_thread *t);
void log_end_lead(struct log_thread *t);

/*
 * log_judge(t, head): compares the hashes of nodes, once a second. log_say_stopped(t): sets
 * t->reason to the reason why this node is stopped.
 */
enum cluster_log_status log_judge(struct log_thread *t, const struct cluster_log_head *head);
void log_say_stopped(struct log_thread *t);

/*
 * log_compare_clocks(t, head, began_ms): after a call that began at ${began_ms} (wall clock) and
 * read ${head}: stores the offset of this node's clock, and warns if it is large.
 */
void log_compare_clocks(struct log_thread *t, const struct cluster_log_head *head,
                        int64_t began_ms);

/* log_trim(t, head): deletes entries that no node needs, once a minute. */
void log_trim(struct log_thread *t, const struct cluster_log_head *head);

#endif
