#include "chain.h"
#include "fold.h"
#include "words.h"

/*
 * Search in conversations: a scan, newest conversation first, of their messages and notes or of what
 * their visitors said about themselves. It is cut into slices by the query's pause; between two of
 * them the query says where it is, and each slice reads its own snapshot.
 */

/* ---- the needle: Knuth, Morris and Pratt's search, on folded code points ---- */

#define NEEDLE_MAX (2 * STORE_NEEDLE_CHARS)

struct needle {
    uint32_t c[NEEDLE_MAX + 1];    /* then 0, which no text has */
    uint16_t fail[NEEDLE_MAX + 1]; /* the longest beginning that ends there, too */
    size_t n;
};

/* In how many code points, which is none for an accent. */
static size_t fold_point(uint32_t c, uint32_t out[2])
{
    out[0] = c;
    if (c < 0x80) {
        out[0] = fold_ascii[c] != 0 ? fold_ascii[c] : c;
        return 1;
    }
    enum letter class = fold_class(c);
    return class == LETTER_MARK ? 0 : class == LETTER_NONE ? 1 : fold(c, out);
}

/* One step on: how much of the needle ends with ${c}, where ${have} of it ended before. */
static size_t needle_step(const struct needle *needle, size_t have, uint32_t c)
{
    while (needle->c[have] != c) {
        if (have == 0)
            return 0;
        have = needle->fail[have - 1];
    }
    return have + 1;
}

/* False: it is longer than a needle may be. */
static bool needle_begin(struct needle *needle, struct str text)
{
    const uint8_t *at = (const uint8_t *)text.p, *end = text.n == 0 ? at : at + text.n;
    uint32_t folded[2];
    needle->n = 0;
    for (size_t n; at < end; at += n) {
        size_t count = fold_point(words_decode(at, end, &n), folded);
        if (needle->n + count > NEEDLE_MAX)
            return false;
        for (size_t i = 0; i < count; i++)
            needle->c[needle->n++] = folded[i];
    }
    needle->c[needle->n] = 0;
    needle->fail[0] = 0;
    for (size_t i = 1, have = 0; i < needle->n; i++)
        needle->fail[i] = (uint16_t)(have = needle_step(needle, have, needle->c[i]));
    return true;
}

static bool needle_in(const struct needle *needle, struct str text)
{
    const uint8_t *at = (const uint8_t *)text.p, *end = text.n == 0 ? at : at + text.n;
    uint32_t folded[2];
    size_t have = 0;
    for (size_t n; at < end && have < needle->n; at += n) {
        size_t count = fold_point(words_decode(at, end, &n), folded);
        for (size_t i = 0; i < count && have < needle->n; i++)
            have = needle_step(needle, have, folded[i]);
    }
    return have == needle->n;
}

/* ---- a slice ---- */

struct slice {
    struct store *s;
    MDB_txn *txn;
    struct store_search *q;
    struct needle needle;
    bool matched;    /* the conversation under way */
};

/* One more thing was looked at. True: pause. */
static bool spend(struct slice *l)
{
    struct store_search *q = l->q;
    q->budget -= q->budget > 0;
    return store_pauses(l->s, q->pause, q->pause_arg);
}

/* Each of these goes through what the conversation has of one kind, newest first, from below l->q->below on. */
typedef enum store_status look_fn(struct slice *l, const struct store_conversation *c);

static enum store_status look_at_messages(struct slice *l, const struct store_conversation *c)
{
    struct chained at;
    enum store_status status =
        ulid_none(&c->last) ? STORE_NOT_FOUND : chain_get(l->s, l->txn, &c->id, &c->last, &at);
    if (status == STORE_OK && !ulid_none(&l->q->below))
        status = chain_below(l->s, l->txn, &at, &l->q->below);
    while (status == STORE_OK) {
        const struct message_record *r = at.record;
        const struct str said = {(const char *)(r + 1), r->text_n};
        l->q->below = at.id;
        l->matched = needle_in(&l->needle, said);
        if (l->matched)
            return STORE_NOT_FOUND;
        status = spend(l) ? STORE_AGAIN : chain_before(l->s, l->txn, &at);
    }
    return status;
}

