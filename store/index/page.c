#include "store/index/page_internal.h"

#include "store/engine/snapshot.h"
#include "store/index/lists.h"

struct page page_of(const struct store *s, const struct store_list_query *q, list_take_fn *take,
                    void *arg)
{
    struct page p = {.s = s, .q = q, .take = take, .arg = arg, .want = q->per_page};
    uint64_t before = q->page == 0 ? 0 : q->page - 1;
    if (__builtin_mul_overflow(before, (uint64_t)q->per_page, &p.skip))
        p.skip = UINT64_MAX;
    return p;
}

bool page_stopped(void *page)
{
    const struct page *p = page;
    return store_query_must_stop(p->s, p->q);
}

enum store_status page_take(struct page *p, uint64_t id)
{
    if (p->count % 8 == 7 && store_query_must_stop(p->s, p->q))
        return STORE_AGAIN;
    enum store_status status = p->take(p->arg, id);
    p->count += status == STORE_OK;
    return status;
}
