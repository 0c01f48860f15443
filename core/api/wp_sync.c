/*
 * Processes a batch. The envelope is checked as a whole, each item alone. Unchanged items are
 * skipped on the event loop; from the first changed item on, the rest runs in the reader thread,
 * because HTML can take long. Valid items go to the writer as one change. The writer's answer has
 * the result of each item.
 */
#include "core/api/wp.h"

#include "core/api/widget.h"
#include "core/api/zone.h"
#include "core/async/thread_pool.h"
#include "core/http/admission_queue.h"
#include "core/text/json_out.h"
#include "core/text/json_span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#define SLICE_US 2000 /* of the event loop's time, and of a turn in the thread */

/* The result of an item. */
struct result {
    struct wp_item item;
    struct store_item known;   /* the stored item */
    struct str code;           /* coupons only */
    struct wp_mistake mistake; /* code NULL: none */
    bool sent;                 /* part of the change, */
    size_t row;                /* as this row */
};

/* The thread uses only the batch's own memory, because the request may end first. */
struct batch {
    struct pool_job away;
    struct request *r; /* event loop only */
    struct admission turn;
    enum synced_kind kind;
    struct ulid agent;
    struct str site;
    bool deletes; /* the action is delete */
    size_t count, at, row_count;
    struct result *results; /* one more than allowed */
    char *list;             /* copies of the items and the time zone */
    struct str zone;        /* of the shop, for coupons */
    bool whole; /* send all items: the store has changed since unchanged items were skipped */
    struct buf rows;
};

/*
 * Large batches of a worker go to the writer one at a time. A later change waits for a large one;
 * behind eight it would wait eight times as long.
 */
#define LARGE_BYTES ((size_t)128 * 1024)

static void batch_free(void *arg)
{
    struct batch *b = arg;
    admission_release(&b->turn);
    for (size_t i = 0; b->results != NULL && i < b->count; i++) {
        wp_item_free(&b->results[i].item);
        wp_mistake_reset(&b->results[i].mistake);
    }
    free(b->results);
    free(b->list);
    buf_free(&b->rows);
}

static bool batch_room(struct batch *b)
{
    const struct str list = b->r->values[WP_ITEMS].text, zone = b->r->values[WP_ZONE].text;
    b->results = calloc(STORE_BATCH_MAX + 1, sizeof(*b->results));
    b->list = malloc(list.n + zone.n + 1);
    if (b->results == NULL || b->list == NULL)
        return false;
    if (list.p != NULL)
        memcpy(b->list, list.p, list.n);
    b->zone = (struct str){zone.p == NULL ? NULL : b->list + list.n, zone.n};
    if (zone.p != NULL)
        memcpy(b->list + list.n, zone.p, zone.n);
    return true;
}

/* ---- the envelope ---- */

static const char *const items_names[] = {
    [SYNCED_POST] = "posts", [SYNCED_PRODUCT] = "products", [SYNCED_COUPON] = "coupons"};

/* Finds the items, up to one more than allowed. */
static void find_items(struct batch *b, struct str list)
{
    struct str rest = list.p[0] == '[' ? json_span_inside(list) : list, raw;
    while (b->count <= STORE_BATCH_MAX && json_span_item(&rest, &raw))
        b->results[b->count++] = (struct result){.item = {.raw = raw}};
}

static const char *items_mistake(struct batch *b, bool single)
{
    static const char array[] = "must be an array of at most 100 items",
                      one[] = "must be one item: an object, or an array of one";
    const struct value *v = &b->r->values[WP_ITEMS];
    if (!v->sent)
        return single ? "is required: the item, with an action"
                      : "is required: an array of at most 100 items";
    if (v->text.p[0] != '[' && (!single || v->text.p[0] != '{'))
        return single ? one : array;
    find_items(b, (struct str){b->list, v->text.n});
    if (single)
        return b->count == 1 ? NULL : one;
    return b->count <= STORE_BATCH_MAX ? NULL : array;
}

