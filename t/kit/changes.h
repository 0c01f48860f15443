/*
 * Clients that create, update and delete reports while a test kills servers, and know what was
 * acknowledged: at the end every acknowledged change is stored, and each was applied once.
 */
#ifndef ASSAY_T_CHANGES_KIT_H
#define ASSAY_T_CHANGES_KIT_H

#include "t/kit/harness.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CHANGES_CLIENTS = 6 };

/*
 * One request of a client to a server that may be away: status 0 when there is no response. The
 * server has what was answered to this client before.
 */
typedef struct response *changes_ask_fn(void *arg, unsigned client, const struct call *call);

struct changes_client;

struct changes {
    const struct origin *origin; /* origin_usual */
    changes_ask_fn *ask;
    void *arg;
    /*
     * A request without an answer may be executed long after another one was sent in its place: a
     * server that was stopped goes on.
     */
    bool late;
    unsigned pause_ms; /* of a client between two requests */
    /* filled in by changes_start */
    struct changes_client *clients;
    atomic_bool ends;
    atomic_uint acknowledged;
};

/*
 * changes_start(c, random): starts the clients. changes_end: stops them, and prints how much they
 * did after ${what}; no answer may be wrong.
 */
void changes_start(struct changes *c, uint64_t random);
void changes_end(struct changes *c, const char *what);

/*
 * changes_let_work(c, random): between two faults: waits for up to 60 answers, or 1.5 s.
 * changes_expect(c, s): ${s} has every acknowledged change, and each once.
 */
void changes_let_work(struct changes *c, uint64_t *random);
void changes_expect(const struct changes *c, const struct server *s);

/*
 * changes_expect_graded(s): waits until no report is pending, as long as ${s} grades reports.
 * changes_random(state): the next number. changes_setting(name, otherwise): a number of the
 * environment.
 */
void changes_expect_graded(const struct server *s);
uint64_t changes_random(uint64_t *state);
unsigned changes_setting(const char *name, unsigned otherwise);

#endif
