/*
 * store_check: every record against its derived rows and counters, and the reverse. The engine
 * checks pages and walks the spaces; each layer checks its own records. Read-only; runs beside a
 * writer.
 */
#ifndef ASSAY_STORE_ENGINE_CHECK_H
#define ASSAY_STORE_ENGINE_CHECK_H

#include "store/backup.h"
#include "store/engine/cursor.h"

struct check {
    struct store *s;
    MDB_txn *txn; /* the snapshot of the current batch */
    struct counters_record counters;
    store_progress_fn *progress;
    store_problem_fn *problem;
    void *arg;
    uint64_t done, total, problems;
    bool stopped, records_only;
    struct check_log log; /* index/check.c */
    uint64_t unreadable;  /* the last workspace whose index could not be read */
};

/* Looks at the current record of ${w}. */
typedef void check_fn(struct check *c, const struct cursor *w);

/* Columns: space, what checks one of its records, what they are called. Ends with look NULL. */
struct check_row {
    enum space space;
    check_fn *look;
    const char *what;
};
extern const struct check_row check_rows[];

/* What follows the records. Columns: check, what is reported to store_on_stage, or NULL. */
struct check_stage {
    enum store_status (*run)(struct check *c);
    const char *what;
};
extern const struct check_stage check_stages[];

/* check_say(c, format, …): report a problem. */
void check_say(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* check_get(c, space, key, out): false if it is missing. A disk error is reported as a problem. */
bool check_get(struct check *c, enum space space, struct key *key, MDB_val *out);
/* check_step(c, n): count ${n} more records. */
void check_step(struct check *c, uint64_t n);
/* check_renew(c): take a new snapshot. */
enum store_status check_renew(struct check *c);
/* check_report_at(c, id, out): read a report's head. */
bool check_report_at(struct check *c, uint64_t id, struct store_report *out);

#endif
