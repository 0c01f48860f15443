#include "store/answers/follower_internal.h"

#include "store/answers/follower.h"
#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/format.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/ulid_keys.h"

#include <stdlib.h>

#define FAILING_MS 1000                 /* after a failure */
#define STEP_BYTES ((uint64_t)16 << 20) /* disk space that a step may use */

struct follower *follower_new(struct store *s, follower_note_fn *note, follower_wanted_fn *wanted,
                              void *arg)
{
    struct follower *f = calloc(1, sizeof(*f));
    if (f != NULL)
        *f = (struct follower){.s = s, .note = note, .wanted = wanted, .arg = arg};
    return f;
}

void follower_free(struct follower *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < FOLLOWER_FILES; i++)
        follower_close_writer(&f->files[i]);
    free(f);
}

/* ---- agents in turn ---- */

static bool is_failing(const struct follower *f, const struct ulid *agent, uint64_t now)
{
    for (size_t i = 0; i < FAILING_MAX; i++)
        if (f->failing[i].until_ms > now && ulid_eq(&f->failing[i].agent, agent))
            return true;
    return false;
}

/* False: too many agents fail, so the reason is not in one of them. */
static bool note_failing(struct follower *f, const struct ulid *agent)
{
    uint64_t now = follower_clock_ms();
    for (size_t i = 0; i < FAILING_MAX; i++)
        if (f->failing[i].until_ms <= now) {
            f->failing[i] = (struct failing){*agent, now + FAILING_MS};
            return true;
        }
    return false;
}

static bool first_agent(struct follower *f, MDB_txn *txn, const struct ulid *after,
                        struct ulid *out)
{
    struct cursor w = {0};
    struct key from;
    key_space(&w.prefix, SPACE_ANSWERS_LOG);
    key_of(&from, SPACE_ANSWERS_LOG, after);
    /* after the agent's rows: numbers begin with a length of at most 8 */
    key_bytes(&from, "\xff", 1);
    bool found =
        cursor_from(f->s, txn, &w, DB_WIDGET, &from) == STORE_OK && w.k.mv_size > 1 + ULID_BYTES;
    if (found)
        memcpy(out->b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
    cursor_end(&w);
    return found;
}

/* The next agent that has rows and does not wait after a failure; *failing: some agent waits. */
static bool next_agent(struct step *p, bool *failing)
{
    struct follower *f = p->f;
    struct ulid after = f->turn;
    uint64_t now = follower_clock_ms();
    for (int rounds = 0; rounds < 2;) {
        if (!first_agent(f, p->txn, &after, &p->name.agent)) {
            after = (struct ulid){{0}};
            rounds++;
            continue;
        }
        if (!is_failing(f, &p->name.agent, now))
            return true;
        *failing = true;
        after = p->name.agent;
    }
    return false;
}

/* STORE_NOT_FOUND: no agent has rows. STORE_AGAIN: all that have rows wait after a failure. */
static enum store_status take_turn(struct step *p)
{
    struct follower *f = p->f;
    struct store_agent agent;
    bool failing = false;
    enum store_status status = store_snapshot(f->s, &p->txn);
    if (status != STORE_OK)
        return follower_fail_store(f, status);
    if (!next_agent(p, &failing))
        return failing ? STORE_AGAIN : STORE_NOT_FOUND;
    f->turn = p->name.agent;
    memcpy(p->name.store_id, f->store_id, STORE_ID_BYTES);
    status = answers_read(f->s, p->txn, &p->name.agent, &p->state);
    if (status != STORE_OK)
        return follower_fail_store(f, status == STORE_NOT_FOUND ? STORE_CORRUPT : status);
    p->name.generation = p->state.generation;
    if (agent_read(f->s, p->txn, &p->name.agent, &agent) == STORE_OK)
        p->language = agent_language(&agent);
    if (p->language.n > sizeof(p->language_bytes))
        p->language.n = 0;
    if (p->language.n > 0)
        memcpy(p->language_bytes, p->language.p, p->language.n);
    p->language.p = p->language_bytes;
    return STORE_OK;
}

/* Answer files leave the disk's reserve free, as creates do. */
static enum store_status check_disk_space(struct follower *f)
{
    int why;
    if (store_bytes_ahead(f->s, &why) >= STORE_DISK_RESERVE + STEP_BYTES)
        return STORE_OK;
    return follower_fail(f, STORE_FULL, f->s->dir, "The disk is nearly full: free disk space.");
}

static enum store_status work(struct step *p)
{
    if (p->state.state != ANSWERS_DELETED && check_disk_space(p->f) != STORE_OK)
        return STORE_FULL;
    switch (p->state.state) {
    case ANSWERS_TO_BUILD:
        return follower_build(p);
    case ANSWERS_BUILT:
        return follower_catch_up(p);
    default:
        return follower_delete_file(p);
    }
}

static enum follower_result take_step(struct follower *f)
{
    struct step p = {.f = f, .until_ms = follower_clock_ms() + FOLLOWER_STEP_MS};
    enum store_status status = take_turn(&p);
    store_read_end(f->s);
    if (status == STORE_NOT_FOUND)
        return f->swept_records ? FOLLOWER_IDLE : FOLLOWER_MORE;
    if (status != STORE_OK)
        return FOLLOWER_WAIT;
    status = work(&p);
    store_read_end(f->s);
    if (status == STORE_OK)
        return FOLLOWER_MORE;
    if (status == STORE_FULL) /* other agents need the same disk */
        return FOLLOWER_WAIT;
    return note_failing(f, &p.name.agent) ? FOLLOWER_FAILED : FOLLOWER_WAIT;
}

enum follower_result follower_step(struct follower *f)
{
    if (!f->swept_files)
        return follower_sweep(f) == STORE_OK ? FOLLOWER_MORE : FOLLOWER_WAIT;
    if (!f->swept_records && follower_sweep_records(f) != STORE_OK)
        return FOLLOWER_WAIT;
    return take_step(f);
}
