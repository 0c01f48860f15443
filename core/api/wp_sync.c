/*
 * Processes a batch. The envelope is checked as a whole, each item alone. Unchanged items are
 * skipped on the event loop; from the first changed item on, the rest runs in the thread pool,
 * because HTML can take long. Valid items go to the writer as one change. The writer's answer has
 * the result of each item.
 */
#include "core/api/wp_sync_internal.h"

#include "core/api/widget_internal.h"
#include "core/api/zone_internal.h"
#include "core/text/json_out.h"
#include "core/text/json_span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#define SLICE_US 2000 /* of the event loop's time, and of a turn in the thread */

/*
 * Large batches of a worker go to the writer one at a time. A later change waits for a large one;
 * behind eight it would wait eight times as long.
 */
#define LARGE_BYTES ((size_t)128 * 1024)

static void batch_free(void *arg)
{
    struct batch *b = arg;
    admission_release(&b->admission);
    for (size_t i = 0; b->results != NULL && i < b->count; i++) {
        wp_item_free(&b->results[i].item);
        wp_mistake_reset(&b->results[i].mistake);
    }
    free(b->results);
    free(b->text);
    buf_free(&b->rows);
}

static bool batch_alloc(struct batch *b)
{
    const struct str list = b->r->values[WP_ITEMS].text, zone = b->r->values[WP_ZONE].text;
    b->results = calloc(STORE_BATCH_MAX + 1, sizeof(*b->results));
    b->text = malloc(list.n + zone.n + 1);
    if (b->results == NULL || b->text == NULL)
        return false;
    if (list.p != NULL)
        memcpy(b->text, list.p, list.n);
    b->zone = (struct str){zone.p == NULL ? NULL : b->text + list.n, zone.n};
    if (zone.p != NULL)
        memcpy(b->text + list.n, zone.p, zone.n);
    return true;
}

/* ---- the envelope ---- */

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
    find_items(b, (struct str){b->text, v->text.n});
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

