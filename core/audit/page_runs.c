#include "core/audit/page_runs_internal.h"

#include <stdlib.h>

/* Marks are used in rotation. This many runs may be lost before two have the same mark. */
static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
#define MARKS (sizeof(marks) - 1)

static bool grow(struct page_runs *runs)
{
    if (runs->first > runs->capacity / 2) {
        memmove(runs->list, runs->list + runs->first,
                (runs->end - runs->first) * sizeof(*runs->list));
        runs->end -= runs->first;
        runs->first = 0;
        return true;
    }
    size_t capacity = runs->capacity == 0 ? 1024 : runs->capacity * 2;
    struct page_run *more = realloc(runs->list, capacity * sizeof(*more));
    if (more == NULL)
        return false;
    runs->list = more;
    runs->capacity = capacity;
    return true;
}

char page_runs_add(struct page_runs *runs, struct page_run run)
{
    char mark = marks[(runs->number + runs->end - runs->first) % MARKS];
    if (runs->end == runs->capacity && !grow(runs))
        runs->failed = true;
    else
        runs->list[runs->end++] = run;
    return mark;
}

bool page_runs_take(struct page_runs *runs, char mark, struct page_run *out)
{
    const char *at = memchr(marks, mark, MARKS);
    size_t ahead =
        at == NULL ? SIZE_MAX : ((size_t)(at - marks) + MARKS - runs->number % MARKS) % MARKS;
    if (ahead >= runs->end - runs->first)
        return false;
    *out = runs->list[runs->first + ahead];
    runs->number += ahead + 1;
    runs->first += ahead + 1;
    if (runs->first == runs->end)
        runs->first = runs->end = 0;
    return true;
}

void page_runs_free(struct page_runs *runs)
{
    free(runs->list);
    *runs = (struct page_runs){0};
}
