/* The response to a batch: the outcome of each item. */
#include "core/api/wp_sync_internal.h"

#include "core/text/json_out.h"

#include <inttypes.h>
#include <stdio.h>

enum item_outcome {
    ITEM_QUEUED,
    ITEM_UNCHANGED,
    ITEM_STALE,
    ITEM_DELETED,
    ITEM_FAILED,
    ITEM_OUTCOMES
};

static const char *const outcome_names[ITEM_OUTCOMES] = {"queued", "skipped_unchanged",
                                                         "skipped_stale", "deleted", "failed"};

/*
 * Failures are read from the store: parsing HTML takes a different time at each attempt, but a
 * repeat must get the same response.
 */
static enum item_outcome outcome_of(const struct batch *b, const struct result *one,
                                    const struct store_answer *answer)
{
    if (!one->sent || (b->deletes && one->mistake.code != NULL))
        return ITEM_FAILED;
    enum synced_mark mark = synced_mark(answer, one->row);
    /* enum item_outcome has the order of enum synced_mark */
    return mark == SYNCED_FAILED && !b->deletes ? ITEM_FAILED : (enum item_outcome)mark;
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
                       enum item_outcome outcome)
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
    buf_adds(out, outcome_names[outcome]);
    buf_adds(out, "\"");
    if (outcome == ITEM_FAILED)
        add_mistake(out, one->mistake.code != NULL ? &one->mistake : &took_too_long);
    buf_adds(out, "}");
}

void wp_sync_render(struct buf *out, const struct batch *b, const struct store_answer *answer)
{
    uint64_t counts[ITEM_OUTCOMES] = {[ITEM_DELETED] = answer->id};
    const struct value *sync_id = &b->r->values[WP_SYNC_ID];
    for (size_t i = 0; i < b->count; i++)
        counts[outcome_of(b, &b->results[i], answer)]++;
    for (unsigned i = 0; i < ITEM_OUTCOMES; i++)
        buf_printf(out, "%s\"%s\":%" PRIu64, i == 0 ? "{" : ",", outcome_names[i], counts[i]);
    buf_adds(out, ",\"sync_id\":");
    json_text(out, sync_id->sent ? sync_id->text : (struct str){NULL, 0});
    buf_adds(out, ",\"results\":[");
    for (size_t i = 0; i < b->count; i++) {
        buf_adds(out, i == 0 ? "" : ",");
        add_result(out, b, &b->results[i], outcome_of(b, &b->results[i], answer));
    }
    buf_adds(out, "]}");
}
