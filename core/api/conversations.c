/*
 * Conversations and visitors' records, for operators: API keys with conversations:read or
 * conversations:write.
 */
#include "core/api/widget_internal.h"

#include "core/api/render_widget_internal.h"
#include "core/async/query_threads.h"
#include "core/shm/typing_table.h"
#include "core/text/json_out.h"
#include "core/text/time_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

#define LIST_BYTES (API_LIST_MAX - 1024) /* for rows; the rest is for the envelope */

struct rows {
    struct buf *out;
    struct str ignored; /* names for meta.ignored */
    struct ulid last;
    size_t count;
    enum store_status status;
};

static void put_row(const struct store_row *row, struct buf *out)
{
    if (row->conversation != NULL)
        render_conversation(row->conversation, out);
    else if (row->lead != NULL)
        render_lead(row->lead, out);
    else if (row->event != NULL)
        render_event(row->event, out);
    else if (row->rating != NULL)
        render_rating(row->rating, out);
}

/* A row that does not fit begins the next page. The first row is always sent. */
static bool add_row(void *arg, enum store_status status, const struct store_row *row)
{
    struct rows *rows = arg;
    if (row == NULL) {
        rows->status = status;
        return true;
    }
    const size_t from = rows->out->n;
    buf_adds(rows->out, rows->count == 0 ? "" : ",");
    const size_t start = rows->out->n;
    put_row(row, rows->out);
    if (rows->out->n == start) { /* not a row: where the next page begins */
        rows->out->n = from;
        rows->last = row->id;
        return true;
    }
    if (rows->count > 0 && rows->out->n + rows->ignored.n > LIST_BYTES) {
        rows->out->n = from;
        return false;
    }
    rows->last = row->id;
    rows->count++;
    return true;
}

static bool read_time(struct request *r, unsigned field, int64_t *out)
{
    const struct value *v = &r->values[field];
    *out = v->sent ? time_read(v->text) : 0;
    if (!v->sent || *out > 0)
        return true;
    reply_invalid(r, r->route->fields[field].name,
                  "must be an RFC 3339 time, such as 2026-05-07T13:00:00Z");
    return false;
}

/* The version of a list is a checksum of its bytes. */
static uint64_t list_version(struct str body, uint64_t workspace)
{
    return api_hash(workspace, body.p, body.n) >> 1;
}

/* ${more}: more members of meta. */
static void list_reply(struct request *r, struct rows *rows, const char *more)
{
    static const struct ulid none;
    const struct str ignored = rows->ignored;
    buf_adds(rows->out, rows->status == STORE_OK ? "],\"meta\":{\"has_more\":true"
                                                 : "],\"meta\":{\"has_more\":false");
    widget_put_id(rows->out, ",\"next_after\":", rows->status == STORE_OK ? &rows->last : &none);
    buf_adds(rows->out, more);
    buf_str(rows->out, ignored.n == 0 ? STR("") : STR(",\"ignored\":"));
    buf_str(rows->out, ignored);
    buf_adds(rows->out, "}}");
    if (!buf_ok(rows->out))
        reply_error(r, ERR_UNAVAILABLE, NULL);
    else if (!reply_etag(r, list_version(buf_view(rows->out), r->workspace)))
        api_reply(r, 200, rows->out);
}

/* Reads the query. False: 422 was sent. */
static bool read_query(struct request *r, struct store_rows_query *q)
{
    *q = (struct store_rows_query){.workspace = r->workspace,
                                   .limit = api_per_page[r->values[ROWS_PER_PAGE].number]};
    return widget_read_id(r, ROWS_AGENT, &q->agent) && widget_read_id(r, ROWS_AFTER, &q->after) &&
           read_time(r, ROWS_SINCE, &q->since) && read_time(r, ROWS_UNTIL, &q->until);
}

/*
 * Messages, notes and leads that one request reads, about 0.1 s of CPU time. The next request
 * continues after them.
 */
#define SEARCH_BUDGET 250000

struct rows_job {
    struct query query;
    enum store_rows type;
    struct store_search search; /* of a list only the rows */
    struct rows rows;
    struct buf body;
    char why[512]; /* store_why of the thread's store, if it could not be read */
    char pattern[];
};

static bool rows_fail(const struct rows_job *job)
{
    return job->rows.status != STORE_OK && job->rows.status != STORE_NOT_FOUND;
}