struct noting {
    struct slice *l;
    enum store_status status;
    bool pause;
};

static void look_at_note(void *arg, enum store_status status, const struct store_note *note)
{
    struct noting *noting = arg;
    struct slice *l = noting->l;
    noting->status = status;
    if (note == NULL)
        return;
    l->q->below = note->id;
    l->matched = l->matched || needle_in(&l->needle, note->text) || needle_in(&l->needle, note->name);
    noting->pause = spend(l) || noting->pause;
}

#define NOTES_A_STEP 8

static enum store_status look_at_notes(struct slice *l, const struct store_conversation *c)
{
    struct noting noting = {.l = l, .status = STORE_OK};
    while (noting.status == STORE_OK) {
        const struct store_messages_query q = {
            .conversation = c->id, .before = l->q->below, .newest = true, .limit = NOTES_A_STEP};
        store_note_each(l->s, &q, look_at_note, &noting);
        if (l->matched)
            return STORE_NOT_FOUND;
        if (noting.status == STORE_OK && noting.pause)
            return STORE_AGAIN;
    }
    return noting.status;
}

static enum store_status look_at_lead(struct slice *l, const struct store_conversation *c)
{
    struct key k;
    MDB_val v;
    struct str email, name;
    key_of(&k, SPACE_LEAD, &l->q->below);
    enum store_status status = store_get(l->s, l->txn, SPACE_LEAD, &k, &v);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !lead_said(v, &c->visitor, &email, &name)))
        return store_corrupt(l->s, "a list of leads");
    l->matched = status == STORE_OK && (needle_in(&l->needle, email) || needle_in(&l->needle, name));
    if (status != STORE_OK || l->matched)
        return status;
    return spend(l) ? STORE_AGAIN : STORE_OK;
}

static enum store_status look_at_leads(struct slice *l, const struct store_conversation *c)
{
    struct walk w = {0};
    struct key bound = {.n = 0};
    const bool from_the_last = ulid_none(&l->q->below);
    listed_prefix(&w.prefix, LISTED_LEAD, &c->visitor, 0);
    key_bytes(&bound, w.prefix.b, w.prefix.n);
    key_ulid(&bound, &l->q->below);
    enum store_status status = from_the_last ? walk_prefix(l->s, l->txn, &w, DB_WIDGET, true)
                                             : walk_below(l->s, l->txn, &w, DB_WIDGET, &bound);
    while (status == STORE_OK && !l->matched) {
        status = listed_id(&w, &l->q->below) ? look_at_lead(l, c) : store_corrupt(l->s, "a list of leads");
        if (status == STORE_OK && !l->matched)
            status = walk_next(&w);
    }
    walk_end(&w);
    return status == STORE_OK ? STORE_NOT_FOUND : status;
}

/* It is the visitor's whose id was asked for. */
static enum store_status look_at_nothing(struct slice *l, const struct store_conversation *c)
{
    (void)c;
    l->matched = true;
    return STORE_NOT_FOUND;
}

static look_fn *const by_text[] = {look_at_messages, look_at_notes, NULL};
static look_fn *const by_lead[] = {look_at_leads, NULL};
static look_fn *const by_id[] = {look_at_nothing, NULL};

static bool is_asked_for(const struct store_rows_query *q, const struct store_conversation *c)
{
    return c->workspace == q->workspace && (ulid_none(&q->agent) || ulid_eq(&c->agent, &q->agent)) &&
           (q->class == 0 || q->class == 1 + (unsigned)conversation_status(c));
}

