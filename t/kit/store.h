/*
 * For tests of the store: a private directory, changes in one line, and readers that return what a
 * callback got. Every function takes the time as an argument; the tests' clock starts at NOW.
 */
#ifndef ASSAY_T_STORE_KIT_H
#define ASSAY_T_STORE_KIT_H

#include "store/store.h"

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
};

/*
 * Of the stores that kit_store opens: the most rows of a segment and of a chunk (a power of two),
 * the length of a log that is merged, the rows from which there are segments; 0: as usual, but for
 * ${kit_small_rows}, which is 1 where ${kit_segment_rows} is set.
 */
extern uint32_t kit_segment_rows, kit_chunk_shift, kit_log_entries, kit_small_rows;
extern unsigned kit_good, kit_decent; /* the bounds of results; both 0: none */

/* A directory of its own, removed by kit_close with all that is in it. */
void kit_dir(char dir[64]);
void kit_remove(const char *dir);
struct store *kit_store(const char *dir, enum store_mode mode, uint64_t map_size);
void kit_open(struct kit *k);
void kit_reopen(struct kit *k);
void kit_close(struct kit *k);

/* One change in one transaction. */
struct store_answer kit_apply(struct kit *k, const struct store_change *c);
enum store_status kit_status(struct kit *k, const struct store_change *c);

uint64_t kit_workspace(struct kit *k, const char *name);
uint64_t kit_key(struct kit *k, uint64_t workspace, uint8_t seed);
struct store_change kit_create_change(uint64_t workspace, const char *url, const char *project);
uint64_t kit_create(struct kit *k, uint64_t workspace, const char *url, const char *project);
struct store_change kit_done_change(uint64_t id, uint32_t attempt, int score);
struct store_change kit_failed_change(uint64_t id, uint32_t attempt);
void kit_done(struct kit *k, uint64_t id, uint32_t attempt, int score);
enum report_result kit_result(int score);

/* Readers: the status, and a copy of the record whose texts stay borrowed until store_read_end. */
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

/*
 * kit_stop(stop): a query's pause. It counts how often it is asked, and says true from the ${at}-th
 * time on; 0: never.
 */
struct kit_stop {
    unsigned asked, at;
};
bool kit_stop(void *stop);

/*
 * Purge and maintain until nothing is left, ${limit} records a change; how many changes.
 * kit_maintain(k, limit, most): up to ${most} steps of maintenance, with a maintenance of its own.
 */
unsigned kit_purge(struct kit *k, uint64_t limit);
unsigned kit_maintain(struct kit *k, uint64_t limit, unsigned most);

/* Step a new follower of answer files up to ${most} times, until it is idle; how many steps. */
unsigned kit_follow(struct kit *k, unsigned most);

/* store_check must find nothing wrong. */
void kit_check_clean(struct store *s);
/* how many problems store_check finds; the last one's sentence is kept in kit_problem */
size_t kit_problems(struct store *s);
extern char kit_problem[512];

/*
 * Check's own assertions write to a file that its children share, so a child that may be killed, or
 * runs beside others, must not use them: after kit_child these end it with a sentence on standard
 * error instead.
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

/* Thirty-odd bits that follow from ${seed}, which moves on. */
uint64_t kit_random(uint64_t *seed);

/*
 * kit_kill(k, rounds, seed, run, look, progress): Close the store of ${k}; then, ${rounds} times:
 * ${run} it in a child of its own, let it come on by one at *progress, which is shared and grows
 * with each commit, kill it with SIGKILL a random time later, and have a ${look} at what is there.
 */
void kit_kill(struct kit *k, int rounds, uint64_t seed, void (*run)(const char *dir, uint64_t seed),
              void (*look)(const char *dir), const volatile uint64_t *progress);

/* ${size} bytes of zeros that children share. */
void *kit_shared(size_t size);

#endif
