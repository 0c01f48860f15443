/* The history of a report: a page of its gradings, newest first. */
#include "core/api/api_internal.h"
#include "core/api/render_internal.h"
#include "core/http/http.h"

/* A page ends early rather than exceed API_LIST_MAX: its last row and meta take less than this. */
#define LAST_ROW_BYTES ((size_t)32 << 10)

struct history {
    struct request *r;
    struct str url;
    size_t limit;
};

static void put_meta(struct request *r, struct buf *out, uint32_t next_after)
{
    const struct str ignored = api_ignored(r);
    buf_adds(out, next_after != 0 ? "],\"meta\":{\"has_more\":true,\"next_after\":"
                                  : "],\"meta\":{\"has_more\":false,\"next_after\":null");
    if (next_after != 0)
        buf_u64(out, next_after);
    buf_str(out, ignored.n == 0 ? STR("") : STR(",\"ignored\":"));
    buf_str(out, ignored);
    buf_adds(out, "},\"status\":200}");
}

static void gradings_found(void *arg, enum store_status status, const struct store_grading *items,
                           size_t count)
{
    const struct history *h = arg;
    struct buf *out = api_body(h->r);
    size_t n = 0;
    if (status != STORE_OK) {
        reply_store_error(h->r, status);
        return;
    }
    api_list_begin(out);
    for (; n < count && n < h->limit && out->n < API_LIST_MAX - LAST_ROW_BYTES; n++) {
        buf_adds(out, n == 0 ? "" : ",");
        render_grading(&items[n], h->url, out);
    }
    put_meta(h->r, out, n < count ? items[n - 1].number : 0);
    api_reply(h->r, 200, out);
}

/* The history changes only when the report does, so it has the report's version. */
static void report_found(void *arg, enum store_status status, const struct store_report *report)
{
    struct request *r = arg;
    const struct value *v = r->values;
    if (status != STORE_OK) {
        reply_store_error(r, status);
        return;
    }
    if (reply_etag(r, report->version))
        return;
    struct history h = {r, report->url, api_per_page[v[HISTORY_PER_PAGE].number]};
    /* one more than the page, to know whether there are more */
    const struct store_gradings_query query = {.before = (uint32_t)v[HISTORY_AFTER].number,
                                               .limit = (unsigned)h.limit + 1};
    store_grading_list(r->store, r->workspace, report->id, &query, gradings_found, &h);
}

void reports_history(struct request *r)
{
    uint64_t id;
    if (api_id(r->args[0], &id))
        store_report_get(r->store, r->workspace, id, false, report_found, r);
    else
        reply_error(r, ERR_NOT_FOUND, NULL);
}
