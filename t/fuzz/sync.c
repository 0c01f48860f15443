/*
 * Fuzz: the body of a sync: scanned, walked as text, its items read and made into documents and
 * coupons, which then are packed and read back.
 */
#include "core/api/wp_internal.h"
#include "core/text/json_scan.h"
#include "core/text/json_span.h"

#include <json-c/json.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void take(enum synced_kind kind, struct wp_item *item)
{
    struct buf texts = {0}, row = {0};
    struct store_synced d;
    struct wp_mistake mistake = {0};
    uint8_t hash[16] = {0};
    int64_t modified_at;
    if (wp_item_modified(item, &modified_at, &mistake) && wp_item_hash(item, hash) &&
        wp_item_json(item) != NULL && wp_document(kind, item->json, &texts, &d, &mistake)) {
        check(d.title.n > 0 && d.title.n <= STORE_SYNCED_SHORT_MAX &&
              d.url.n <= STORE_SYNCED_SHORT_MAX);
        check(d.taxonomy.n <= STORE_SYNCED_TAXONOMY_MAX && d.text.n <= STORE_SYNCED_TEXT_MAX &&
              d.price >= MONEY_NONE);
        sync_pack(&row, SYNC_UPSERT, item->wp_id, hash, modified_at, &d);
        check(row.n > d.title.n + d.text.n);
    } else {
        check(mistake.code != NULL || item->json == NULL);
    }
    wp_mistake_reset(&mistake);
    buf_free(&row);
    buf_free(&texts);
}

static void take_coupon(struct wp_item *item)
{
    struct buf texts = {0}, row = {0};
    struct store_coupon c;
    struct wp_mistake mistake = {0};
    if (wp_coupon(wp_item_json(item), STR("Europe/Berlin"), &texts, &c, &mistake)) {
        check(c.code.n > 0 && c.amount >= 0 &&
              coupon_products(c.products) <= STORE_COUPON_LIST_MAX);
        coupon_pack(&row, &c);
    } else {
        check(mistake.code != NULL);
    }
    wp_mistake_reset(&mistake);
    buf_free(&row);
    buf_free(&texts);
}

static void walk(struct str list)
{
    struct str rest = json_span_inside(list), raw;
    for (unsigned n = 0; n < STORE_BATCH_MAX && json_span_item(&rest, &raw); n++) {
        struct wp_item item;
        check(raw.n > 0 && raw.p >= list.p && raw.p + raw.n <= list.p + list.n);
        wp_item_read(raw, &item);
        if (item.wp_id != 0) {
            take(SYNCED_POST, &item);
            take(SYNCED_PRODUCT, &item);
        }
        take_coupon(&item);
        wp_item_free(&item);
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, rest, name, value;
    if (json_scan(text, JSON_SCAN_DEPTH) != JSON_SCAN_OK)
        return 0;
    while (is_space(*text.p))
        text = (struct str){text.p + 1, text.n - 1};
    while (is_space(text.p[text.n - 1]))
        text.n--;
    if (*text.p != '{' && *text.p != '[')
        return 0;
    if (*text.p == '[')
        walk(text);
    for (rest = json_span_inside(text);
         *text.p == '{' && rest.n > 0 && json_span_member(&rest, &name, &value);)
        if (value.p[0] == '[')
            walk(value);
    return 0;
}
