#include "answer.h"

#include "api.h"
#include "../http/json_out.h"

#include <inttypes.h>

static const char nothing[] = "I found nothing about that on this site. Leave your address, or ask for a person, and somebody will answer.";

struct finding {
    struct request *r;
    struct answer *answer;
    enum store_status status;
};

static void put_citation(struct buf *out, const struct store_hit *hit)
{
    buf_printf(out, "{\"type\":\"%s\",\"wp_id\":%" PRIu64 ",\"title\":", hit->document.kind == SYNCED_PRODUCT ? "product" : "post",
               hit->document.wp_id);
    json_string(out, hit->document.title);
    buf_adds(out, ",\"url\":");
    json_string(out, hit->document.url);
    buf_adds(out, ",\"excerpt\":");
    json_string(out, hit->excerpt);
    buf_adds(out, "}");
}

static void put_citations(struct buf *out, const struct store_hit *hits, size_t count)
{
    buf_adds(out, "[");
    for (size_t i = 0; i < count; i++) {
        if (hits[i].share < ANSWER_SHARE || hits[i].score * 2 < hits[0].score)
            continue;
        buf_adds(out, i == 0 ? "" : ",");
        put_citation(out, &hits[i]);
    }
    buf_adds(out, "]");
}

/* "79.90 USD" */
static void put_price(struct buf *out, const struct store_synced *d)
{
    int64_t scale = 1;
    for (unsigned i = 0; i < d->exponent; i++)
        scale *= 10;
    int64_t price = money_minor_units(d->price, d->exponent);
    buf_printf(out, "%" PRId64, price / scale);
    if (d->exponent > 0)
        buf_printf(out, ".%0*" PRId64, (int)d->exponent, price % scale);
    buf_printf(out, " %s", d->currency);
}

static void put_content(struct buf *out, const struct store_hit *hit)
{
    const struct store_synced *d = &hit->document;
    bool product = d->kind == SYNCED_PRODUCT;
    if (product || hit->excerpt.n == 0)
        buf_str(out, d->title);
    if (product && d->price != MONEY_NONE && d->exponent <= 4) {
        buf_adds(out, ", ");
        put_price(out, d);
    }
    if (product && hit->excerpt.n > 0)
        buf_adds(out, ": ");
    buf_str(out, hit->excerpt);
}

static void take_hits(void *arg, enum store_status status, const struct store_hit *hits, size_t count)
{
    struct finding *f = arg;
    struct buf content = {0}, citations = {0};
    f->status = status == STORE_NOT_FOUND ? STORE_OK : status;
    if (status != STORE_OK || hits[0].share < ANSWER_SHARE)
        return;
    put_content(&content, &hits[0]);
    put_citations(&citations, hits, count);
    if (buf_ok(&content) && buf_ok(&citations))
        *f->answer = (struct answer){.content = api_copy(f->r, buf_view(&content)), .citations = api_copy(f->r, buf_view(&citations))};
    else
        f->status = STORE_BUSY;
    buf_free(&content);
    buf_free(&citations);
}

enum store_status answer_find(struct request *r, const struct ulid *agent, struct str question, struct answer *out)
{
    struct finding f = {.r = r, .answer = out};
    *out = (struct answer){.content = {nothing, sizeof(nothing) - 1}, .citations = STR("[]"), .low_confidence = true};
    store_find(r->store, agent, question, ANSWER_CITATIONS, ANSWER_BYTES, take_hits, &f);
    return f.status;
}
