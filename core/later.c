#include "later.h"

#include "link.h"
#include "http/request.h"

#include <stdlib.h>

struct later {
    struct pending pending;
    struct later *next;
    request_fn *done;
};

void request_later(struct request *r, request_fn *done)
{
    struct later *later = malloc(sizeof(*later));
    if (later == NULL) {
        reply_error(r, ERR_UNAVAILABLE, NULL);
        return;
    }
    *later = (struct later){.pending = {r}, .done = done};
    struct later **at = &r->worker->later;
    while (*at != NULL)
        at = &(*at)->next;
    *at = later;
    r->pending = &later->pending;
}

void later_run(struct worker *w)
{
    struct later *later = w->later;
    if (later == NULL)
        return;
    struct request *r = later->pending.request;
    request_fn *done = later->done;
    w->later = later->next;
    free(later);
    if (r == NULL)
        return;
    r->pending = NULL;
    done(r);
    store_read_end(w->store);
}

int later_wait_ms(const struct worker *w, int most)
{
    return w->later != NULL ? 0 : most;
}

void later_free(struct worker *w)
{
    while (w->later != NULL) {
        struct later *later = w->later;
        w->later = later->next;
        free(later);
    }
}