/* Two items of a batch must not have the same id. */
static bool same_item(const struct result *a, const struct result *b)
{
    return a->item.wp_id != 0 ? a->item.wp_id == b->item.wp_id
                              : a->code.n > 0 && a->code.n == b->code.n &&
                                    strncasecmp(a->code.p, b->code.p, a->code.n) == 0;
}

static void read_one(const struct batch *b, struct result *one)
{
    if (b->kind != SYNCED_COUPON) {
        wp_item_read(one->item.raw, &one->item);
        return;
    }
    if (wp_item_json(&one->item) == NULL || !wp_coupon_code(one->item.json, &one->code))
        one->code = (struct str){NULL, 0};
}

static const char *read_items(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        read_one(b, &b->results[i]);
        for (size_t before = 0; before < i; before++)
            if (same_item(&b->results[i], &b->results[before]))
                return b->kind == SYNCED_COUPON ? "must not have a code twice"
                                                : "must not have a wp_id twice";
    }
    return NULL;
}

static const char *action_mistake(struct batch *b)
{
    const struct wp_item *item = &b->results[0].item;
    struct str action =
        item->action.n > 0 || item->action_wrong ? item->action : b->r->values[WP_ACTION].text;
    b->deletes = str_eq(action, STR("delete"));
    return b->deletes || str_eq(action, STR("upsert")) ? NULL : "is required: upsert or delete";
}

static bool envelope_judge(struct batch *b, bool single)
{
    const struct value *v = b->r->values;
    struct buf errors = {0};
    const char *why;
    if (!v[WP_AGENT].sent)
        fields_error(&errors, "agent_id", "is required");
    if (!v[WP_SITE].sent || !wp_site(b->r, v[WP_SITE].text, &b->site))
        fields_error(&errors, "site_url",
                     v[WP_SITE].sent ? "must be an http or https address" : "is required");
    if (!v[WP_PLUGIN].sent)
        fields_error(&errors, "plugin_version", "is required");
    if (v[WP_ZONE].sent && !zone_known(v[WP_ZONE].text))
        fields_error(&errors, "timezone", "must be the name of a time zone, such as Europe/Berlin");
    if (v[WP_COMPLETE].number != 0 && !v[WP_SYNC_ID].sent && b->kind != SYNCED_COUPON)
        fields_error(&errors, "sync_id", "is required with complete");
    if ((why = items_mistake(b, single)) != NULL || (why = read_items(b)) != NULL)
        fields_error(&errors, items_names[b->kind], "%s", why);
    else if (single && (why = action_mistake(b)) != NULL)
        fields_error(&errors, "action", "%s", why);
    if (errors.n == 0)
        return true;
    reply_fields_error(b->r, &errors);
    return false;
}

static void agent_found(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct batch *b = arg;
    if (status == STORE_OK && agent->workspace != b->r->workspace)
        status = STORE_NOT_FOUND;
    if (status == STORE_OK)
        b->agent = agent->id;
    else if (status == STORE_NOT_FOUND)
        reply_error(b->r, ERR_AGENT_NOT_FOUND, NULL);
    else
        reply_store_error(b->r, status);
}

static bool agent_find(struct batch *b)
{
    struct ulid id;
    if (ulid_parse(b->r->values[WP_AGENT].text, &id))
        store_agent_get(b->r->store, &id, agent_found, b);
    else
        reply_error(b->r, ERR_AGENT_NOT_FOUND, NULL);
    return !ulid_none(&b->agent);
}

static void look_at_known(struct batch *b)
{
    uint64_t ids[STORE_BATCH_MAX];
    struct store_item known[STORE_BATCH_MAX];
    for (size_t i = 0; i < b->count; i++)
        ids[i] = b->results[i].item.wp_id;
    store_items_look(b->r->store, &b->agent, b->site, b->kind, ids, b->count, known);
    for (size_t i = 0; i < b->count; i++)
        b->results[i].known = known[i];
}

