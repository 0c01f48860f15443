#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/records/conversation.h"
#include "store/records/events_and_ratings.h"
#include "store/records/lead.h"
#include "store/records/list_entries.h"
#include "store/records/message_log.h"
#include "store/records/note.h"
#include "store/records/ulid_keys.h"

#include <utf8proc.h>

/*
 * Search in conversations: a scan, newest conversation first, of messages and notes, or of what
 * visitors left about themselves, in one snapshot.
 */

/* ---- the pattern: Knuth-Morris-Pratt search on folded code points ---- */

#define FOLDED_MAX 3 /* code points of one pattern, folded */
#define PATTERN_MAX (FOLDED_MAX * STORE_PATTERN_CHARS)

struct pattern {
    int32_t c[PATTERN_MAX + 1];     /* followed by 0, which no text has */
    uint16_t fail[PATTERN_MAX + 1]; /* length of the longest prefix that is also a suffix */
    size_t n;
};

static bool is_hangul(int32_t c)
{
    return c >= 0xac00 && c <= 0xd7a3;
}

/*
 * Lower case without accents: returns the number of code points; none for an accent. Hangul stays
 * composed.
 */
static size_t fold_point(int32_t c, int32_t out[FOLDED_MAX])
{
    static const utf8proc_option_t options =
        UTF8PROC_CASEFOLD | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK | UTF8PROC_IGNORE;
    int boundary = 0;
    out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c < 0x80 || is_hangul(c))
        return 1;
    utf8proc_ssize_t n = utf8proc_decompose_char(c, out, FOLDED_MAX, options, &boundary);
    return n < 0 ? 0 : n < FOLDED_MAX ? (size_t)n : FOLDED_MAX;
}

/*
 * The next code point of ${text}, folded into ${out}; returns how many. Invalid UTF-8 becomes a
 * code point that no pattern has.
 */
static size_t fold_next(struct str *text, int32_t out[FOLDED_MAX])
{
    utf8proc_int32_t c;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)text->p, (utf8proc_ssize_t)text->n, &c);
    size_t bytes = n > 0 ? (size_t)n : 1;
    *text = (struct str){text->p + bytes, text->n - bytes};
    out[0] = -1;
    return n > 0 ? fold_point(c, out) : 1;
}

/* One step of the search: the length of the pattern's prefix that ends with ${c}, after ${have}. */
static size_t pattern_step(const struct pattern *pattern, size_t have, int32_t c)
{
    while (pattern->c[have] != c) {
        if (have == 0)
            return 0;
        have = pattern->fail[have - 1];
    }
    return have + 1;
}

/* False: the pattern is too long. */
static bool pattern_begin(struct pattern *pattern, struct str text)
{
    int32_t folded[FOLDED_MAX];
    pattern->n = 0;
    while (text.n > 0) {
        size_t count = fold_next(&text, folded);
        if (pattern->n + count > PATTERN_MAX)
            return false;
        for (size_t i = 0; i < count; i++)
            pattern->c[pattern->n++] = folded[i];
    }
    pattern->c[pattern->n] = 0;
    pattern->fail[0] = 0;
    for (size_t i = 1, have = 0; i < pattern->n; i++)
        pattern->fail[i] = (uint16_t)(have = pattern_step(pattern, have, pattern->c[i]));
    return true;
}

static bool pattern_in(const struct pattern *pattern, struct str text)
{
    int32_t folded[FOLDED_MAX];
    size_t have = 0;
    while (text.n > 0 && have < pattern->n) {
        size_t count = fold_next(&text, folded);
        for (size_t i = 0; i < count && have < pattern->n; i++)
            have = pattern_step(pattern, have, folded[i]);
    }
    return have == pattern->n;
}

/* ---- one conversation ---- */

struct scan {
    struct store *s;
    MDB_txn *txn;
    const struct store_search *q;
    store_row_fn *each;
    void *arg;
    struct pattern pattern;
    uint64_t left;    /* of the budget */
    struct ulid last; /* the last conversation that was searched */
    size_t count;     /* of rows */
    bool whole;       /* all matches were taken */
};

/* Count one record of the budget. STORE_AGAIN: the query stops. */
static enum store_status spend(struct scan *l)
{
    l->left -= l->left > 0;
    return store_must_stop(l->s, l->q->stop, l->q->stop_arg) ? STORE_AGAIN : STORE_OK;
}

/* STORE_OK: a text has the pattern; STORE_NOT_FOUND: continue; STORE_AGAIN: the query stops. */
static enum store_status look_at(struct scan *l, struct str text, struct str name)
{
    if (pattern_in(&l->pattern, text) || pattern_in(&l->pattern, name))
        return STORE_OK;
    enum store_status status = spend(l);
    return status == STORE_OK ? STORE_NOT_FOUND : status;
}

/* Each of these searches one kind of a conversation's records, newest first, as look_at does. */
typedef enum store_status look_fn(struct scan *l, const struct store_conversation *c);

static enum store_status look_at_messages(struct scan *l, const struct store_conversation *c)
{
    struct logged_message at;
    enum store_status status = ulid_none(&c->last)
                                   ? STORE_NOT_FOUND
                                   : message_log_get(l->s, l->txn, &c->id, &c->last, &at);
    for (; status == STORE_OK; status = message_log_before(l->s, l->txn, &at)) {
        const struct message_record *r = at.record;
        status = look_at(l, (struct str){(const char *)(r + 1), r->text_n}, STR(""));
        if (status != STORE_NOT_FOUND)
            break;
    }
    return status;
}

