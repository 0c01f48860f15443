#include "core/api/answer.h"

#include "core/http/http.h"
#include "core/api/agent.h"
#include "core/api/api.h"
#include "core/api/phrases.h"
#include "core/base/log.h"
#include "core/async/query_threads.h"
#include "core/text/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    struct query query;
    answer_done_fn *done;
    struct ulid agent;
    struct store *store; /* the thread's, while the query runs */
    enum store_status status;
    uint32_t lost; /* generation of a missing or damaged answer file; 0: none */
    char why[200];
    bool found;
    struct buf content, citations;
    struct str question, language;
    char text[]; /* copies of the query's strings */
};

static void put_citation(struct buf *out, const struct store_hit *hit)
{
    buf_printf(out, "{\"type\":\"%s\",\"wp_id\":%" PRIu64 ",\"title\":",
               hit->document.kind == SYNCED_PRODUCT ? "product" : "post", hit->document.wp_id);
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
        if (!hits[i].answers || hits[i].score * 2 < hits[0].score)
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

/* ---- in the query thread ---- */

static void take_hits(void *arg, enum store_status status, const struct store_found *found)
{
    struct finding *f = arg;
    f->status = status;
    if (status != STORE_OK)
        return;
    f->lost = found->lost;
    if (f->lost != 0)
        snprintf(f->why, sizeof(f->why), "%s", store_why(f->store));
    f->found = found->count > 0 && found->hits[0].answers;
    if (!f->found)
        return;
    put_content(&f->content, &found->hits[0], f->language);
    put_citations(&f->citations, found->hits, found->count);
    if (!buf_ok(&f->content) || !buf_ok(&f->citations))
        f->status = STORE_BUSY;
}

static bool run(struct query *q, struct store *s)
{
    struct finding *f = (struct finding *)q;
    const struct store_question question = {.agent = f->agent,
                                            .text = f->question,
                                            .language = f->language,
                                            .limit = ANSWER_CITATIONS,
                                            .excerpt_bytes = ANSWER_BYTES,
                                            .pause = query_pause,
                                            .pause_arg = q};
    buf_reset(&f->content);
    buf_reset(&f->citations);
    f->store = s;
    store_find(s, &question, take_hits, f);
    return f->status != STORE_AGAIN;
}

/* ---- on the event loop ---- */

static struct answer nothing_found(struct str language)
{
    return (struct answer){.content = phrase_of(language, PHRASE_NOTHING),
                           .citations = STR("[]"),
                           .low_confidence = true};
}

static void reply(struct request *r, struct finding *f)
{
    if (!f->query.done) {
        query_late(r);
        return;
    }
    if (f->status != STORE_OK) {
        reply_store_error(r, f->status);
        return;
    }
    struct answer answer = {.content = buf_view(&f->content), .citations = buf_view(&f->citations)};
    if (!f->found)
        answer = nothing_found(f->language);
    f->done(r, &answer);
}

static void have_file_built(struct request *r, const struct finding *f)
{
    const struct store_change change = {.kind = CHANGE_ANSWERS,
                                        .fields = ANSWERS_NOTE_LOST,
                                        .agent = f->agent,
                                        .attempt = f->lost,
                                        .code = ANSWERS_FORMAT};
    log_warn("requesting the rebuild of an answer file: %s", f->why);
    writer_client_send(r->http->writer, &change);
}

static void over(struct query *q, struct waiter *w)
{
    struct request *r = request_of(w);
    struct finding *f = (struct finding *)q;
    if (r != NULL && f->lost != 0)
        have_file_built(r, f);
    if (r != NULL)
        reply(r, f);
    buf_free(&f->content);
    buf_free(&f->citations);
    free(f);
}

/* The agent's language and workspace. */
struct asked {
    enum store_status status;
    uint64_t workspace;
    char language[36];
};

/* The setting is a JSON string: "de". */
static void take_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct asked *a = arg;
    a->status = status;
    if (status != STORE_OK)
        return;
    a->workspace = agent->workspace;
    struct str value = agent_setting(agent, STR("language_default"));
    if (value.n > 2 && value.n <= sizeof(a->language) + 1)
        snprintf(a->language, sizeof(a->language), "%.*s", (int)value.n - 2, value.p + 1);
}

static void find(struct request *r, const struct ulid *agent, const struct asked *asked,
                 struct str question, answer_done_fn *done)
{
    const struct str language = str_of(asked->language);
    struct finding *f = malloc(sizeof(*f) + question.n + language.n);
    if (f == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *f = (struct finding){.query = {.workspace = asked->workspace, .run = run, .over = over},
                          .done = done,
                          .agent = *agent,
                          .question = {f->text, question.n},
                          .language = {f->text + question.n, language.n}};
    memcpy(f->text, question.p, question.n);
    memcpy(f->text + question.n, language.p, language.n);
    request_query(r, &f->query);
}

void answer_find(struct request *r, const struct ulid *agent, struct str question,
                 answer_done_fn *done)
{
    struct asked asked = {.status = STORE_OK};
    struct answer answer = {.citations = STR("[]")};
    store_agent_get(r->store, agent, take_agent, &asked);
    const struct str language = str_of(asked.language);
    if (asked.status != STORE_OK && asked.status != STORE_NOT_FOUND) {
        reply_store_error(r, asked.status);
    } else if (phrase_small_talk(language, question, &answer.content)) {
        done(r, &answer);
    } else if (asked.status == STORE_NOT_FOUND) { /* just deleted: the writer refuses the change */
        answer = nothing_found(language);
        done(r, &answer);
    } else {
        find(r, agent, &asked, question, done);
    }
}