/* ---- the response ---- */

enum told { TOLD_QUEUED, TOLD_UNCHANGED, TOLD_STALE, TOLD_DELETED, TOLD_FAILED, TOLDS };

static const char *const told_names[TOLDS] = {"queued", "skipped_unchanged", "skipped_stale",
                                              "deleted", "failed"};

/*
 * Failures are read from the store: parsing HTML takes a different time at each attempt, but a
 * repeat must get the same response.
 */
static enum told told_of(const struct batch *b, const struct result *one,
                         const struct store_answer *answer)
{
    if (!one->sent || (b->deletes && one->mistake.code != NULL))
        return TOLD_FAILED;
    enum synced_mark mark = synced_mark(answer, one->row);
    /* enum told has the order of enum synced_mark */
    return mark == SYNCED_FAILED && !b->deletes ? TOLD_FAILED : (enum told)mark;
}

static const struct wp_mistake took_too_long = {
    .code = "too_complex", .message = WP_TOO_COMPLEX, .count = 1};

static void add_mistake(struct buf *out, const struct wp_mistake *mistake)
{
    char message[sizeof(mistake->message) + 40];
    snprintf(message, sizeof(message), "%s", mistake->message);
    if (mistake->count > 1)
        snprintf(message, sizeof(message), "%s (and %u more: see errors)", mistake->message,
                 mistake->count - 1);
    buf_printf(out, ",\"error\":{\"code\":\"%s\",\"message\":", mistake->code);
    json_string(out, str_of(message));
    if (mistake->errors.n > 0) {
        buf_adds(out, ",\"errors\":{");
        buf_str(out, buf_view(&mistake->errors));
        buf_adds(out, "}");
    }
    buf_adds(out, "}");
    out->failed = out->failed || !buf_ok(&mistake->errors);
}

static void add_result(struct buf *out, const struct batch *b, const struct result *one,
                       enum told told)
{
    if (b->kind == SYNCED_COUPON) {
        buf_adds(out, "{\"code\":");
        json_text(out, one->code.n > 0 ? one->code : (struct str){NULL, 0});
    } else {
        buf_adds(out, "{\"wp_id\":");
        if (one->item.wp_id != 0)
            buf_u64(out, one->item.wp_id);
        else
            buf_adds(out, "null");
    }
    buf_adds(out, ",\"status\":\"");
    buf_adds(out, told_names[told]);
    buf_adds(out, "\"");
    if (told == TOLD_FAILED)
        add_mistake(out, one->mistake.code != NULL ? &one->mistake : &took_too_long);
    buf_adds(out, "}");
}

static void answer_build(struct buf *out, const struct batch *b, const struct store_answer *answer)
{
    uint64_t counts[TOLDS] = {[TOLD_DELETED] = answer->id};
    const struct value *sync_id = &b->r->values[WP_SYNC_ID];
    for (size_t i = 0; i < b->count; i++)
        counts[told_of(b, &b->results[i], answer)]++;
    for (unsigned i = 0; i < TOLDS; i++)
        buf_printf(out, "%s\"%s\":%" PRIu64, i == 0 ? "{" : ",", told_names[i], counts[i]);
    buf_adds(out, ",\"sync_id\":");
    json_text(out, sync_id->sent ? sync_id->text : (struct str){NULL, 0});
    buf_adds(out, ",\"results\":[");
    for (size_t i = 0; i < b->count; i++) {
        buf_adds(out, i == 0 ? "" : ",");
        add_result(out, b, &b->results[i], told_of(b, &b->results[i], answer));
    }
    buf_adds(out, "]}");
}

/* ---- processing ---- */

static void batch_go(struct batch *b);

static void batch_begin(struct batch *b)
{
    b->at = b->row_count = 0;
    buf_reset(&b->rows);
    if (b->kind != SYNCED_COUPON)
        look_at_known(b);
    batch_go(b);
}

