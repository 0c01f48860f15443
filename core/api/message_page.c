/* A page of a conversation's messages and notes, sent whole or in chunks. */
#include "core/api/widget_internal.h"

#include "core/api/render_widget_internal.h"

#include <stdlib.h>

#define WHOLE_MAX (64u << 10) /* larger bodies, in bytes, are sent in chunks */
#define FRAME_PARTS 3         /* parts before and after the messages */

struct item {
    struct ulid id;
    size_t at, n; /* place of its JSON in the page's texts, if those are kept */
    bool note;
};

struct page {
    struct buf *texts; /* JSON of the items; valid until the reply begins */
    bool large;        /* texts are not kept: each chunk of the body is rendered when it is sent */
    struct ulid conversation;
    struct item items[2 * WIDGET_MESSAGES_MAX];
    size_t count, next; /* next: the first item that is not sent yet */
    enum store_status status;
    struct str prefix, suffix; /* for a chunked body: the rest that is not sent yet */
};

static struct item *add_item(struct page *page, const struct ulid *id, size_t from)
{
    struct item *item = &page->items[page->count++];
    *item = (struct item){.id = *id, .at = from, .n = page->texts->n - from};
    if (page->texts->n > WHOLE_MAX) {
        page->large = true;
        page->texts->n = 0;
    }
    return item;
}

static void add_message(void *arg, enum store_status status, const struct store_message *m)
{
    struct page *page = arg;
    if (m == NULL) {
        page->status = status;
        return;
    }
    size_t from = page->texts->n;
    render_message(m, page->texts);
    add_item(page, &m->id, from);
}

static void add_note(void *arg, enum store_status status, const struct store_note *n)
{
    struct page *page = arg;
    if (n == NULL) {
        if (status != STORE_NOT_FOUND && (status != STORE_OK || page->status == STORE_NOT_FOUND))
            page->status = status;
        return;
    }
    size_t from = page->texts->n;
    render_note(n, page->texts);
    add_item(page, &n->id, from)->note = true;
}

static int by_id(const void *a, const void *b)
{
    return memcmp(((const struct item *)a)->id.b, ((const struct item *)b)->id.b, ULID_BYTES);
}

/* Sorts the page and keeps the requested number of items, next to the cursor. */
static void page_sort(struct page *page, const struct store_messages_query *q)
{
    qsort(page->items, page->count, sizeof(page->items[0]), by_id);
    if (page->count <= q->limit)
        return;
    if (q->newest)
        memmove(page->items, page->items + (page->count - q->limit),
                q->limit * sizeof(page->items[0]));
    page->count = q->limit;
    page->status = STORE_OK;
}

/* Zeros come before all ids: a client without messages sends them to get the first ones. */
static bool read_after(struct request *r, struct ulid *out)
{
    const struct value *v = &r->values[PAGE_AFTER];
    return (v->sent && ulid_parse(v->text, out) && ulid_none(out)) ||
           widget_read_id(r, PAGE_AFTER, out);
}

/* Reads the messages, oldest first. False: 422 or 503 was sent. */
static bool page_read(struct request *r, const struct ulid *cleared, const struct value *values,
                      bool notes, struct page *page)
{
    struct store_messages_query q = {.conversation = page->conversation,
                                     .limit = values == NULL ? WIDGET_MESSAGES_INIT
                                                             : (unsigned)values[PAGE_LIMIT].number};
    if (values != NULL && (!read_after(r, &q.after) || !widget_read_id(r, PAGE_BEFORE, &q.before)))
        return false;
    q.newest = values == NULL || !values[PAGE_AFTER].sent;
    if (memcmp(q.after.b, cleared->b, ULID_BYTES) < 0)
        q.after = *cleared;
    store_message_each(r->store, &q, add_message, page);
    if (notes)
        store_note_each(r->store, &q, add_note, page);
    if (page->status != STORE_OK && page->status != STORE_NOT_FOUND) {
        reply_store_error(r, page->status);
        return false;
    }
    page_sort(page, &q);
    return true;
}

