#include "extent.h"
#include "text.h"

#include <errno.h>

/* ---- reading ---- */

bool text_part_read(MDB_val value, struct text_part *out)
{
    struct text_part_head head;
    if (value.mv_size < sizeof(head))
        return false;
    memcpy(&head, value.mv_data, sizeof(head));
    const uint8_t *p = (const uint8_t *)value.mv_data + sizeof(head);
    uint64_t bytes = sizeof(head) + (uint64_t)head.terms * 8 + ((uint64_t)head.terms + 1) * 4 + (uint64_t)head.rows * 14 + head.list_bytes;
    if (head.rows > TEXT_ROWS || value.mv_size != bytes)
        return false;
    *out = (struct text_part){.rows = head.rows, .terms = head.terms, .first = head.first};
    out->hashes = p;
    out->at = out->hashes + (size_t)head.terms * 8;
    out->ids = out->at + ((size_t)head.terms + 1) * 4;
    out->seqs = out->ids + (size_t)head.rows * 8;
    out->lengths = out->seqs + (size_t)head.rows * 4;
    out->lists = out->lengths + (size_t)head.rows * 2;
    out->end = out->lists + head.list_bytes;
    return true;
}

enum store_status text_part_get(struct store *s, MDB_txn *txn, const struct ulid *agent, uint64_t part, struct text_part *out)
{
    struct key k;
    MDB_val v;
    text_part_key(&k, SPACE_TEXT_PART, agent, part);
    enum store_status status = extent_get(s, txn, SPACE_TEXT_PART, &k, &v);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !text_part_read(v, out)))
        return store_corrupt(s, "a part of the full-text index");
    return status;
}

