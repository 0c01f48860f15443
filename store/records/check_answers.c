#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/records/answers_log.h"
#include "store/records/checks.h"
#include "store/records/document.h"
#include "store/records/ulid_keys.h"

/* ---- checks of the log of changed documents and of the records of answer files ---- */

#define LL(v) ((unsigned long long)(v))

static const char *agent_text(const struct cursor *w, char text[ULID_TEXT + 1])
{
    struct ulid agent;
    memcpy(agent.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
    ulid_text(&agent, text);
    text[ULID_TEXT] = '\0';
    return text;
}

/* Is there a row of that number? */
static bool row_get(struct check *c, const struct ulid *agent, uint64_t number, uint64_t *document)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_ANSWERS_LOG, agent);
    key_u64(&k, number);
    bool there = check_get(c, SPACE_ANSWERS_LOG, &k, &v) && v.mv_size == sizeof(*document);
    if (there)
        memcpy(document, v.mv_data, sizeof(*document));
    return there;
}

void check_answers(struct check *c, const struct cursor *w)
{
    char text[ULID_TEXT + 1];
    struct store_answers a;
    struct ulid agent;
    uint64_t last;
    if (w->k.mv_size != 1 + ULID_BYTES || !schema_read_answers(w->v, &last)) {
        check_say(c, "the number of the last change of documents is malformed");
        return;
    }
    memcpy(agent.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
    if (answers_read(c->s, c->txn, &agent, &a) != STORE_OK || a.state == ANSWERS_DELETED)
        check_say(c, "agent %s has no record of its answer file", agent_text(w, text));
}

void check_answer_file(struct check *c, const struct cursor *w)
{
    char text[ULID_TEXT + 1];
    struct store_answers a;
    struct ulid agent;
    uint64_t none;
    bool well_formed = w->k.mv_size == 1 + ULID_BYTES && schema_read_answer_file(w->v, &a);
    if (well_formed) {
        memcpy(agent.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
        well_formed = answers_read(c->s, c->txn, &agent, &a) == STORE_OK &&
                      (a.state == ANSWERS_DELETED ? a.last == 0 : a.indexed <= a.last);
    }
    if (!well_formed) {
        check_say(c, "the record of an answer file is malformed");
        return;
    }
    if (row_get(c, &agent, 0, &none) != (a.state != ANSWERS_BUILT))
        check_say(c, "the log of agent %s does not say whether its answer file waits for changes",
                  agent_text(w, text));
}

void check_answers_log(struct check *c, const struct cursor *w)
{
    char text[ULID_TEXT + 1];
    struct store_answers a;
    struct store_synced d;
    struct ulid agent;
    uint64_t number, document;
    if (w->k.mv_size < 1 + ULID_BYTES || !answers_row_number(w, &number)) {
        check_say(c, "a row of the log of changed documents is malformed");
        return;
    }
    memcpy(agent.b, (const uint8_t *)w->k.mv_data + 1, ULID_BYTES);
    memcpy(&document, w->v.mv_data, sizeof(document));
    if (answers_read(c->s, c->txn, &agent, &a) != STORE_OK ||
        (a.state != ANSWERS_DELETED && number > a.last) || (number > 0 && number <= a.indexed))
        check_say(c, "change %llu of agent %s does not belong in the log", LL(number),
                  agent_text(w, text));
    else if (number > 0 && document_get(c->s, c->txn, document, &d) == STORE_OK &&
             d.change != number)
        check_say(c, "change %llu of agent %s names document %llu, which changed later", LL(number),
                  agent_text(w, text), LL(document));
}

void check_document_change(struct check *c, const struct store_synced *d)
{
    struct store_answers a;
    uint64_t document = 0;
    enum store_status status = answers_read(c->s, c->txn, &d->agent, &a);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && a.state == ANSWERS_DELETED))
        return; /* the agent is being erased */
    if (status != STORE_OK || d->change == 0 || d->change > a.last)
        check_say(c, "document %llu has a change that was never made", LL(d->id));
    else if (d->change > a.indexed &&
             (!row_get(c, &d->agent, d->change, &document) || document != d->id))
        check_say(c, "document %llu is neither indexed nor in the log of changed documents",
                  LL(d->id));
}

enum store_status check_unindexed_count(struct check *c)
{
    struct cursor w = {0};
    uint64_t rows = 0, counted = 0;
    enum store_status status = check_renew(c);
    if (status == STORE_OK)
        status = store_answers_unindexed(c->s, &counted);
    if (status == STORE_OK)
        status = cursor_begin(c->s, c->txn, &w, SPACE_ANSWERS_LOG);
    for (; status == STORE_OK; status = cursor_next(&w))
        rows++;
    cursor_end(&w);
    if (status == STORE_NOT_FOUND && rows != counted)
        check_say(c, "the log of changed documents has %llu rows, but the counter says %llu",
                  LL(rows), LL(counted));
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}
