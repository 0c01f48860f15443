#include "store/records/grading.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/records/ulid_keys.h"

#define HTTP_STATUS_MAX 999

static void grading_key(struct key *k, uint64_t report, uint32_t number)
{
    key_id(k, SPACE_GRADING, report);
    key_u64(k, number);
}

static bool is_score(uint8_t score, uint8_t result)
{
    return score <= 100 && result >= RESULT_GOOD && result <= RESULT_BAD;
}

/* The attempt at the end of a row's key. */
static bool look_number(MDB_val k, uint32_t *out)
{
    const uint8_t *at = (const uint8_t *)k.mv_data + 1, *end = at + k.mv_size - 1;
    uint64_t report, number;
    bool good = k.mv_size > 1 && key_read_u64(&at, end, &report) &&
                key_read_u64(&at, end, &number) && at == end && number <= UINT32_MAX;
    *out = good ? (uint32_t)number : 0;
    return *out != 0;
}

bool grading_look(MDB_val k, MDB_val v, struct store_grading *out)
{
    const struct grading_record *r = v.mv_data;
    if (!look_number(k, &out->number) || v.mv_size < sizeof(*r) ||
        v.mv_size != sizeof(*r) + r->protocol_n + r->version_n + r->url_n + r->failed_n ||
        !is_score(r->score, r->result))
        return false;
    const char *at = (const char *)(r + 1);
    out->score = r->score;
    out->result = r->result;
    out->issues_high = r->issues_high;
    out->issues_medium = r->issues_medium;
    out->issues_low = r->issues_low;
    out->issues_passed = r->issues_passed;
    out->generated_at = r->generated_at;
    out->facts = (struct grading_facts){.http_status = r->http_status,
                                        .ttfb_ms = r->ttfb_ms,
                                        .load_ms = r->load_ms,
                                        .page_bytes = r->page_bytes};
    out->facts.protocol = taken(&at, r->protocol_n);
    out->facts.version = taken(&at, r->version_n);
    out->facts.final_url = taken(&at, r->url_n);
    out->failed = taken(&at, r->failed_n);
    return true;
}

/* ${n} bytes of printable ASCII at most; spaces only if ${spaces}. */
static bool is_plain(struct str text, size_t n, bool spaces)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] > '~' || text.p[i] < (spaces ? ' ' : '!'))
            return false;
    return text.n <= n;
}

/* Ids, each separated from the next by one space. */
static bool is_list(struct str ids)
{
    for (size_t i = 0; i < ids.n; i++)
        if (ids.p[i] == ' ' && (i == 0 || i + 1 == ids.n || ids.p[i - 1] == ' '))
            return false;
    return is_plain(ids, STORE_FAILED_MAX, true);
}

bool grading_well_formed(const struct store_change *c)
{
    return c->facts.http_status <= HTTP_STATUS_MAX && is_list(c->failed) &&
           is_plain(c->facts.protocol, STORE_PROTOCOL_MAX, false) &&
           is_plain(c->facts.version, STORE_ASSAY_VERSION_MAX, false) &&
           is_plain(c->facts.final_url, URL_MAX_BYTES, false);
}

size_t grading_bytes(const struct store_change *c)
{
    return 2 * sizeof(struct grading_record) + c->facts.protocol.n + c->facts.version.n +
           c->facts.final_url.n + c->failed.n;
}

/* Delete the oldest row if there is one too many. */
static void drop_oldest(struct store_txn *t, uint64_t report)
{
    struct cursor w = {0};
    struct key oldest = {0};
    key_id(&w.prefix, SPACE_GRADING, report);
    enum store_status status = t->error;
    if (status == STORE_OK)
        status = cursor_prefix(t->s, t->mdb, &w, DB_GRADING, true);
    for (unsigned n = 0; status == STORE_OK && n < STORE_GRADINGS_MAX; n++)
        status = cursor_next(&w);
    if (status == STORE_OK)
        key_bytes(&oldest, w.k.mv_data, w.k.mv_size);
    cursor_end(&w);
    if (oldest.n != 0)
        txn_del(t, SPACE_GRADING, &oldest);
}

static struct grading_record record_of(const struct store_report *r, const struct store_change *c)
{
    return (struct grading_record){.score = (uint8_t)r->score,
                                   .result = (uint8_t)r->result,
                                   .protocol_n = (uint8_t)c->facts.protocol.n,
                                   .version_n = (uint8_t)c->facts.version.n,
                                   .http_status = (uint16_t)c->facts.http_status,
                                   .failed_n = (uint16_t)c->failed.n,
                                   .issues_high = r->issues_high,
                                   .issues_medium = r->issues_medium,
                                   .issues_low = r->issues_low,
                                   .issues_passed = r->issues_passed,
                                   .ttfb_ms = c->facts.ttfb_ms,
                                   .load_ms = c->facts.load_ms,
                                   .page_bytes = c->facts.page_bytes,
                                   .generated_at = r->generated_at};
}

static void write_row(struct store_txn *t, uint32_t number, const struct store_report *r,
                      const struct store_change *c)
{
    struct key k;
    struct str url = c->facts.final_url;
    if (str_eq(url, r->url))
        url.n = 0;
    struct grading_record head = record_of(r, c);
    head.url_n = (uint16_t)url.n;
    grading_key(&k, r->id, number);
    char *to = txn_reserve(t, SPACE_GRADING, &k,
                           sizeof(head) + head.protocol_n + head.version_n + url.n + c->failed.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&head, sizeof(head)});
    to = append_str(append_str(to, c->facts.protocol), c->facts.version);
    append_str(append_str(to, url), c->failed);
}

void grading_put(struct store_txn *t, const struct store_report *r, const struct store_change *c)
{
    write_row(t, r->attempt, r, c);
    if (r->attempt > STORE_GRADINGS_MAX)
        drop_oldest(t, r->id);
}

void grading_keep(struct store_txn *t, const struct store_report *old)
{
    static const struct store_change nothing_known;
    struct cursor w = {0};
    if (old->score < 0 || t->error != STORE_OK)
        return;
    key_id(&w.prefix, SPACE_GRADING, old->id);
    enum store_status status = cursor_prefix(t->s, t->mdb, &w, DB_GRADING, false);
    cursor_end(&w);
    if (status == STORE_NOT_FOUND)
        write_row(t, GRADING_OF_RECORD, old, &nothing_known);
}

void grading_drop_all(struct store_txn *t, uint64_t report)
{
    for (bool more = true; more && t->error == STORE_OK;) {
        struct cursor w = {0};
        struct key first = {0};
        key_id(&w.prefix, SPACE_GRADING, report);
        more = cursor_prefix(t->s, t->mdb, &w, DB_GRADING, false) == STORE_OK;
        if (more)
            key_bytes(&first, w.k.mv_data, w.k.mv_size);
        cursor_end(&w);
        if (more)
            txn_del(t, SPACE_GRADING, &first);
    }
}