/* Hashes are spread evenly, so that where one stands is known nearly: a search from there, in growing steps, and then between two. */
uint32_t text_part_find(const struct text_part *p, uint64_t hash)
{
    uint32_t low = 0, high = (uint32_t)((hash >> 32) * p->terms >> 32), step = 8;
    if (p->terms == 0)
        return 0;
    if (text_load64(p->hashes, high) < hash) {
        for (low = high + 1; low + step < p->terms && text_load64(p->hashes, low + step) < hash; step *= 2)
            low += step + 1;
        high = low + step < p->terms ? low + step : p->terms;
    } else {
        for (; high > step && text_load64(p->hashes, high - step) >= hash; step *= 2)
            high -= step;
        low = high > step ? high - step + 1 : 0;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (text_load64(p->hashes, middle) < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->terms && text_load64(p->hashes, low) == hash ? low : p->terms;
}

bool text_part_list(const struct text_part *p, uint32_t term, struct text_list *out)
{
    uint32_t from = text_load32(p->at, term), to = text_load32(p->at, (size_t)term + 1), head, says;
    if (from > to || to > (size_t)(p->end - p->lists))
        return false;
    *out = (struct text_list){.at = p->lists + from, .end = p->lists + to, .row = UINT32_MAX};
    if (!text_number(&out->at, out->end, &head))
        return false;
    out->count = head >> 1;
    out->documents = out->count;
    if (head & 1) {
        if (!text_number(&out->at, out->end, &says))
            return false;
        out->documents = says & 1 ? -(int64_t)(says >> 1) : (int64_t)(says >> 1);
    }
    if (out->count == 0)
        return out->at == out->end;
    if (out->end - out->at < 3)
        return false;
    out->max_frequency = out->at[0];
    out->min_length = text_load16(out->at + 1, 0);
    out->at += 3;
    return true;
}

uint32_t text_part_row(const struct text_part *p, uint64_t seq)
{
    uint32_t low = 0, high = p->rows;
    if (seq < p->first)
        return p->rows;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (text_load32(p->seqs, middle) < seq - p->first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->rows && text_load32(p->seqs, low) == seq - p->first ? low : p->rows;
}

/* ---- making ---- */

#define NUMBER_BYTES 5 /* at most */

static uint8_t *number_to(uint8_t *to, uint32_t v)
{
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static void put_number(struct buf *b, uint32_t v)
{
    uint8_t bytes[NUMBER_BYTES];
    buf_add(b, bytes, (size_t)(number_to(bytes, v) - bytes));
}

uint32_t text_make_row(struct text_maker *m, uint64_t id, uint64_t seq, uint32_t words)
{
    if (m->rows == 0)
        m->first = seq;
    uint32_t ahead = (uint32_t)(seq - m->first);
    uint16_t length = (uint16_t)words;
    m->last = seq;
    buf_add(&m->ids, &id, sizeof(id));
    buf_add(&m->seqs, &ahead, sizeof(ahead));
    buf_add(&m->lengths, &length, sizeof(length));
    return m->rows++;
}

void text_make_term(struct text_maker *m, uint64_t hash)
{
    m->hash = hash;
    m->count = m->next_row = m->max_frequency = 0;
    m->min_length = TEXT_WORDS;
    m->documents = 0;
    buf_reset(&m->postings);
}

void text_make_posting(struct text_maker *m, uint32_t row, uint32_t frequency)
{
    uint8_t f = (uint8_t)(frequency < TEXT_FREQUENCY ? frequency : TEXT_FREQUENCY);
    if (m->lengths.failed)
        return;
    uint32_t words = text_load16((const uint8_t *)m->lengths.p, row);
    uint8_t *to = (uint8_t *)buf_reserve(&m->postings, NUMBER_BYTES + 1);
    if (to == NULL)
        return;
    uint8_t *end = number_to(to, (row - m->next_row) << 1 | (f != 1));
    if (f != 1)
        *end++ = f;
    m->postings.n += (size_t)(end - to);
    m->next_row = row + 1;
    m->count++;
    m->max_frequency = f > m->max_frequency ? f : m->max_frequency;
    m->min_length = words < m->min_length ? words : m->min_length;
}

void text_make_term_end(struct text_maker *m)
{
    if (m->count == 0 && m->documents == 0)
        return;
    uint32_t at = (uint32_t)m->lists.n;
    bool other = m->documents != m->count;
    uint8_t bounds[3] = {(uint8_t)m->max_frequency};
    uint16_t shortest = (uint16_t)m->min_length;
    memcpy(bounds + 1, &shortest, sizeof(shortest));
    buf_add(&m->hashes, &m->hash, sizeof(m->hash));
    buf_add(&m->at, &at, sizeof(at));
    put_number(&m->lists, m->count << 1 | other);
    if (other)
        put_number(&m->lists, m->documents < 0 ? (uint32_t)-m->documents << 1 | 1 : (uint32_t)m->documents << 1);
    if (m->count > 0)
        buf_add(&m->lists, bounds, sizeof(bounds));
    buf_add(&m->lists, m->postings.p, m->postings.n);
    m->lists.failed = m->lists.failed || m->postings.failed;
    m->terms++;
    m->all_postings += m->count;
}

static bool made_well(const struct text_maker *m)
{
    return buf_ok(&m->hashes) && buf_ok(&m->at) && buf_ok(&m->lists) && buf_ok(&m->ids) && buf_ok(&m->seqs) && buf_ok(&m->lengths);
}

void text_make_put(struct store_txn *t, struct text_maker *m, const struct ulid *agent, uint64_t part, struct text_part_row *out)
{
    struct text_part_head head = {.rows = m->rows, .terms = m->terms, .list_bytes = (uint32_t)m->lists.n, .first = m->first};
    struct key k;
    *out = (struct text_part_row){part, m->first, m->last, m->rows, 0, m->terms, m->all_postings};
    text_part_key(&k, SPACE_TEXT_PART, agent, part);
    buf_add(&m->at, &head.list_bytes, sizeof(head.list_bytes));
    const struct str pieces[] = {{(const char *)&head, sizeof(head)}, buf_view(&m->hashes), buf_view(&m->at),  buf_view(&m->ids),
                                 buf_view(&m->seqs),                  buf_view(&m->lengths), buf_view(&m->lists)};
    if (made_well(m))
        extent_put(t, SPACE_TEXT_PART, &k, pieces, sizeof(pieces) / sizeof(*pieces));
    else
        txn_fail(t, ENOMEM, "make a part of the full-text index");
    text_make_free(m);
}

void text_make_free(struct text_maker *m)
{
    buf_free(&m->hashes);
    buf_free(&m->at);
    buf_free(&m->lists);
    buf_free(&m->ids);
    buf_free(&m->seqs);
    buf_free(&m->lengths);
    buf_free(&m->postings);
    *m = (struct text_maker){0};
}
