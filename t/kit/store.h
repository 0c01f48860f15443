/*
 * For tests of the store: a private directory, changes in one line, and readers that return what a
 * callback got. Every function takes the time as an argument; the tests' clock starts at NOW.
 */
#ifndef ASSAY_T_STORE_KIT_H
#define ASSAY_T_STORE_KIT_H

#include "store/backup.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW ((int64_t)1777986000000)
#define HOUR ((int64_t)3600000)
#define MAP_BYTES ((uint64_t)256 << 20)

struct kit {
    char dir[64];
    struct store *s;
    int64_t now;
    struct store_txn *batch; /* of kit_batch_begin; NULL: none is open */
};

/*
 * Options of the stores that kit_store opens: maximum rows of a segment and of an n-gram block (a
 * power of two), length of a tail that is merged, minimum rows of a segment. 0: the default, but
 * ${kit_small_rows} is 1 when ${kit_segment_rows} is set.
 */
extern uint32_t kit_segment_rows, kit_ngram_block_shift, kit_log_entries, kit_small_rows;
extern unsigned kit_good, kit_decent; /* bounds of results; both 0: none */

/* A private directory; kit_close removes it with its files. */
void kit_dir(char dir[64]);
void kit_remove(const char *dir);
struct store *kit_store(const char *dir, enum store_mode mode, uint64_t map_size);
void kit_open(struct kit *k);
void kit_reopen(struct kit *k);
void kit_close(struct kit *k);

/*
 * One change, in a transaction of its own or in the open batch. kit_batch_begin, kit_batch_end:
 * later changes are one transaction. ${kit_committing} is called before each commit, and
 * ${kit_committed} after it; NULL: nothing is. ${kit_collects}: the stores that kit_store opens
 * collect row sets.
 */
extern void (*kit_committing)(struct kit *k, struct store_txn *t);
extern void (*kit_committed)(struct kit *k);
extern bool kit_collects;
extern unsigned kit_carried_out[CHANGE_KINDS]; /* changes with STORE_OK, by kind */
void kit_batch_begin(struct kit *k);
void kit_batch_end(struct kit *k);
struct store_answer kit_apply(struct kit *k, const struct store_change *c);
enum store_status kit_status(struct kit *k, const struct store_change *c);

uint64_t kit_workspace(struct kit *k, const char *name);
uint64_t kit_key(struct kit *k, uint64_t workspace, uint8_t seed);
/* kit_agent(k, workspace, data): the id of a new published agent with that data. */
struct ulid kit_agent(struct kit *k, uint64_t workspace, const char *data);
struct store_change kit_create_change(uint64_t workspace, const char *url, const char *project);
uint64_t kit_create(struct kit *k, uint64_t workspace, const char *url, const char *project);
struct store_change kit_update_change(uint64_t workspace, uint64_t id, uint32_t fields);
struct store_change kit_done_change(uint64_t id, uint32_t attempt, int score);
struct store_change kit_failed_change(uint64_t id, uint32_t attempt);
void kit_done(struct kit *k, uint64_t id, uint32_t attempt, int score);
/* kit_regrade(k, workspace, id, attempt, score): CHANGE_REGENERATE, then kit_done. */
void kit_regrade(struct kit *k, uint64_t workspace, uint64_t id, uint32_t attempt, int score);
enum report_result kit_result(int score);

/* Readers: the status, and a copy of the record. Its texts are valid until store_read_end. */
enum store_status kit_report(struct store *s, uint64_t workspace, uint64_t id,
                             struct store_report *out);
enum store_status kit_project(struct store *s, uint64_t workspace, const char *name,
                              struct store_project *out);
enum store_status kit_find_key(struct store *s, uint8_t seed, struct store_key *out);
enum store_status kit_get_workspace(struct store *s, uint64_t id, struct store_workspace *out);

struct kit_list {
    int calls;
    enum store_status status;
    uint64_t total;
    size_t count;
    const struct store_report *reports;
    const struct store_project *projects;
};
struct kit_list kit_reports(struct store *s, const struct store_list_query *q);
struct kit_list kit_projects(struct store *s, const struct store_list_query *q);
size_t kit_jobs(struct store *s);

/* Gradings of a report, newest first; their texts are valid until store_read_end. */
struct kit_gradings {
    int calls;
    enum store_status status;
    size_t count;
    struct store_grading items[STORE_GRADINGS_MAX];
};
struct kit_gradings kit_gradings(struct store *s, uint64_t workspace, uint64_t report,
                                 uint32_t before, unsigned limit);

/*
 * kit_stop(stop): a query's pause function. Counts its calls, and returns true from call ${at} on;
 * 0: never.
 */
struct kit_stop {
    unsigned asked, at;
};
bool kit_stop(void *stop);

/*
 * kit_purge: purges and maintains until nothing is left, ${limit} records a change; the number of
 * changes. kit_maintain(k, limit, most): up to ${most} steps of a new maintenance.
 */
unsigned kit_purge(struct kit *k, uint64_t limit);
unsigned kit_maintain(struct kit *k, uint64_t limit, unsigned most);

/*
 * Steps a new follower of answer files until it is idle, at most ${most} times; the number of
 * steps.
 */
unsigned kit_follow(struct kit *k, unsigned most);

/* Fails when store_check finds a mistake. */
void kit_check_clean(struct store *s);
/* The number of mistakes that store_check finds; kit_problem is the last one's sentence. */
size_t kit_problems(struct store *s);
extern char kit_problem[512];

/*
 * Check's own assertions write to a file that its child processes share. A child that may be
 * killed, or runs beside others, must not use them: after kit_child the assertions below end it
 * with a sentence on standard error.
 */
void kit_child(void);
_Noreturn void kit_fail(const char *file, int line, const char *what, const char *got);
#define kit_assert(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            kit_fail(__FILE__, __LINE__, #condition, "false");                                     \
    } while (0)
#define ck_status(got, want)                                                                       \
    do {                                                                                           \
        enum store_status ck_got = (enum store_status)(got);                                       \
        if (ck_got != (want))                                                                      \
            kit_fail(__FILE__, __LINE__, #got " must be " #want, store_status_text(ck_got));       \
    } while (0)

int kit_run(Suite *suite);

/* A pseudo-random number of 31 bits; updates ${seed}. */
uint64_t kit_random(uint64_t *seed);

/*
 * kit_kill(k, rounds, seed, run, look, progress): closes the store of ${k}. Then, ${rounds} times:
 * starts ${run} in a child, waits for its first commit (*progress, shared, grows with each), kills
 * it with SIGKILL after a random time, and calls ${look}.
 */
void kit_kill(struct kit *k, int rounds, uint64_t seed, void (*run)(const char *dir, uint64_t seed),
              void (*look)(const char *dir), const volatile uint64_t *progress);

/* ${size} bytes of zeros that child processes share. */
void *kit_shared(size_t size);

#endif
