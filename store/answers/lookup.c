#include "store/answers/answers.h"
#include "store/answers/path.h"
#include "store/answers/reader_cache_internal.h"
#include "store/answers/reader_internal.h"
#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/format.h"
#include "store/engine/layers.h"
#include "store/engine/snapshot.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/document.h"
#include "store/records/item.h"
#include "store/records/ulid_keys.h"

#include <stdio.h>

struct lookup {
    struct store *s;
    const struct store_question *question;
    struct answers_name name; /* of the answer file */
    uint64_t indexed;         /* changes up to it are in the file */
    bool newest;              /* the file; false: the next generation is being built */
    bool wrong;               /* the file is missing, damaged, or of something else */
    struct answers_reader *reader;
    enum store_status failed; /* the store could not be read */
    bool stopped;
    struct store_hit hits[STORE_HITS_MAX];
    struct store_found found;
};

/* ---- the answer file ---- */

/* The newest complete file. STORE_NOT_FOUND: the agent has none. */
static enum store_status choose_file(struct lookup *l, const struct store_answers *a)
{
    l->indexed = a->indexed;
    l->newest = a->state == ANSWERS_BUILT;
    l->name.generation = l->newest ? a->generation : a->serving;
    bool any = l->newest || (a->state == ANSWERS_TO_BUILD && a->serving != 0);
    return any ? STORE_OK : STORE_NOT_FOUND;
}

/* STORE_NOT_FOUND: the agent has no complete file. */
static enum store_status name_of_file(struct lookup *l)
{
    MDB_txn *txn;
    struct store_agent agent;
    struct store_answers a;
    enum store_status status = store_snapshot(l->s, &txn);
    l->name.agent = l->question->agent;
    if (status == STORE_OK)
        status = agent_read(l->s, txn, &l->name.agent, &agent);
    if (status == STORE_OK)
        status = answers_read(l->s, txn, &l->name.agent, &a);
    if (status == STORE_OK)
        status = choose_file(l, &a);
    if (status == STORE_OK)
        status = format_id(l->s, l->name.store_id);
    store_read_end(l->s); /* the file's snapshot must be the older one: see check_document */
    return status;
}

/* The path of the file and ${sentence}, for store_why. */
static void say_file(struct lookup *l, const char *sentence)
{
    char path[ANSWERS_PATH_BYTES];
    answers_path(path, l->s->dir, &l->name);
    snprintf(l->s->why, sizeof(l->s->why), "%.700s: %.300s", path, sentence);
}

/* A wrong file is lost; an error of the system is one of the question. */
static enum store_status take_file_error(struct lookup *l, enum store_status status,
                                         const char *sentence)
{
    say_file(l, sentence);
    switch (status) {
    case STORE_NOT_FOUND:
    case STORE_CORRUPT:
    case STORE_OTHER_FORMAT:
    case STORE_STALE:
        l->wrong = true;
        l->found.lost = l->newest ? l->name.generation : 0; /* the next one is being built anyway */
        return STORE_NOT_FOUND;
    default:
        return status;
    }
}

/* An incomplete file, or one older than the log, was put back by a power cut or by an operator. */
static enum store_status open_file(struct lookup *l)
{
    uint64_t position = 0;
    bool whole = false;
    char why[300];
    enum store_status status =
        reader_cache_get(&l->s->answers, l->s->dir, &l->name, &l->reader, why, sizeof(why));
    if (status != STORE_OK)
        return take_file_error(l, status, why);
    status = answers_reader_position(l->reader, &position, &whole);
    if (status != STORE_OK)
        return take_file_error(l, status, answers_reader_why(l->reader));
    if (!whole || position < l->indexed)
        return take_file_error(l, STORE_STALE, "The file is older than the store.");
    return status;
}

/* ---- the question ---- */

static bool must_stop(void *arg)
{
    struct lookup *l = arg;
    l->stopped = l->stopped || store_must_stop(l->s, l->question->stop, l->question->stop_arg);
    return l->stopped;
}

/*
 * SQLite's pages have no checksums, so each document is compared with its record. A record that
 * changed after the file's last commit is newer; any other difference is damage.
 */
static enum store_status check_document(void *arg, uint64_t id, uint64_t version, uint64_t position)
{
    struct lookup *l = arg;
    MDB_txn *txn;
    struct store_synced d;
    enum store_status status = store_snapshot(l->s, &txn);
    if (status == STORE_OK)
        status = document_get(l->s, txn, id, &d);
    if (status == STORE_OK &&
        (!ulid_eq(&d.agent, &l->name.agent) || (d.change != version && d.change <= position)))
        return STORE_CORRUPT;
    if (status == STORE_OK)
        status = document_read(l->s, txn, id, &d);
    if (status != STORE_OK && status != STORE_NOT_FOUND) {
        l->failed = status;
        return STORE_BUSY;
    }
    return status;
}

