/* Reads gradings, newest first. */
#include "store/records/grading.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/records/ulid_keys.h"

struct page {
    struct store_gradings_query query;
    size_t count;
    struct store_grading items[STORE_GRADINGS_MAX];
};

static bool page_is_full(const struct page *page)
{
    return page->count == page->query.limit || page->count == STORE_GRADINGS_MAX;
}

/* The last item of the page is there: does it belong to the page? */
static void page_keep(struct page *page)
{
    uint32_t before = page->query.before;
    if (before == 0 || page->items[page->count].number < before)
        page->count++;
}

/* A grading that has no row: grading_keep gives it one before the next row is written. */
static void page_of_record(struct page *page, const struct store_report *r)
{
    if (r->score < 0)
        return;
    page->items[0] = (struct store_grading){.number = GRADING_OF_RECORD,
                                            .score = r->score,
                                            .result = r->result,
                                            .issues_high = r->issues_high,
                                            .issues_medium = r->issues_medium,
                                            .issues_low = r->issues_low,
                                            .issues_passed = r->issues_passed,
                                            .generated_at = r->generated_at};
    page_keep(page);
}

static enum store_status page_of_rows(struct page *page, struct store *s, struct cursor *w)
{
    enum store_status status = STORE_OK;
    for (; status == STORE_OK && !page_is_full(page); status = cursor_next(w)) {
        if (!grading_look(w->k, w->v, &page->items[page->count]))
            return store_corrupt(s, "a grading of a report");
        page_keep(page);
    }
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status page_read(struct page *page, struct store *s, const struct store_report *r)
{
    struct cursor w = {0};
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK || page_is_full(page))
        return status;
    key_id(&w.prefix, SPACE_GRADING, r->id);
    status = cursor_prefix(s, txn, &w, DB_GRADING, true);
    if (status == STORE_OK)
        status = page_of_rows(page, s, &w);
    else if (status == STORE_NOT_FOUND)
        page_of_record(page, r);
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

struct report_found {
    enum store_status status;
    struct store_report report;
};

static void report_found(void *arg, enum store_status status, const struct store_report *r)
{
    struct report_found *found = arg;
    found->status = status;
    if (status == STORE_OK)
        found->report = *r;
}

void store_grading_list(struct store *s, uint64_t workspace, uint64_t report,
                        const struct store_gradings_query *query, store_grading_list_fn *done,
                        void *arg)
{
    struct report_found r;
    struct page page;
    page.query = *query;
    page.count = 0;
    store_report_get(s, workspace, report, false, report_found, &r);
    if (r.status == STORE_OK)
        r.status = page_read(&page, s, &r.report);
    done(arg, r.status, page.items, r.status == STORE_OK ? page.count : 0);
}