static bool rows_run(struct query *q, struct store *store)
{
    struct rows_job *job = (struct rows_job *)q;
    api_list_begin(&job->body);
    job->rows.count = 0;
    if (q->search)
        store_conversation_search(store, &job->search, add_row, &job->rows);
    else
        store_rows_each(store, job->type, &job->search.rows, add_row, &job->rows);
    if (rows_fail(job))
        snprintf(job->why, sizeof(job->why), "%s", store_why(store));
    return job->rows.status != STORE_AGAIN;
}

static const char *stopped_early(const struct rows_job *job)
{
    if (!job->query.search)
        return "";
    return job->search.stopped ? ",\"stopped_early\":true" : ",\"stopped_early\":false";
}

static void rows_over(struct query *q, struct waiter *w)
{
    struct request *r = request_of(w);
    struct rows_job *job = (struct rows_job *)q;
    if (r != NULL && !q->done)
        query_late(r);
    else if (r != NULL && rows_fail(job))
        reply_store_failure(r, job->rows.status, job->why);
    else if (r != NULL)
        list_reply(r, &job->rows, stopped_early(job));
    buf_free(&job->body);
    free(job);
}

/* ${pattern}: of a search; empty: a list. */
static void rows_start(struct request *r, enum store_rows type, const struct store_rows_query *q,
                       struct str pattern)
{
    struct rows_job *job = malloc(sizeof(*job) + pattern.n);
    if (job == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *job = (struct rows_job){.query = {.workspace = r->workspace,
                                       .search = pattern.n > 0,
                                       .run = rows_run,
                                       .over = rows_over},
                             .type = type,
                             .search = {.rows = *q,
                                        .pattern = {job->pattern, pattern.n},
                                        .budget = SEARCH_BUDGET,
                                        .stop = query_must_stop,
                                        .stop_arg = &job->query},
                             .rows = {.out = &job->body, .ignored = api_ignored(r)}};
    if (pattern.n > 0) {
        job->search.by = (enum store_search_by)r->values[ROWS_SEARCH_BY].number;
        memcpy(job->pattern, pattern.p, pattern.n);
    }
    request_query(r, &job->query);
}

static void list_rows(struct request *r, enum store_rows type)
{
    struct store_rows_query q;
    if (read_query(r, &q))
        rows_start(r, type, &q, STR(""));
}

void conversations_list(struct request *r)
{
    struct store_rows_query q;
    const struct value *search = &r->values[ROWS_SEARCH];
    if (!read_query(r, &q))
        return;
    q.class = r->values[ROWS_STATUS].sent ? 1 + (unsigned)r->values[ROWS_STATUS].number : 0;
    rows_start(r, ROWS_CONVERSATIONS, &q, search->sent ? search->text : STR(""));
}

void leads_list(struct request *r)
{
    list_rows(r, ROWS_LEADS);
}

void events_list(struct request *r)
{
    list_rows(r, ROWS_EVENTS);
}

void ratings_list(struct request *r)
{
    list_rows(r, ROWS_RATINGS);
}

/* ---- one conversation ---- */

/* The newest note is part of the version, because a note does not change the record. */
static void note_found(void *arg, enum store_status status, const struct store_note *n)
{
    uint64_t high, low;
    (void)status;
    if (n == NULL)
        return;
    ulid_halves(&n->id, &high, &low);
    *(uint64_t *)arg = low;
}

static uint64_t newest_note(struct request *r, const struct ulid *conversation)
{
    const struct store_messages_query newest = {
        .conversation = *conversation, .newest = true, .limit = 1};
    uint64_t low_half = 0;
    store_note_each(r->store, &newest, note_found, &low_half);
    return low_half;
}

static void conversation_found(void *arg, enum store_status status,
                               const struct store_conversation *c)
{
    struct request *r = arg;
    struct buf prefix = {0};
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    bool visitor_typing = widget_is_typing(r, &c->id, TYPIST_VISITOR);
    bool operator_typing = widget_is_typing(r, &c->id, TYPIST_OPERATOR);
    const struct ulid id = c->id;
    if (reply_etag(r, widget_version(c, (visitor_typing ? 1u : 0u) | (operator_typing ? 2u : 0u) |
                                            newest_note(r, &id) << 2)))
        return;
    render_conversation_members(c, &prefix);
    buf_printf(&prefix, ",\"visitor_typing\":%s,\"operator_typing\":%s,",
               visitor_typing ? "true" : "false", operator_typing ? "true" : "false");
    conversation_page_reply(r, &id, &prefix);
    buf_free(&prefix);
}

static bool read_id(struct request *r, struct ulid *out)
{
    if (ulid_parse(r->args[0], out))
        return true;
    reply_error(r, ERR_NOT_FOUND, NULL);
    return false;
}

void conversations_get(struct request *r)
{
    struct ulid id;
    if (read_id(r, &id))
        store_conversation_get(r->store, r->workspace, &id, conversation_found, r);
}

/* ---- changes by operators ---- */

static struct store_change *change_new(struct request *r, enum store_change_kind kind)
{
    struct ulid id;
    if (!read_id(r, &id))
        return NULL;
    struct store_change *change = widget_change(r, kind);
    change->conversation = id;
    return change;
}

static void reply_message(struct request *r, const struct store_answer *answer,
                          const struct store_message *m)
{
    struct buf *body = api_body(r);
    (void)answer;
    render_message(m, body);
    api_reply_data_buf(r, 201, body);
}

static void replied(struct request *r, const struct store_answer *answer)
{
    if (answer->status != STORE_OK)
        widget_refuse(r, answer->status);
    else
        widget_read_message(r, answer, &answer->first, reply_message);
}

void conversations_reply(struct request *r)
{
    if (!r->values[REPLY_TEXT].sent) {
        reply_invalid(r, "message", "is required: 1 to 4000 characters");
        return;
    }
    struct store_change *change = change_new(r, CHANGE_MESSAGE_REPLY);
    if (change == NULL)
        return;
    change->text = r->values[REPLY_TEXT].text;
    change->code = 201;
    if (request_idempotency(r, change))
        request_change(r, change, replied);
}

static void reply_note(void *arg, enum store_status status, const struct store_note *n)
{
    struct request *r = arg;
    struct buf *body = api_body(r);
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    render_note(n, body);
    api_reply_data_buf(r, 201, body);
}

static void noted(struct request *r, const struct store_answer *answer)
{
    const struct store_change *change = r->state;
    if (answer->status != STORE_OK) {
        widget_refuse(r, answer->status);
        return;
    }
    widget_replayed(r, answer);
    store_note_get(r->store, &change->conversation, &answer->first, reply_note, r);
}

void conversations_note(struct request *r)
{
    if (!r->values[NOTE_TEXT].sent) {
        reply_invalid(r, "note", "is required: 1 to 4000 characters");
        return;
    }
    struct store_change *change = change_new(r, CHANGE_NOTE);
    if (change == NULL)
        return;
    change->text = r->values[NOTE_TEXT].text;
    if (r->values[NOTE_NAME].sent)
        change->name = r->values[NOTE_NAME].text;
    change->code = 201;
    if (request_idempotency(r, change))
        request_change(r, change, noted);
}

static void reply_record(void *arg, enum store_status status, const struct store_conversation *c)
{
    struct request *r = arg;
    struct buf *body = api_body(r);
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    render_conversation(c, body);
    api_reply_data_buf(r, 200, body);
}

static void state_set(struct request *r, const struct store_answer *answer)
{
    const struct store_change *change = r->state;
    if (answer->status != STORE_OK)
        widget_refuse(r, answer->status);
    else
        store_conversation_get(r->store, r->workspace, &change->conversation, reply_record, r);
}

static void set_state(struct request *r, uint32_t fields)
{
    struct store_change *change = change_new(r, CHANGE_CONVERSATION_SET);
    if (change == NULL)
        return;
    if (fields == CONVERSATION_SET_CLAIMED && r->values[CLAIM_NAME].sent)
        change->name = r->values[CLAIM_NAME].text;
    change->fields = fields;
    request_change(r, change, state_set);
}

void conversations_claim(struct request *r)
{
    set_state(r, CONVERSATION_SET_CLAIMED);
}

void conversations_release(struct request *r)
{
    set_state(r, CONVERSATION_SET_RELEASED);
}

void conversations_close(struct request *r)
{
    set_state(r, CONVERSATION_SET_CLOSED);
}

void conversations_reopen(struct request *r)
{
    set_state(r, CONVERSATION_SET_REOPENED);
}

static void typing_found(void *arg, enum store_status status, const struct store_conversation *c)
{
    struct request *r = arg;
    if (status == STORE_OK)
        widget_typing_reply(r, &c->id, TYPIST_OPERATOR, r->values[TYPING_STATUS].number == 0);
    else
        reply_store_error(r, status);
}

void conversations_typing(struct request *r)
{
    struct ulid id;
    if (read_id(r, &id))
        store_conversation_get(r->store, r->workspace, &id, typing_found, r);
}
