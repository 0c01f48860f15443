/* What a list of the store answered: its status and its total. */
#ifndef ASSAY_BENCH_LIST_ANSWER_H
#define ASSAY_BENCH_LIST_ANSWER_H

#include "store/store.h"

struct list_answer {
    enum store_status status;
    uint64_t total;
};

static inline void bench_got_reports(void *arg, enum store_status status, uint64_t total,
                                     const struct store_report *reports, size_t count)
{
    (void)reports;
    (void)count;
    *(struct list_answer *)arg = (struct list_answer){status, total};
}

static inline void bench_got_projects(void *arg, enum store_status status, uint64_t total,
                                      const struct store_project *projects, size_t count)
{
    (void)projects;
    (void)count;
    *(struct list_answer *)arg = (struct list_answer){status, total};
}

#endif