static enum store_status look_at_notes(struct scan *l, const struct store_conversation *c)
{
    struct cursor w = {0};
    struct store_note note;
    key_of(&w.prefix, SPACE_NOTE, &c->id);
    enum store_status status = cursor_prefix(l->s, l->txn, &w, DB_WIDGET, true);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        status = note_look(w.k, w.v, &note) ? look_at(l, note.text, note.name)
                                            : store_corrupt(l->s, "a note");
        if (status != STORE_NOT_FOUND)
            break;
    }
    cursor_end(&w);
    return status;
}

static enum store_status look_at_texts(struct scan *l, const struct store_conversation *c)
{
    enum store_status status = look_at_messages(l, c);
    return status == STORE_NOT_FOUND ? look_at_notes(l, c) : status;
}

static enum store_status look_at_lead(struct scan *l, const struct store_conversation *c,
                                      const struct cursor *w)
{
    struct key k;
    MDB_val v;
    struct ulid id;
    struct str email, name;
    if (!list_entry_id(w, &id))
        return store_corrupt(l->s, "a list of leads");
    key_of(&k, SPACE_LEAD, &id);
    enum store_status status = store_get(l->s, l->txn, SPACE_LEAD, &k, &v);
    if (status == STORE_NOT_FOUND ||
        (status == STORE_OK && !lead_said(v, &c->visitor, &email, &name)))
        return store_corrupt(l->s, "a list of leads");
    return status == STORE_OK ? look_at(l, email, name) : status;
}

static enum store_status look_at_leads(struct scan *l, const struct store_conversation *c)
{
    struct cursor w = {0};
    list_entry_prefix(&w.prefix, LIST_ENTRY_LEAD, &c->visitor, 0);
    enum store_status status = cursor_prefix(l->s, l->txn, &w, DB_WIDGET, true);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        status = look_at_lead(l, c, &w);
        if (status != STORE_NOT_FOUND)
            break;
    }
    cursor_end(&w);
    return status;
}

/* The search is for the id of this visitor. */
static enum store_status look_at_nothing(struct scan *l, const struct store_conversation *c)
{
    (void)l, (void)c;
    return STORE_OK;
}

/* ---- the scan ---- */

static bool is_asked_for(const struct store_rows_query *q, const struct store_conversation *c)
{
    return c->workspace == q->workspace &&
           (ulid_none(&q->agent) || ulid_eq(&c->agent, &q->agent)) &&
           (q->class == 0 || q->class == 1 + (unsigned)conversation_status(c));
}

static enum store_status examine(struct scan *l, look_fn *look, const struct ulid *id)
{
    struct store_conversation c;
    enum store_status status = conversation_read(l->s, l->txn, id, &c);
    if (status == STORE_OK)
        status = is_asked_for(&l->q->rows, &c) ? look(l, &c) : STORE_NOT_FOUND;
    if (status != STORE_OK)
        return status;
    l->whole = l->each(l->arg, STORE_OK, &(struct store_row){.id = *id, .conversation = &c});
    l->count += l->whole;
    return STORE_OK;
}

/* The cursor's conversation. STORE_NOT_FOUND: it and all later ones are too old. */
static enum store_status step(struct scan *l, look_fn *look, const struct cursor *w)
{
    struct ulid id;
    if (!list_entry_id(w, &id))
        return store_corrupt(l->s, "a list of conversations");
    if (ulid_ms(&id) < l->q->rows.since)
        return STORE_NOT_FOUND;
    enum store_status status = examine(l, look, &id);
    if (!l->whole || (status != STORE_OK && status != STORE_NOT_FOUND))
        return status;
    l->last = id;
    return spend(l);
}

/* Search until the page or the budget is used up (STORE_OK), or none is left (STORE_NOT_FOUND). */
static enum store_status scan(struct scan *l)
{
    const struct store_search *q = l->q;
    struct cursor w = {0};
    struct ulid visitor;
    const bool of_one = q->by == SEARCH_BY_VISITOR && ulid_parse(q->pattern, &visitor);
    look_fn *look = of_one                       ? look_at_nothing
                    : q->by == SEARCH_BY_VISITOR ? look_at_leads
                                                 : look_at_texts;
    enum store_status status =
        rows_cursor(l->s, l->txn, &w, ROWS_CONVERSATIONS, &q->rows, of_one ? &visitor : NULL);
    while (status == STORE_OK && l->whole && l->count < q->rows.limit && l->left > 0) {
        status = step(l, look, &w);
        if (status == STORE_OK && l->whole)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    return status;
}

void store_conversation_search(struct store *s, struct store_search *q, store_row_fn *each,
                               void *arg)
{
    struct scan l = {.s = s,
                     .q = q,
                     .each = each,
                     .arg = arg,
                     .left = q->budget,
                     .last = q->rows.after,
                     .whole = true};
    enum store_status status =
        q->rows.limit > STORE_SEARCH_ROWS || !pattern_begin(&l.pattern, q->pattern)
            ? STORE_INVALID
            : store_snapshot(s, &l.txn);
    if (status == STORE_OK)
        status = scan(&l);
    const bool more = status == STORE_OK && l.whole;
    if (more)
        each(arg, STORE_OK, &(struct store_row){.id = l.last});
    q->stopped = more && l.count < q->rows.limit;
    each(arg, status, NULL);
}