static struct str concatenate(struct request *r, const struct str *parts, size_t count)
{
    struct str all = {NULL, 0};
    for (size_t i = 0; i < count; i++)
        all.n += parts[i].n;
    char *to = request_alloc(r, all.n);
    all.p = to;
    for (size_t i = 0; i < count; to += parts[i++].n)
        if (parts[i].n > 0)
            memcpy(to, parts[i].p, parts[i].n);
    return all;
}

struct item_output {
    struct buf *out;
    bool good;
};

static void put_message(void *arg, enum store_status status, const struct store_message *m)
{
    struct item_output *output = arg;
    output->good = status == STORE_OK;
    if (output->good)
        render_message(m, output->out);
}

static void put_note(void *arg, enum store_status status, const struct store_note *n)
{
    struct item_output *output = arg;
    output->good = status == STORE_OK;
    if (output->good)
        render_note(n, output->out);
}

static void put_item(struct request *r, const struct page *page, const struct item *item,
                     struct item_output *output)
{
    if (item->note)
        store_note_get(r->store, &page->conversation, &item->id, put_note, output);
    else
        store_message_get(r->store, &page->conversation, &item->id, put_message, output);
}

/* A message never changes, but can be erased before it is sent. */
static bool page_next_chunk(struct request *r, struct buf *out)
{
    struct page *page = r->state;
    struct item_output output = {out, true};
    buf_str(out, page->prefix);
    page->prefix.n = 0;
    while (page->next < page->count && out->n < REPLY_CHUNK && output.good) {
        buf_adds(out, page->next == 0 ? "" : ",");
        put_item(r, page, &page->items[page->next++], &output);
    }
    if (page->next == page->count) {
        buf_str(out, page->suffix);
        page->suffix.n = 0;
    }
    return output.good;
}

/* ${parts}: the whole body, as page_reply builds it. */
static void page_send(struct request *r, struct page *page, const struct str *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].n;
    if (bytes <= WHOLE_MAX && !page->large) {
        reply_json(r, 200, parts, count);
        return;
    }
    page->prefix = concatenate(r, parts, FRAME_PARTS);
    page->suffix = concatenate(r, parts + count - FRAME_PARTS, FRAME_PARTS);
    r->state = page;
    reply_chunked(r, 200, bytes, page_next_chunk);
}

static void page_reply(struct request *r, const struct ulid *conversation,
                       const struct ulid *cleared, const struct value *values, bool notes,
                       const struct buf *prefix, const struct buf *suffix)
{
    struct str parts[2 * WIDGET_MESSAGES_MAX + 2 * FRAME_PARTS];
    size_t count = 0;
    struct page *page = request_alloc(r, sizeof(*page));
    page->texts = api_body(r);
    page->large = false;
    page->conversation = *conversation;
    page->count = page->next = 0;
    if (!page_read(r, cleared, values, notes, page))
        return;
    if (!buf_ok(prefix) || !buf_ok(suffix) || !buf_ok(page->texts)) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    parts[count++] = STR("{\"data\":{");
    parts[count++] = buf_view(prefix);
    parts[count++] = STR("\"messages\":[");
    for (size_t i = 0; i < page->count; i++) {
        if (i > 0)
            parts[count++] = STR(",");
        parts[count++] =
            (struct str){page->large ? NULL : page->texts->p + page->items[i].at, page->items[i].n};
    }
    parts[count++] =
        page->status == STORE_OK ? STR("],\"has_more\":true") : STR("],\"has_more\":false");
    parts[count++] = buf_view(suffix);
    parts[count++] = STR("}}");
    if (r->etag.p == NULL)
        reply_header(r, "cache-control", STR("no-store"));
    page_send(r, page, parts, count);
}

void widget_page_reply(struct request *r, const struct ulid *conversation,
                       const struct ulid *cleared, const struct value *values,
                       const struct buf *prefix, const struct buf *suffix)
{
    page_reply(r, conversation, cleared, values, false, prefix, suffix);
}

void conversation_page_reply(struct request *r, const struct ulid *conversation,
                             const struct buf *prefix)
{
    static const struct ulid all;
    const struct buf suffix = {0};
    page_reply(r, conversation, &all, r->values, true, prefix, &suffix);
}
