#include "store/records/sync_rows.h"

#include "store/engine/schema.h"
#include "store/records/document.h"

#include <endian.h>

/*
 * Rows of a CHANGE_SYNC: a head, and for an upsert the document as it is stored, without an owner.
 */

struct PACKED row_head {
    uint8_t action, hash[16];
    uint64_t wp_id;
    int64_t modified_at;
    uint32_t document_n;
};

static struct document_record record_of(const struct store_synced *d)
{
    struct document_record r = {
        .on_sale = d->on_sale,
        .stock = (uint8_t)d->stock,
        .exponent = (uint8_t)d->exponent,
        .modified_at = d->modified_at,
        .price = d->price,
        .regular_price = d->regular_price,
        .sale_price = d->sale_price,
        .text_n = (uint32_t)d->text.n,
        .title_n = (uint16_t)d->title.n,
        .taxonomy_n = (uint16_t)d->taxonomy.n,
        .url_n = (uint16_t)d->url.n,
        .language_n = (uint16_t)d->language.n,
        .type_n = (uint16_t)d->type.n,
        .image_url_n = (uint16_t)d->image_url.n,
        .sku_n = (uint16_t)d->sku.n,
    };
    memcpy(r.currency, d->currency, sizeof(r.currency));
    return r;
}

static void document_pack(struct buf *out, const struct store_synced *d)
{
    const struct document_record r = record_of(d);
    const struct str texts[] = {d->title,    d->taxonomy, d->text,      d->url,
                                d->language, d->type,     d->image_url, d->sku};
    buf_add(out, &r, sizeof(r));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        buf_str(out, texts[i]);
}

void sync_pack(struct buf *out, enum sync_action action, uint64_t wp_id, const uint8_t hash[16],
               int64_t modified_at, const struct store_synced *document)
{
    struct row_head head = {.action = (uint8_t)action, .wp_id = wp_id, .modified_at = modified_at};
    size_t at = out->n;
    if (hash != NULL)
        memcpy(head.hash, hash, sizeof(head.hash));
    buf_add(out, &head, sizeof(head));
    if (document == NULL)
        return;
    document_pack(out, document);
    if (!buf_ok(out))
        return;
    head.document_n = (uint32_t)(out->n - at - sizeof(head));
    memcpy(out->p + at, &head, sizeof(head));
}

static bool document_well_formed(struct str bytes)
{
    struct store_synced d;
    return schema_read_document((MDB_val){bytes.n, (void *)(uintptr_t)bytes.p}, &d) &&
           d.title.n <= STORE_SYNCED_SHORT_MAX && d.url.n <= STORE_SYNCED_SHORT_MAX &&
           d.taxonomy.n <= STORE_SYNCED_TAXONOMY_MAX && d.text.n <= STORE_SYNCED_TEXT_MAX &&
           d.language.n <= STORE_SYNCED_SHORT_MAX && d.type.n <= STORE_SYNCED_SHORT_MAX &&
           d.image_url.n <= STORE_SYNCED_SHORT_MAX && d.sku.n <= STORE_SYNCED_SHORT_MAX;
}

bool sync_row_next(struct str *rest, struct sync_row *out)
{
    struct row_head head;
    if (rest->n < sizeof(head))
        return false;
    memcpy(&head, rest->p, sizeof(head));
    if (head.action > SYNC_SEEN || head.wp_id == 0 || head.document_n > rest->n - sizeof(head))
        return false;
    *out = (struct sync_row){.action = (enum sync_action)head.action,
                             .wp_id = head.wp_id,
                             .modified_at = head.modified_at};
    out->document = (struct str){rest->p + sizeof(head), head.document_n};
    memcpy(out->hash, head.hash, sizeof(out->hash));
    if (out->action == SYNC_UPSERT ? !document_well_formed(out->document) : out->document.n != 0)
        return false;
    *rest = (struct str){rest->p + sizeof(head) + head.document_n,
                         rest->n - sizeof(head) - head.document_n};
    return true;
}

/* ---- results: two bits a row ---- */

#define MARK_BITS 2
_Static_assert(STORE_BATCH_MAX *MARK_BITS <= 8 * 2 * ULID_BYTES,
               "the marks of a batch fit an answer");

static uint8_t *mark_byte(struct store_answer *answer, size_t row)
{
    size_t at = row * MARK_BITS / 8;
    return at < ULID_BYTES ? &answer->first.b[at] : &answer->second.b[at - ULID_BYTES];
}

void synced_mark_set(struct store_answer *answer, size_t row, enum synced_mark mark)
{
    *mark_byte(answer, row) |= (uint8_t)(mark << row * MARK_BITS % 8);
}

enum synced_mark synced_mark(const struct store_answer *answer, size_t row)
{
    struct store_answer copy = *answer;
    return (enum synced_mark)(*mark_byte(&copy, row) >> row * MARK_BITS % 8 & 3);
}

/* ---- coupons ---- */

uint64_t coupon_product(struct str list, size_t i)
{
    uint64_t id;
    memcpy(&id, list.p + i * sizeof(id), sizeof(id));
    return le64toh(id);
}

int64_t money_minor_units(int64_t money, unsigned exponent)
{
    int64_t scale = MONEY_SCALE;
    for (; exponent > 0 && scale > 1; exponent--)
        scale /= 10;
    return (money + scale / 2) / scale;
}
