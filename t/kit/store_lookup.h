/*
 * For tests of look-ups and of the follower: a store with one agent, syncs, questions, and the
 * state of its answer file.
 */
#ifndef ASSAY_T_STORE_LOOKUP_KIT_H
#define ASSAY_T_STORE_LOOKUP_KIT_H

#include "t/kit/store.h"

#include "store/answers/path.h"
#include "store/records/answers_log.h"
#include "store/engine/snapshot.h"
#include "store/records/collection.h"
#include "store/records/document.h"
#include "store/records/item.h"
#include "store/records/agent.h"
#include "store/records/ulid_keys.h"

#define STEPS 1000 /* of a follower; more than any test needs */

extern struct kit kit;
extern uint64_t workspace;
extern struct ulid agent;
extern int64_t shop_price; /* of the packed rows */

/* begin(): a new store with an agent. end(): checks and closes the store. */
void begin(void);
void end(void);
struct ulid new_agent(void);

/* pack_page(rows, wp_id, title, text): adds a row to a batch; an empty text deletes. */
void pack_page(struct buf *rows, uint64_t wp_id, const char *title, const char *text);
void sync_rows(const struct ulid *to, struct buf *rows, const char *sync_id, bool complete);
void sync_one(uint64_t wp_id, const char *title, const char *text);
/*
 * sync_words(from, to, prefix): syncs pages of one word, ${prefix} and a number; "-" deletes them.
 */
void sync_words(uint64_t from, uint64_t to, const char *prefix);

/* follow(): runs a follower until it is idle. */
void follow(void);

struct looked {
    size_t count;
    uint64_t wp_ids[STORE_HITS_MAX];
    char excerpt[512], title[64];
    double share;
    uint32_t lost;
    enum store_status status;
};

/* look(of, question): at most four hits, in one snapshot. look_with: with a stop function. */
struct looked look(const struct ulid *of, const char *question);
struct looked look_with(const struct ulid *of, const char *question, store_stop_fn *stop);
/* expect_words(from, to, prefix, count): each of these words must have ${count} hits. */
void expect_words(uint64_t from, uint64_t to, const char *prefix, size_t count);

/*
 * state(): state of the agent's answer file. unindexed(): changes in the log. files(): number of
 * files in the directory.
 */
struct store_answers state(void);
uint64_t unindexed(void);
void file_path(char path[ANSWERS_PATH_BYTES]);
size_t files(void);

#endif
