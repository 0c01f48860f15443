/*
 * What /metrics tells, in Prometheus' text format 0.0.4: a table of metrics, each with a function
 * that writes its samples. Any worker answers for all of them, since what is counted is in shared
 * memory. Worker processes only.
 */
#ifndef ASSAY_HTTP_METRICS_H
#define ASSAY_HTTP_METRICS_H

#include "core/http/http.h"

struct metric {
    const char *name; /* of a counter it ends in _total */
    const char *type; /* counter or gauge */
    const char *help; /* one sentence */
    /* the metric's samples: one metrics_sample each */
    void (*write)(struct http *h, const struct metric *m, struct buf *out);
};

extern const struct metric metrics[];
extern const size_t metrics_count;

/*
 * metrics_sample(out, m, label, value, number): a line; ${label} NULL: without one. Its ${value}
 * needs no escaping.
 */
void metrics_sample(struct buf *out, const struct metric *m, const char *label, const char *value,
                    uint64_t number);

/* metrics_write(h, out): all of them. */
void metrics_write(struct http *h, struct buf *out);

#endif
