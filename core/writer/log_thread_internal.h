/* The log thread: what its files share. The functions are of the thread. */
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
    bool judges;                    /* the hash of this node is there, and not compared */
    uint64_t late_ms;               /* from then on without nodes that have no hash */
    int64_t keep_ms, away_ms;       /* away_ms 0: nothing is trimmed */
    int64_t counts_ms;              /* log_thread_counts */
    /* of the thread alone */
    uint64_t note_ms, busy_ms, trim_ms, judge_ms;
    struct live_watch watch;
    uint64_t differs_at;       /* this node was stopped at that entry; 0: it was not */
    uint64_t began_us;         /* when the call that reads the head began */
    bool answers;              /* that call answers who asked */
    bool clock_differs;        /* that is in the log of this node */
    char reason[POSITION_WHY]; /* why the store does not fit the log; "": it does */
    char stopped[NODE_WHY];    /* what the log has as the reason of this node; "": none */
};

/* log_tell(fd): make it readable. log_heard(fd): it no longer is. Also of the loop. */
void log_tell(int fd);
void log_heard(int fd);

/*
 * log_publish(t, state, why): for the loop, and another ${why} for the error log.
 * log_publish_away(t): the same state; the engine says why its last call failed.
 * log_begin_call(t), log_confirm(t, head): before and after a call that reads the head: what is in
 * the log before the call is up to ${head}.
 * log_rest(t, ms): until ${ms} pass, the loop asks for an append or a confirmation, or the end.
 * log_pause(t, ms): also while an append is asked for.
 *
 * log_read_head(t, note, out): with ${note} by log_note.
 * log_note(t, out): note the node, and read the head. t->reason: another server has its id.
 * log_note_stopped(t, why, differs_at): that this node applies nothing, once for each reason.
 * log_look(t, last_format): log_look_at_nodes, and tell the loop.
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
 * log_look_at_nodes(t, last_format, changed): how many nodes are live, and what a leader must know
 * of them; ${last_format}: of the last entry. *changed: the view says something else.
 */
enum cluster_log_status log_look_at_nodes(struct log_thread *t, uint32_t last_format,
                                          bool *changed);

/*
 * log_follow(t), log_lead(t): the next step of a follower, of the leader. log_begin_lead(t): at the
 * head: lead if nobody does. log_end_lead(t): so that another node need not wait for the end of the
 * lease.
 */
enum cluster_log_status log_follow(struct log_thread *t);
enum cluster_log_status log_begin_lead(struct log_thread *t);
enum cluster_log_status log_lead(struct log_thread *t);
void log_end_lead(struct log_thread *t);

/*
 * log_judge(t, head): once a second while hashes are compared. log_say_stopped(t): why this node is
 * stopped, as t->reason.
 */
enum cluster_log_status log_judge(struct log_thread *t, const struct cluster_log_head *head);
void log_say_stopped(struct log_thread *t);

/*
 * log_compare_clocks(t, head, began_ms): after a call that began at ${began_ms} (wall clock) and
 * read ${head}: note the offset of this node's clock, and warn if it is large.
 */
void log_compare_clocks(struct log_thread *t, const struct cluster_log_head *head,
                        int64_t began_ms);

/* log_trim(t, head): once a minute: delete what no node needs of the log. */
void log_trim(struct log_thread *t, const struct cluster_log_head *head);

#endif
