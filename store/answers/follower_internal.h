/*
 * Shared by the files of the follower: turns (follower.c), open files, documents, checks of all
 * files (sweep) and of one file (verify), what a step came to (outcome).
 */
#ifndef ASSAY_STORE_ANSWERS_FOLLOWER_INTERNAL_H
#define ASSAY_STORE_ANSWERS_FOLLOWER_INTERNAL_H

#include "store/answers/answers.h"
#include "store/answers/follower.h"
#include "store/answers/path.h"
#include "store/engine/environment.h"

#include <time.h>

#define FAILING_MAX 256 /* agents that wait after a failure */

struct open_writer {
    struct answers_name name;
    struct answers_writer *writer; /* NULL: the place is free */
    uint64_t used;
};

struct follower {
    struct store *s;
    follower_note_fn *note;
    follower_wanted_fn *wanted;
    void *arg;
    bool swept_files, swept_records;
    struct ulid swept;  /* the last agent whose record was checked */
    struct ulid verify; /* the last agent whose file was verified */
    unsigned verify_tries;
    struct failing {
        struct ulid agent;
        uint64_t until_ms;
    } failing[FAILING_MAX];
    uint8_t store_id[STORE_ID_BYTES];
    struct ulid turn; /* the agent of the last step */
    struct open_writer files[FOLLOWER_FILES];
    uint64_t clock;
    char why[1200];
};

/* One step, for one agent. */
struct step {
    struct follower *f;
    struct answers_name name;
    struct store_answers state;
    struct answers_writer *writer;
    bool lost; /* the file is missing or damaged */
    MDB_txn *txn;
    struct str language; /* of documents without one */
    char language_bytes[ANSWERS_LANGUAGE_MAX];
    unsigned documents;
    uint64_t until_ms;
};

/* Each keeps a sentence for follower_why and returns ${status}. */
enum store_status follower_fail(struct follower *f, enum store_status status, const char *path,
                                const char *why);
enum store_status follower_fail_store(struct follower *f, enum store_status status);
enum store_status follower_fail_file(struct step *p, enum store_status status);

/* answers_is_lost(status): the file itself is wrong, not the system. */
bool answers_is_lost(enum store_status status);

/* follower_note(p, what, number): send a CHANGE_ANSWERS about the step's file, and wait for it. */
enum store_status follower_note(struct step *p, uint32_t what, uint64_t number);

/*
 * follower_open(p): open the step's file as p->writer. follower_close(f, agent): close the agent's
 * file. follower_close_writer(o): close an open file. follower_delete_file(p): of a deleted agent.
 * follower_unlink_serving(p): delete the older file, that answered while this one was built.
 */
enum store_status follower_open(struct step *p);
void follower_close(struct follower *f, const struct ulid *agent);
void follower_close_writer(struct open_writer *o);
enum store_status follower_delete_file(struct step *p);
void follower_unlink_serving(struct step *p);

/* follower_clock_ms(): a monotonic clock. */
static inline uint64_t follower_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * follower_build(p): put some more documents into a file that is not complete.
 * follower_catch_up(p): apply changes of the log to a complete file, or note it as lost.
 * follower_fits(p): is the file complete, and its position in the log?
 */
enum store_status follower_build(struct step *p);
enum store_status follower_catch_up(struct step *p);
bool follower_fits(struct step *p);

/*
 * follower_sweep: check the files, once. follower_sweep_records: check a batch of records.
 */
enum store_status follower_sweep(struct follower *f);
enum store_status follower_sweep_records(struct follower *f);

#endif
