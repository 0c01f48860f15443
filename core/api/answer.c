#include "answer.h"

#include "agent.h"
#include "api.h"
#include "phrases.h"
#include "../http/json_out.h"

#include <inttypes.h>
#include <stdio.h>

struct finding {
    struct request *r;
    struct answer *answer;
    struct str language;
    enum store_status status;
};

/* The agent's language, as take_agent notes it. */
struct asked {
    char language[36];
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
    if (hit->document.image_url.n > 0) {
        buf_adds(out, ",\"image_url\":");
        json_string(out, hit->document.image_url);
    }
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
static void put_money(struct buf *out, const struct store_synced *d, int64_t money)
{
    int64_t scale = 1;
    for (unsigned i = 0; i < d->exponent; i++)
        scale *= 10;
    int64_t units = money_minor_units(money, d->exponent);
    buf_printf(out, "%" PRId64, units / scale);
    if (d->exponent > 0)
        buf_printf(out, ".%0*" PRId64, (int)d->exponent, units % scale);
    buf_printf(out, " %s", d->currency);
}

/* ", 59.90 USD (regular price 79.90 USD)" */
static void put_price(struct buf *out, const struct store_synced *d, struct str language)
{
    int64_t now = d->on_sale && d->sale_price != MONEY_NONE ? d->sale_price : d->price;
    int64_t regular = d->regular_price != MONEY_NONE ? d->regular_price : d->price;
    if (now == MONEY_NONE || d->exponent > 4)
        return;
    buf_adds(out, ", ");
    put_money(out, d, now);
    if (!d->on_sale || regular <= now)
        return;
    buf_adds(out, " (");
    buf_str(out, phrase_of(language, PHRASE_REGULAR_PRICE));
    buf_adds(out, " ");
    put_money(out, d, regular);
    buf_adds(out, ")");
}

static void put_stock(struct buf *out, enum stock_status stock, struct str language)
{
    static const enum phrase phrases[] = {[STOCK_IN] = PHRASE_IN_STOCK,
                                          [STOCK_OUT] = PHRASE_OUT_OF_STOCK,
                                          [STOCK_BACKORDER] = PHRASE_BACKORDER};
    if (stock == STOCK_UNKNOWN)
        return;
    buf_adds(out, ", ");
    buf_str(out, phrase_of(language, phrases[stock]));
}

static void put_content(struct buf *out, const struct store_hit *hit, struct str language)
{
    const struct store_synced *d = &hit->document;
    bool product = d->kind == SYNCED_PRODUCT;
    if (product || hit->excerpt.n == 0)
        buf_str(out, d->title);
    if (product) {
        put_price(out, d, language);
        put_stock(out, d->stock, language);
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
    put_content(&content, &hits[0], f->language);
    put_citations(&citations, hits, count);
    if (buf_ok(&content) && buf_ok(&citations))
        *f->answer = (struct answer){.content = api_copy(f->r, buf_view(&content)), .citations = api_copy(f->r, buf_view(&citations))};
    else
        f->status = STORE_BUSY;
    buf_free(&content);
    buf_free(&citations);
}

/* The setting is a JSON string: "de". */
static void take_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct asked *a = arg;
    a->status = status;
    a->language[0] = '\0';
    if (status != STORE_OK)
        return;
    struct str value = agent_setting(agent, STR("language_default"));
    if (value.n > 2 && value.n <= sizeof(a->language) + 1)
        snprintf(a->language, sizeof(a->language), "%.*s", (int)value.n - 2, value.p + 1);
}

enum store_status answer_find(struct request *r, const struct ulid *agent, struct str question, struct answer *out)
{
    struct asked asked = {.status = STORE_OK};
    struct str reply;
    store_agent_get(r->store, agent, take_agent, &asked);
    /* STORE_NOT_FOUND: the agent has just been deleted, and the change is refused. */
    if (asked.status != STORE_OK && asked.status != STORE_NOT_FOUND)
        return asked.status;
    const struct str language = str_of(asked.language);
    struct finding f = {.r = r, .answer = out, .language = language};
    if (phrase_small_talk(language, question, &reply)) {
        *out = (struct answer){.content = reply, .citations = STR("[]")};
        return STORE_OK;
    }
    *out = (struct answer){.content = phrase_of(language, PHRASE_NOTHING),
                           .citations = STR("[]"),
                           .low_confidence = true};
    store_find(r->store, agent, question, ANSWER_CITATIONS, ANSWER_BYTES, take_hits, &f);
    return f.status;
}