static bool check_envelope(struct batch *b, bool single)
{
    const struct value *v = b->r->values;
    struct buf errors = {0};
    const char *why;
    if (!v[WP_AGENT].sent)
        fields_error(&errors, "agent_id", "is required");
    wp_check_sender(b->r, &v[WP_SITE], &v[WP_PLUGIN], &b->site, &errors);
    if (v[WP_ZONE].sent && !zone_known(v[WP_ZONE].text))
        fields_error(&errors, "timezone", "must be the name of a time zone, such as Europe/Berlin");
    if (v[WP_COMPLETE].number != 0 && !v[WP_SYNC_ID].sent && b->kind != SYNCED_COUPON)
        fields_error(&errors, "sync_id", "is required with complete");
    if ((why = items_mistake(b, single)) != NULL || (why = read_items(b)) != NULL)
        fields_error(&errors, wp_kind_names[b->kind], "%s", why);
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

static bool find_agent(struct batch *b)
{
    struct ulid id;
    if (ulid_parse(b->r->values[WP_AGENT].text, &id))
        store_agent_get(b->r->store, &id, agent_found, b);
    else
        reply_error(b->r, ERR_AGENT_NOT_FOUND, NULL);
    return !ulid_none(&b->agent);
}

static void read_stored(struct batch *b)
{
    uint64_t ids[STORE_BATCH_MAX];
    struct store_item stored[STORE_BATCH_MAX];
    for (size_t i = 0; i < b->count; i++)
        ids[i] = b->results[i].item.wp_id;
    store_items_look(b->r->store, &b->agent, b->site, b->kind, ids, b->count, stored);
    for (size_t i = 0; i < b->count; i++)
        b->results[i].stored = stored[i];
}

/* ---- processing ---- */

static void batch_process(struct batch *b);

static void batch_begin(struct batch *b)
{
    b->at = b->row_count = 0;
    buf_reset(&b->rows);
    if (b->kind != SYNCED_COUPON)
        read_stored(b);
    batch_process(b);
}

static void batch_done(struct request *r, const struct store_answer *answer)
{
    struct batch *b = r->state;
    struct buf body = {0};
    admission_release(&b->admission);
    switch (answer->status) {
    case STORE_OK:
        widget_replayed(r, answer);
        wp_sync_render(&body, b, answer);
        api_reply_data_buf(r, 200, &body);
        buf_free(&body);
        return;
    case STORE_AGAIN: /* something has changed since: send all items this time */
        b->send_all = true;
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
    else if (b->rows.n < LARGE_BYTES || admission_take(&b->admission, b->r, batch_change))
        batch_change(b->r);
}

static void add_coupon(struct batch *b, struct result *one)
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

static void add_content(struct batch *b, struct result *one, const uint8_t hash[16],
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
#define HASH_ON_LOOP_MAX ((size_t)64 * 1024)
#define PARSE_ON_LOOP_MAX ((size_t)4 * 1024)

/* False: it would hold the loop for too long, and nothing was done. */
static bool add_document(struct batch *b, struct result *one, bool on_loop)
{
    const struct store_item *stored = &one->stored;
    const uint64_t wp_id = one->item.wp_id;
    uint8_t hash[16];
    int64_t modified_at;
    wp_mistake_reset(&one->mistake);
    if (on_loop && one->item.content_hash.n == 0 && one->item.raw.n > HASH_ON_LOOP_MAX)
        return false;
    if (wp_id == 0)
        wp_mistake_add(&one->mistake, "wp_id", "is required: a whole number from 1");
    bool good = wp_item_modified(&one->item, &modified_at, &one->mistake) && wp_id != 0;
    if (good && !wp_item_hash(&one->item, hash)) {
        wp_mistake_add(&one->mistake, NULL, "the server could not hash the item; send it again");
        sync_pack(&b->rows, SYNC_SEEN, wp_id, NULL, 0, NULL);
    } else if (good && b->deletes) {
        sync_pack(&b->rows, SYNC_DELETE, wp_id, NULL, modified_at, NULL);
    } else if (good && !b->send_all && stored->there &&
               memcmp(stored->hash, hash, sizeof(hash)) == 0) {
        sync_pack(&b->rows, SYNC_SAME, wp_id, hash, modified_at, NULL);
    } else if (b->deletes || one->item.raw.p[0] != '{') { /* a deletion has no other fields */
        if (wp_id != 0)
            sync_pack(&b->rows, SYNC_SEEN, wp_id, NULL, 0, NULL);
    } else {
        if (on_loop && one->item.raw.n > PARSE_ON_LOOP_MAX)
            return false;
        add_content(b, one, hash, modified_at);
    }
    one->row = b->row_count;
    one->sent = wp_id != 0;
    b->row_count += one->sent;
    return true;
}

/* Coupons have dates in a time zone, which only the thread may read (zone_internal.h). */
static bool add_item(struct batch *b, struct result *one, bool on_loop)
{
    if (b->kind != SYNCED_COUPON)
        return add_document(b, one, on_loop);
    if (!on_loop)
        add_coupon(b, one);
    return !on_loop;
}

/* ---- in the thread ---- */

static struct batch *batch_of(struct pool_job *job)
{
    return (struct batch *)(void *)((char *)job - offsetof(struct batch, job));
}

static bool process_slice(struct pool_job *job)
{
    struct batch *b = batch_of(job);
    uint64_t until = clock_mono_us() + SLICE_US;
    do
        add_item(b, &b->results[b->at++], false);
    while (b->at < b->count && clock_mono_us() < until);
    return b->at < b->count;
}

static void processed(struct pool_job *job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct batch *b = batch_of(job);
    if (r != NULL)
        batch_send(b);
    h2o_mem_release_shared(b);
}

static void batch_to_thread(struct batch *b)
{
    h2o_mem_addref_shared(b);
    b->job = (struct pool_job){.work = process_slice, .over = processed};
    request_run_in_pool(b->r, &b->job);
}

/* Work that is too long for the loop runs in the thread. */
static void batch_process(struct batch *b)
{
    uint64_t until = clock_mono_us() + SLICE_US;
    for (; b->at < b->count; b->at++) {
        if (clock_mono_us() >= until || !add_item(b, &b->results[b->at], true)) {
            batch_to_thread(b);
            return;
        }
    }
    batch_send(b);
}

static void batch_start(struct request *r, enum synced_kind kind, bool single)
{
    struct batch *b = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*b), batch_free);
    *b = (struct batch){.r = r, .kind = kind};
    r->state = b;
    if (!batch_alloc(b))
        reply_error(r, ERR_UNAVAILABLE, NULL);
    else if (check_envelope(b, single) && find_agent(b))
        batch_begin(b);
}

void wp_posts_sync(struct request *r)
{
    batch_start(r, SYNCED_POST, false);
}

void wp_products_sync(struct request *r)
{
    batch_start(r, SYNCED_PRODUCT, false);
}

void wp_posts_changed(struct request *r)
{
    batch_start(r, SYNCED_POST, true);
}

void wp_products_changed(struct request *r)
{
    batch_start(r, SYNCED_PRODUCT, true);
}

void wp_coupons_sync(struct request *r)
{
    batch_start(r, SYNCED_COUPON, false);
}
