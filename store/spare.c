#include "spare.h"

#include <stdlib.h>
#include <string.h>

/* The first run behind ${page}, or the count. */
static size_t run_behind(const struct spare *p, uint64_t page)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->runs[middle].page < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_run(struct spare *p, size_t i)
{
    memmove(&p->runs[i], &p->runs[i + 1], (p->count - i - 1) * sizeof(*p->runs));
    p->count--;
}

uint64_t spare_take(struct spare *p, uint64_t count)
{
    size_t best = p->count;
    for (size_t i = 0; i < p->count; i++)
        if (p->runs[i].count >= count && (best == p->count || p->runs[i].count < p->runs[best].count))
            best = i;
    if (best == p->count) {
        uint64_t page = p->end;
        p->end += count;
        return page;
    }
    uint64_t page = p->runs[best].page;
    p->runs[best].page += count;
    p->runs[best].count -= count;
    if (p->runs[best].count == 0)
        drop_run(p, best);
    return page;
}

static bool insert_run(struct spare *p, size_t at, struct page_run run)
{
    if (p->count == p->cap) {
        size_t cap = p->cap == 0 ? 64 : p->cap * 2;
        struct page_run *more = realloc(p->runs, cap * sizeof(*more));
        if (more == NULL)
            return false;
        p->runs = more;
        p->cap = cap;
    }
    memmove(&p->runs[at + 1], &p->runs[at], (p->count - at) * sizeof(*p->runs));
    p->runs[at] = run;
    p->count++;
    return true;
}

void spare_give(struct spare *p, struct page_run run)
{
    size_t at = run_behind(p, run.page);
    bool before = at > 0 && p->runs[at - 1].page + p->runs[at - 1].count == run.page;
    bool behind = at < p->count && run.page + run.count == p->runs[at].page;
    if (before) {
        p->runs[at - 1].count += run.count;
        if (behind) {
            p->runs[at - 1].count += p->runs[at].count;
            drop_run(p, at);
        }
    } else if (behind) {
        p->runs[at].page = run.page;
        p->runs[at].count += run.count;
    } else {
        insert_run(p, at, run);
    }
}

static int by_page(const void *a, const void *b)
{
    const struct page_run *x = a, *y = b;
    return x->page < y->page ? -1 : x->page > y->page;
}

bool spare_rest(struct spare *p, uint64_t first, struct page_run *used, size_t count)
{
    p->count = 0;
    p->end = first;
    if (count != 0)
        qsort(used, count, sizeof(*used), by_page);
    for (size_t i = 0; i < count; i++) {
        if (used[i].page > p->end && !insert_run(p, p->count, (struct page_run){p->end, used[i].page - p->end}))
            return false;
        if (used[i].page + used[i].count > p->end)
            p->end = used[i].page + used[i].count;
    }
    return true;
}

void spare_free(struct spare *p)
{
    free(p->runs);
    *p = (struct spare){0};
}