/* From where the slice before left it; STORE_NOT_FOUND: it has been looked at. */
static enum store_status look_through(struct slice *l, look_fn *const *looks, const struct store_conversation *c)
{
    struct store_search *q = l->q;
    enum store_status status = STORE_NOT_FOUND;
    while (status == STORE_NOT_FOUND && !l->matched && looks[q->stage] != NULL) {
        status = looks[q->stage](l, c);
        if (status == STORE_NOT_FOUND) {
            q->stage++;
            q->below = (struct ulid){{0}};
        }
    }
    return status;
}

static enum store_status examine(struct slice *l, look_fn *const *looks, const struct ulid *id)
{
    struct store_search *q = l->q;
    struct store_conversation c;
    if (!ulid_eq(&q->at, id)) { /* else it goes on */
        q->at = *id;
        q->stage = 0;
        q->below = (struct ulid){{0}};
    }
    l->matched = false;
    enum store_status status = conversation_read(l->s, l->txn, id, &c);
    if (status == STORE_OK)
        status = is_asked_for(&q->rows, &c) ? look_through(l, looks, &c) : STORE_NOT_FOUND;
    if (status != STORE_NOT_FOUND)
        return status;
    q->rows.after = *id;
    if (l->matched)
        q->found[q->count++] = *id;
    return spend(l) ? STORE_AGAIN : STORE_NOT_FOUND;
}

/*
 * Conversations until the page or the budget is used up (STORE_OK), none is left (STORE_NOT_FOUND),
 * or there is a pause (STORE_AGAIN): the one under way is then the first behind rows.after.
 */
static enum store_status scan(struct slice *l)
{
    struct store_search *q = l->q;
    struct walk w = {0};
    struct ulid id, visitor;
    const bool of_one = q->by == SEARCH_BY_VISITOR && ulid_parse(q->needle, &visitor);
    look_fn *const *looks = of_one ? by_id : q->by == SEARCH_BY_VISITOR ? by_lead : by_text;
    enum store_status status =
        rows_walk(l->s, l->txn, &w, ROWS_CONVERSATIONS, &q->rows, of_one ? &visitor : NULL);
    while (status == STORE_OK && q->count < q->rows.limit && q->budget > 0) {
        if (!listed_id(&w, &id))
            status = store_corrupt(l->s, "a list of conversations");
        else
            status = ulid_ms(&id) < q->rows.since ? STORE_NOT_FOUND : examine(l, looks, &id);
        if (status == STORE_NOT_FOUND && ulid_eq(&q->rows.after, &id))
            status = walk_next(&w);
    }
    walk_end(&w);
    return status;
}

/* ---- the page ---- */

/* What was found, as it is now. ${status}: whether there may be more. */
static void show(struct slice *l, enum store_status status, store_row_fn *each, void *arg)
{
    struct store_search *q = l->q;
    bool whole = true;
    struct store_conversation c;
    for (size_t i = 0; i < q->count && whole; i++) {
        enum store_status read = conversation_read(l->s, l->txn, &q->found[i], &c);
        if (read == STORE_NOT_FOUND)
            continue;
        if (read != STORE_OK) {
            each(arg, read, NULL);
            return;
        }
        whole = each(arg, STORE_OK, &(struct store_row){.id = q->found[i], .conversation = &c});
    }
    if (whole && status == STORE_OK)
        each(arg, STORE_OK, &(struct store_row){.id = q->rows.after});
    q->stopped = whole && status == STORE_OK && q->count < q->rows.limit;
    each(arg, whole ? status : STORE_OK, NULL);
}

void store_conversation_search(struct store *s, struct store_search *q, store_row_fn *each, void *arg)
{
    struct slice l = {.s = s, .q = q};
    enum store_status status = q->rows.limit > STORE_SEARCH_ROWS || !needle_begin(&l.needle, q->needle)
                                   ? STORE_INVALID
                                   : store_snapshot(s, &l.txn);
    if (status == STORE_OK)
        status = scan(&l);
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        show(&l, status, each, arg);
    else
        each(arg, status, NULL);
}
