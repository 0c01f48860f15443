#include "store/answers/answers.h"
#include "store/answers/follower.h"
#include "store/answers/follower_internal.h"
#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/format.h"
#include "store/engine/snapshot.h"
#include "store/records/answers_log.h"
#include "store/records/ulid_keys.h"

#define VERIFY_TRIES 3 /* tries of a file whose verification is interrupted */

/* The next agent that has a file; STORE_NOT_FOUND: there is none. */
static enum store_status next_file(struct step *p)
{
    struct cursor w = {0};
    struct key from;
    struct follower *f = p->f;
    enum store_status status = store_snapshot(f->s, &p->txn);
    key_space(&w.prefix, SPACE_ANSWER_FILE);
    key_of(&from, SPACE_ANSWER_FILE, &f->verify);
    key_bytes(&from, "", 1);
    if (status == STORE_OK)
        status = cursor_from(f->s, p->txn, &w, DB_WIDGET, &from);
    if (status == STORE_OK && w.k.mv_size != 1 + ULID_BYTES)
        status = store_corrupt(f->s, "the record of an answer file");
    if (status == STORE_OK) {
        memcpy(p->name.agent.b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
        status = answers_read(f->s, p->txn, &p->name.agent, &p->state);
    }
    cursor_end(&w);
    store_read_end(f->s);
    memcpy(p->name.store_id, f->store_id, STORE_ID_BYTES);
    p->name.generation = p->state.generation;
    return status == STORE_OK || status == STORE_NOT_FOUND ? status
                                                           : follower_fail_store(f, status);
}

static enum store_status verify_file(struct step *p)
{
    enum store_status status = follower_open(p);
    if (status == STORE_OK && !follower_fits(p))
        status = STORE_STALE;
    if (status == STORE_OK) {
        status = answers_verify(p->writer, p->f->wanted, p->f->arg);
        if (status != STORE_OK)
            follower_fail_file(p, status);
    }
    p->lost = p->lost || answers_is_lost(status);
    if (!p->lost)
        return status;
    follower_close(p->f, &p->name.agent);
    return follower_note(p, ANSWERS_NOTE_LOST, 0);
}

enum follower_result follower_verify(struct follower *f)
{
    struct step p = {.f = f};
    enum store_status status = next_file(&p);
    if (status == STORE_NOT_FOUND) {
        f->verify = (struct ulid){{0}};
        return FOLLOWER_IDLE;
    }
    if (status != STORE_OK)
        return FOLLOWER_WAIT;
    if (p.state.state == ANSWERS_BUILT)
        status = verify_file(&p);
    if (status == STORE_BUSY && f->wanted(f->arg) && ++f->verify_tries < VERIFY_TRIES)
        return FOLLOWER_MORE; /* from its beginning */
    f->verify = p.name.agent;
    f->verify_tries = 0;
    return status == STORE_OK ? FOLLOWER_MORE : FOLLOWER_FAILED;
}
