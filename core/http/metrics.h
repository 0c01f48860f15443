/*
 * /metrics in Prometheus' text format 0.0.4: a table of metrics, each with a function that writes
 * its samples. Counters are in shared memory, so any worker can answer for the whole server.
 */
#ifndef ASSAY_HTTP_METRICS_H
#define ASSAY_HTTP_METRICS_H

#include "core/http/http.h"

struct metric {
    const char *name; /* a counter ends in _total */
    const char *type; /* counter, gauge or histogram */
    const char *help; /* one sentence */
    void (*write)(struct http *h, const struct metric *m, struct buf *out); /* the samples */
};

extern const struct metric metrics[];
extern const size_t metrics_count;

/* metrics_write(h, out): all metrics. */
void metrics_write(struct http *h, struct buf *out);

#endif
