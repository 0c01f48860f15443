/*
 * What the engine calls in the layers that stand on it (index, records, answers). The engine
 * includes none of their headers: store/tables.c lists the layers, the changes and the checks.
 */
#ifndef ASSAY_STORE_ENGINE_LAYERS_H
#define ASSAY_STORE_ENGINE_LAYERS_H

#include "store/engine/environment.h"

/* Each callback may be NULL. */
struct layer {
    /* a struct store, and memory shared by all struct stores of one environment */
    bool (*open)(struct store *s, const struct store_options *options); /* false: out of memory */
    void (*close)(struct store *s);
    bool (*share)(struct shared_env *shared); /* false: out of memory */
    void (*unshare)(struct shared_env *shared);

    void (*snapshot_end)(struct store *s);
    bool (*tidy)(struct store *s); /* store_tidy */

    /* the write transaction */
    void (*txn_begin)(struct store_txn *t);
    void (*txn_write_back)(struct store_txn *t); /* before the commit: write what it gathered */
    void (*txn_end)(struct store_txn *t, bool failed); /* after it was committed or undone */
    void (*txn_free)(struct store_txn *t);             /* when the writer closes */

    /* Files beside data.mdb: move them between two data directories; delete them. 0, or an errno */
    int (*files_move)(const char *from, const char *to);
    void (*files_delete)(const char *dir);
};

/* Ends with NULL. */
extern const struct layer *const layers[];

/*
 * apply_fn: carries out a change of one kind. It checks first and writes after: a status other than
 * STORE_OK means that nothing was written.
 */
typedef enum store_status apply_fn(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer);

/*
 * Columns: what carries the change out; is it background work, which store_txn_stop_when ends; may
 * a power cut undo its commit, because nobody waits for it; does it change local spaces alone, so
 * that a store that follows carries it out too.
 */
struct change_row {
    apply_fn *apply;
    bool background, lazy, local;
};
extern const struct change_row change_rows[CHANGE_KINDS];

#endif