static enum store_status take_hit(struct lookup *l, const struct answers_hit *hit,
                                  struct store_hit *out)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(l->s, &txn);
    if (status == STORE_OK)
        status = document_read(l->s, txn, hit->id, &out->document);
    if (status != STORE_OK)
        return status;
    out->score = hit->score;
    out->share = hit->share;
    out->answers = hit->answers;
    /* the same language that the follower uses */
    const struct str language =
        out->document.language.n > 0 ? out->document.language : l->question->language;
    return answers_excerpt(l->reader, language, l->question->text, out->document.text,
                           l->question->excerpt_bytes, &out->excerpt);
}

static enum store_status ask(struct lookup *l)
{
    struct answers_hit hits[STORE_HITS_MAX];
    const struct answers_question question = {
        .text = l->question->text,
        .language = l->question->language,
        .limit = l->question->limit < STORE_HITS_MAX ? l->question->limit : STORE_HITS_MAX,
        .stop = must_stop,
        .check = check_document,
        .arg = l,
    };
    unsigned count;
    enum store_status status = answers_ask(l->reader, &question, hits, &count);
    if (l->failed != STORE_OK)
        return l->failed;
    if (l->stopped)
        return STORE_AGAIN;
    if (status == STORE_INVALID) /* FTS5 cannot search for it */
        return STORE_NOT_FOUND;
    if (status != STORE_OK)
        return take_file_error(l, status, answers_reader_why(l->reader));
    for (size_t i = 0; i < count && status == STORE_OK; i++)
        status = must_stop(l) ? STORE_AGAIN : take_hit(l, &hits[i], &l->hits[i]);
    l->found.count = status == STORE_OK ? count : 0;
    return status;
}

void store_find(struct store *s, const struct store_question *question, store_found_fn *done,
                void *arg)
{
    struct lookup l = {.s = s, .question = question};
    enum store_status status = name_of_file(&l);
    if (status == STORE_OK)
        status = open_file(&l);
    if (status == STORE_OK)
        status = ask(&l);
    if (l.wrong && l.reader != NULL)
        reader_cache_drop(s->answers, &l.name);
    if (status == STORE_NOT_FOUND)
        status = STORE_OK;
    l.found.hits = l.hits;
    done(arg, status, status == STORE_OK ? &l.found : NULL);
}

static bool lookup_tidy(struct store *s)
{
    struct answers_name name;
    struct store_answers a = {0};
    bool any = false;
    for (size_t at = 0; reader_cache_next(s->answers, &at, &name);) {
        enum store_status status = store_answers_get(s, &name.agent, &a);
        const uint32_t used = a.state == ANSWERS_BUILT ? a.generation : a.serving;
        bool deleted =
            status == STORE_NOT_FOUND ||
            (status == STORE_OK && (used != name.generation || a.state == ANSWERS_DELETED));
        if (deleted)
            reader_cache_drop(s->answers, &name);
        any = any || !deleted;
    }
    store_read_end(s);
    return any;
}

static bool item_on_sale(struct store *s, MDB_txn *txn, uint64_t collection, uint64_t wp_id)
{
    struct key k;
    MDB_val v;
    struct item_record item;
    struct store_synced d;
    item_key(&k, collection, wp_id);
    return store_get(s, txn, SPACE_ITEM, &k, &v) == STORE_OK && schema_read_item(v, &item) &&
           item.document != 0 && document_read(s, txn, item.document, &d) == STORE_OK && d.on_sale;
}

bool store_on_sale(struct store *s, const struct ulid *agent, uint64_t wp_id)
{
    MDB_txn *txn;
    struct cursor w = {0};
    const uint8_t kind = SYNCED_PRODUCT;
    uint64_t collection;
    bool found = false;
    enum store_status status = store_snapshot(s, &txn);
    key_of(&w.prefix, SPACE_COLLECTION_NAME, agent);
    key_bytes(&w.prefix, &kind, 1);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK && !found; status = cursor_next(&w)) {
        if (w.v.mv_size != sizeof(collection))
            continue;
        memcpy(&collection, w.v.mv_data, sizeof(collection));
        found = item_on_sale(s, txn, collection, wp_id);
    }
    cursor_end(&w);
    return found;
}

static void lookup_close(struct store *s)
{
    reader_cache_free(s->answers);
}

/* What the engine calls in this layer: store/engine/layers.h. */
const struct layer answers_layer = {.close = lookup_close, .tidy = lookup_tidy};