static void batch_done(struct request *r, const struct store_answer *answer)
{
    struct batch *b = r->state;
    struct buf body = {0};
    admission_release(&b->turn);
    switch (answer->status) {
    case STORE_OK:
        widget_replayed(r, answer);
        answer_build(&body, b, answer);
        if (buf_ok(&body))
            wp_reply(r, 200, buf_view(&body));
        else
            reply_error(r, ERR_UNAVAILABLE, NULL);
        buf_free(&body);
        return;
    case STORE_AGAIN: /* something has changed since: send all items this time */
        b->whole = true;
        batch_begin(b);
        return;
    case STORE_STALE:
        reply_error(r, ERR_CONFLICT,
                    "A later full sync is complete, or %d syncs were begun since. Begin a new one "
                    "with a new sync_id.",
                    STORE_SYNCS_OPEN);
        return;
    case STORE_TOO_MANY:
        reply_invalid(r, "site_url", "exceeds the limit of 100 sites per agent");
        return;
    case STORE_NOT_FOUND:
        reply_error(r, ERR_AGENT_NOT_FOUND, NULL);
        return;
    default:
        reply_store_error(r, answer->status);
    }
}

static void batch_change(struct request *r)
{
    struct batch *b = r->state;
    struct store_change change = {
        .kind = b->kind == SYNCED_COUPON ? CHANGE_COUPONS : CHANGE_SYNC,
        .fields = r->values[WP_COMPLETE].number != 0 ? SYNC_COMPLETE : 0,
        .workspace = r->workspace,
        .agent = b->agent,
        .name = b->site,
        .status = b->kind,
        .text = r->values[WP_SYNC_ID].sent ? r->values[WP_SYNC_ID].text : (struct str){NULL, 0},
        .data = buf_view(&b->rows),
        .code = 200,
    };
    if (request_idempotency(r, &change))
        request_change(r, &change, batch_done);
}

static void batch_send(struct batch *b)
{
    if (!buf_ok(&b->rows))
        reply_error(b->r, ERR_UNAVAILABLE, NULL);
    else if (b->rows.n < LARGE_BYTES || admission_take(&b->turn, b->r, batch_change))
        batch_change(b->r);
}

static void coupon_add(struct batch *b, struct result *one)
{
    struct buf texts = {0};
    struct store_coupon coupon;
    wp_mistake_reset(&one->mistake);
    if (wp_coupon(one->item.json, b->zone, &texts, &coupon, &one->mistake))
        coupon_pack(&b->rows, &coupon);
    else if (one->code.n > 0)
        coupon_pack_seen(&b->rows, one->code);
    one->row = b->row_count;
    one->sent = one->mistake.code == NULL || one->code.n > 0;
    b->row_count += one->sent;
    buf_free(&texts);
}

static void content_add(struct batch *b, struct result *one, const uint8_t hash[16],
                        int64_t modified_at)
{
    struct buf texts = {0};
    struct store_synced document;
    if (wp_document(b->kind, wp_item_json(&one->item), &texts, &document, &one->mistake)) {
        document.modified_at = modified_at;
        sync_pack(&b->rows, SYNC_UPSERT, one->item.wp_id, hash, modified_at, &document);
    } else if (one->item.wp_id != 0) {
        sync_pack(&b->rows, SYNC_SEEN, one->item.wp_id, NULL, 0, NULL);
    }
    if (!one->item.decoded)
        wp_item_free(&one->item);
    buf_free(&texts);
}

/* Largest items without content_hash, and largest parsed items, that the event loop handles. */
#define HASHED_HERE ((size_t)64 * 1024)
#define READ_HERE ((size_t)4 * 1024)

