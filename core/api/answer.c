#include "core/api/answer_internal.h"

#include "core/http/http.h"
#include "core/api/agent.h"
#include "core/api/api_internal.h"
#include "core/api/phrases_internal.h"
#include "core/base/log.h"
#include "core/async/query_threads.h"
#include "core/text/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer_search {
    struct query query;
    answer_done_fn *done;
    struct ulid agent;
    struct store *store; /* the thread's, while the query runs */
    enum store_status status;
    uint32_t lost;  /* generation of a missing or damaged answer file; 0: none */
    char why[1024]; /* store_why of the thread's store, if a file is lost or a read failed */
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

static void on_hits(void *arg, enum store_status status, const struct store_found *found)
{
    struct answer_search *search = arg;
    search->status = status;
    if (status != STORE_OK || found->lost != 0)
        snprintf(search->why, sizeof(search->why), "%s", store_why(search->store));
    if (status != STORE_OK)
        return;
    search->lost = found->lost;
    search->found = found->count > 0 && found->hits[0].answers;
    if (!search->found)
        return;
    put_content(&search->content, &found->hits[0], search->language);
    put_citations(&search->citations, found->hits, found->count);
    if (!buf_ok(&search->content) || !buf_ok(&search->citations))
        search->status = STORE_BUSY;
}

static bool run(struct query *q, struct store *s)
{
    struct answer_search *search = (struct answer_search *)q;
    const struct store_question question = {.agent = search->agent,
                                            .text = search->question,
                                            .language = search->language,
                                            .limit = ANSWER_CITATIONS,
                                            .excerpt_bytes = ANSWER_BYTES,
                                            .stop = query_must_stop,
                                            .stop_arg = q};
    buf_reset(&search->content);
    buf_reset(&search->citations);
    search->store = s;
    store_find(s, &question, on_hits, search);
    return search->status != STORE_AGAIN;
}

/* ---- on the event loop ---- */

static struct answer no_answer(struct str language)
{
    return (struct answer){.content = phrase_of(language, PHRASE_NOT_FOUND),
                           .citations = STR("[]"),
                           .low_confidence = true};
}

static void reply(struct request *r, struct answer_search *search)
{
    if (!search->query.done) {
        query_late(r);
        return;
    }
    if (search->status != STORE_OK) {
        reply_store_failure(r, search->status, search->why);
        return;
    }
    struct answer answer = {.content = buf_view(&search->content),
                            .citations = buf_view(&search->citations)};
    if (!search->found)
        answer = no_answer(search->language);
    search->done(r, &answer);
}

static void request_rebuild(struct request *r, const struct answer_search *search)
{
    const struct store_change change = {.kind = CHANGE_ANSWERS,
                                        .fields = ANSWERS_NOTE_LOST,
                                        .agent = search->agent,
                                        .attempt = search->lost,
                                        .code = ANSWERS_FORMAT};
    log_warn("requesting the rebuild of an answer file: %s", search->why);
    writer_client_send_local(r->http->writer, &change);
}

static void over(struct query *q, struct waiter *w)
{
    struct request *r = request_of(w);
    struct answer_search *search = (struct answer_search *)q;
    if (r != NULL && search->lost != 0)
        request_rebuild(r, search);
    if (r != NULL)
        reply(r, search);
    buf_free(&search->content);
    buf_free(&search->citations);
    free(search);
}

/* The agent's language and workspace. */
struct agent_info {
    enum store_status status;
    uint64_t workspace;
    char language[36];
};

/* The setting is a JSON string: "de". */
static void on_agent(void *arg, enum store_status status, const struct store_agent *agent)
{
    struct agent_info *a = arg;
    a->status = status;
    if (status != STORE_OK)
        return;
    a->workspace = agent->workspace;
    struct str value = agent_setting(agent, STR("language_default"));
    if (value.n > 2 && value.n <= sizeof(a->language) + 1)
        snprintf(a->language, sizeof(a->language), "%.*s", (int)value.n - 2, value.p + 1);
}

static void start_search(struct request *r, const struct ulid *agent, const struct agent_info *info,
                         struct str question, answer_done_fn *done)
{
    const struct str language = str_of(info->language);
    struct answer_search *search = malloc(sizeof(*search) + question.n + language.n);
    if (search == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *search =
        (struct answer_search){.query = {.workspace = info->workspace, .run = run, .over = over},
                               .done = done,
                               .agent = *agent,
                               .question = {search->text, question.n},
                               .language = {search->text + question.n, language.n}};
    memcpy(search->text, question.p, question.n);
    memcpy(search->text + question.n, language.p, language.n);
    request_query(r, &search->query);
}

void answer_find(struct request *r, const struct ulid *agent, struct str question,
                 answer_done_fn *done)
{
    struct agent_info info = {.status = STORE_OK};
    struct answer answer = {.citations = STR("[]")};
    store_agent_get(r->store, agent, on_agent, &info);
    const struct str language = str_of(info.language);
    if (info.status != STORE_OK && info.status != STORE_NOT_FOUND) {
        reply_store_error(r, info.status);
    } else if (phrase_small_talk(language, question, &answer.content)) {
        done(r, &answer);
    } else if (info.status == STORE_NOT_FOUND) { /* just deleted: the writer refuses the change */
        answer = no_answer(language);
        done(r, &answer);
    } else {
        start_search(r, agent, &info, question, done);
    }
}