/* False: it would hold the loop for too long, and nothing was done. */
static bool document_add(struct batch *b, struct result *one, bool here)
{
    const struct store_item *known = &one->known;
    const uint64_t wp_id = one->item.wp_id;
    uint8_t hash[16];
    int64_t modified_at;
    wp_mistake_reset(&one->mistake);
    if (here && one->item.content_hash.n == 0 && one->item.raw.n > HASHED_HERE)
        return false;
    if (wp_id == 0)
        wp_wrong(&one->mistake, "wp_id", "is required: a whole number from 1");
    bool good = wp_item_modified(&one->item, &modified_at, &one->mistake) && wp_id != 0;
    if (good && !wp_item_hash(&one->item, hash)) {
        wp_wrong(&one->mistake, NULL, "the server could not hash the item; send it again");
        sync_pack(&b->rows, SYNC_SEEN, wp_id, NULL, 0, NULL);
    } else if (good && b->deletes) {
        sync_pack(&b->rows, SYNC_DELETE, wp_id, NULL, modified_at, NULL);
    } else if (good && !b->whole && known->there && memcmp(known->hash, hash, sizeof(hash)) == 0) {
        sync_pack(&b->rows, SYNC_SAME, wp_id, hash, modified_at, NULL);
    } else if (b->deletes || one->item.raw.p[0] != '{') { /* a deletion has no other fields */
        if (wp_id != 0)
            sync_pack(&b->rows, SYNC_SEEN, wp_id, NULL, 0, NULL);
    } else {
        if (here && one->item.raw.n > READ_HERE)
            return false;
        content_add(b, one, hash, modified_at);
    }
    one->row = b->row_count;
    one->sent = wp_id != 0;
    b->row_count += one->sent;
    return true;
}

/* Coupons have dates in a time zone, which only the thread may read (zone.h). */
static bool item_add(struct batch *b, struct result *one, bool here)
{
    if (b->kind != SYNCED_COUPON)
        return document_add(b, one, here);
    if (!here)
        coupon_add(b, one);
    return !here;
}

/* ---- in the thread ---- */

static struct batch *batch_of(struct pool_job *job)
{
    return (struct batch *)(void *)((char *)job - offsetof(struct batch, away));
}

static bool add_some(struct pool_job *job)
{
    struct batch *b = batch_of(job);
    uint64_t until = clock_mono_us() + SLICE_US;
    do
        item_add(b, &b->results[b->at++], false);
    while (b->at < b->count && clock_mono_us() < until);
    return b->at < b->count;
}

static void rest_added(struct pool_job *job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct batch *b = batch_of(job);
    if (r != NULL)
        batch_send(b);
    h2o_mem_release_shared(b);
}

static void batch_leave(struct batch *b)
{
    h2o_mem_addref_shared(b);
    b->away = (struct pool_job){.work = add_some, .over = rest_added};
    request_run_in_pool(b->r, &b->away);
}

/* Work that is too long for the loop runs in the thread. */
static void batch_go(struct batch *b)
{
    uint64_t until = clock_mono_us() + SLICE_US;
    for (; b->at < b->count; b->at++) {
        if (clock_mono_us() >= until || !item_add(b, &b->results[b->at], true)) {
            batch_leave(b);
            return;
        }
    }
    batch_send(b);
}

static void batch_new(struct request *r, enum synced_kind kind, bool single)
{
    struct batch *b = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*b), batch_free);
    *b = (struct batch){.r = r, .kind = kind};
    r->state = b;
    if (!batch_room(b))
        reply_error(r, ERR_UNAVAILABLE, NULL);
    else if (envelope_judge(b, single) && agent_find(b))
        batch_begin(b);
}

void wp_posts_sync(struct request *r)
{
    batch_new(r, SYNCED_POST, false);
}

void wp_products_sync(struct request *r)
{
    batch_new(r, SYNCED_PRODUCT, false);
}

void wp_posts_changed(struct request *r)
{
    batch_new(r, SYNCED_POST, true);
}

void wp_products_changed(struct request *r)
{
    batch_new(r, SYNCED_PRODUCT, true);
}

void wp_coupons_sync(struct request *r)
{
    batch_new(r, SYNCED_COUPON, false);
}
