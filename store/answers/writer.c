#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/token_counts_internal.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

/* operations of SQLite's virtual machine between two calls of ${stop} */
#define STOP_OPERATIONS 1000

struct answers_writer {
    struct file f;
    struct token_counts counts;
    enum store_status status; /* the transaction's first error */
    bool open;                /* is a transaction open? */
};

static enum store_status prepare(struct answers_writer *w, const char *path,
                                 const uint8_t *store_id, const struct answers_options *options,
                                 bool create)
{
    enum store_status status;
    w->f.writes = true;
    if (create)
        status = file_create(&w->f, path, store_id, options);
    else
        status = file_connect(&w->f, path, options);
    return status == STORE_OK ? file_load(&w->f, store_id) : status;
}

static enum store_status open_writer(const char *path, const uint8_t *store_id,
                                     const struct answers_options *options, bool create,
                                     struct answers_writer **out, char *why, size_t why_size)
{
    struct answers_writer *w = calloc(1, sizeof(*w));
    enum store_status status = w == NULL ? STORE_BUSY : prepare(w, path, store_id, options, create);
    if (status == STORE_OK) {
        *out = w;
        return status;
    }
    snprintf(why, why_size, "%s", w == NULL ? "Out of memory." : w->f.why);
    answers_close(w);
    return status;
}

enum store_status answers_create(const char *path, const uint8_t *store_id,
                                 const struct answers_options *options, struct answers_writer **out,
                                 char *why, size_t why_size)
{
    return open_writer(path, store_id, options, true, out, why, why_size);
}

enum store_status answers_open(const char *path, const uint8_t *store_id,
                               const struct answers_options *options, struct answers_writer **out,
                               char *why, size_t why_size)
{
    return open_writer(path, store_id, options, false, out, why, why_size);
}

void answers_close(struct answers_writer *w)
{
    if (w == NULL)
        return;
    answers_abort(w);
    file_close(&w->f);
    token_counts_free(&w->counts);
    free(w);
}

static void note(struct answers_writer *w, enum store_status status)
{
    if (w->status == STORE_OK)
        w->status = status;
}

static void note_rc(struct answers_writer *w, int rc)
{
    if (w->status == STORE_OK)
        w->status = file_status(&w->f, rc);
}

static void begin(struct answers_writer *w)
{
    if (w->open)
        return;
    w->open = true;
    note(w, file_step(&w->f, w->f.begin));
}

static void add_to_table(struct answers_writer *w, struct file_table *t, const struct str *texts,
                         int change)
{
    if (w->status != STORE_OK)
        return;
    note_rc(w, token_counts_add(&w->counts, t, texts, change, &t->words));
    t->documents += change;
    if (token_counts_full(&w->counts))
        note(w, token_counts_flush(&w->counts, &w->f));
}

/* Read the old texts before their row is deleted. */
static void count_out(struct answers_writer *w, struct file_table *t, uint64_t id)
{
    struct str texts[COLUMNS];
    sqlite3_bind_int64(t->row, 1, (int64_t)id);
    int rc = sqlite3_step(t->row);
    for (int i = 0; i < COLUMNS && rc == SQLITE_ROW; i++)
        texts[i] = column_str(t->row, i);
    if (rc == SQLITE_ROW)
        add_to_table(w, t, texts, -1);
    else
        note(w, rc == SQLITE_DONE ? file_refuse(&w->f, STORE_CORRUPT, FILE_LACKS_TEXTS)
                                  : file_status(&w->f, rc));
    sqlite3_reset(t->row);
}

static void drop(struct answers_writer *w, struct file_table *t, uint64_t id)
{
    count_out(w, t, id);
    sqlite3_bind_int64(t->remove, 1, (int64_t)id);
    if (w->status == STORE_OK)
        note(w, file_step(&w->f, t->remove));
    sqlite3_bind_int64(w->f.version_drop, 1, (int64_t)id);
    if (w->status == STORE_OK)
        note(w, file_step(&w->f, w->f.version_drop));
}

static void remove_old(struct answers_writer *w, uint64_t id)
{
    sqlite3_stmt *get = w->f.version_get;
    if (w->status != STORE_OK)
        return;
    sqlite3_bind_int64(get, 1, (int64_t)id);
    int rc = sqlite3_step(get);
    int64_t number = rc == SQLITE_ROW ? sqlite3_column_int64(get, 1) : 0;
    note_rc(w, rc);
    sqlite3_reset(get);
    if (rc != SQLITE_ROW)
        return;
    struct file_table *t = file_table_of(&w->f, number);
    if (t == NULL)
        note(w, file_refuse(&w->f, STORE_CORRUPT, "A document is in a table that does not exist."));
    else
        drop(w, t, id);
}

static void insert(struct answers_writer *w, struct file_table *t, const struct answers_document *d)
{
    const struct str texts[COLUMNS] = {d->title, d->taxonomy, d->text};
    sqlite3_bind_int64(w->f.version_set, 1, (int64_t)d->id);
    sqlite3_bind_int64(w->f.version_set, 2, (int64_t)d->version);
    sqlite3_bind_int64(w->f.version_set, 3, t->number);
    sqlite3_bind_int(w->f.version_set, 4, (int)d->kind);
    note(w, file_step(&w->f, w->f.version_set));
    sqlite3_bind_int64(t->insert, 1, (int64_t)d->id);
    for (int i = 0; i < COLUMNS; i++)
        bind_str(t->insert, 2 + i, texts[i]);
    if (w->status == STORE_OK)
        note(w, file_step(&w->f, t->insert));
    add_to_table(w, t, texts, 1);
}

static bool is_id(uint64_t id)
{
    return id > 0 && id <= INT64_MAX;
}

enum store_status answers_put(struct answers_writer *w, const struct answers_document *d)
{
    struct file_table *t = NULL;
    if (!is_id(d->id) || d->title.n > INT32_MAX || d->taxonomy.n > INT32_MAX ||
        d->text.n > INT32_MAX)
        return STORE_INVALID;
    begin(w);
    remove_old(w, d->id);
    if (w->status == STORE_OK)
        note(w, file_table_for(&w->f, d->language, &t));
    if (w->status == STORE_OK)
        insert(w, t, d);
    return w->status;
}

enum store_status answers_remove(struct answers_writer *w, uint64_t id)
{
    if (!is_id(id))
        return STORE_INVALID;
    begin(w);
    remove_old(w, id);
    return w->status;
}

static void write_tables(struct answers_writer *w)
{
    for (size_t i = 0; i < w->f.count && w->status == STORE_OK; i++) {
        const struct file_table *t = &w->f.tables[i];
        sqlite3_bind_int64(w->f.table_grow, 1, t->number);
        sqlite3_bind_int64(w->f.table_grow, 2, t->documents);
        sqlite3_bind_int64(w->f.table_grow, 3, t->words);
        note(w, file_step(&w->f, w->f.table_grow));
    }
}

static void write_all(struct answers_writer *w, uint64_t position)
{
    if (w->status == STORE_OK)
        note(w, token_counts_flush(&w->counts, &w->f));
    write_tables(w);
    sqlite3_bind_int64(w->f.position_set, 1, (int64_t)position);
    sqlite3_bind_int64(w->f.position_set, 2, (int64_t)w->f.cursor.collection);
    sqlite3_bind_int64(w->f.position_set, 3, (int64_t)w->f.cursor.item);
    if (w->status == STORE_OK)
        note(w, file_step(&w->f, w->f.position_set));
    if (w->status == STORE_OK)
        note(w, file_step(&w->f, w->f.commit));
}

enum store_status answers_commit(struct answers_writer *w, uint64_t position)
{
    begin(w);
    write_all(w, position);
    enum store_status status = w->status;
    if (status == STORE_OK) {
        w->open = false;
        w->f.position = position;
    }
    answers_abort(w);
    return status;
}

/* Forget tables that the transaction created, and its counts. */
void answers_abort(struct answers_writer *w)
{
    if (!w->open) {
        file_read_position(&w->f); /* and the cursor, which the caller may have moved */
        return;
    }
    if (!sqlite3_get_autocommit(w->f.db))
        sqlite3_step(w->f.rollback);
    sqlite3_reset(w->f.rollback);
    file_tables_close(&w->f);
    token_counts_reset(&w->counts);
    w->open = false;
    w->status = file_read_position(&w->f);
    if (w->status == STORE_OK)
        w->status = file_tables_load(&w->f);
}

struct answers_cursor *answers_cursor(struct answers_writer *w)
{
    return &w->f.cursor;
}

struct verifying {
    answers_stop_fn *stop;
    void *arg;
};

static int must_stop(void *arg)
{
    const struct verifying *v = arg;
    return v->stop != NULL && v->stop(v->arg);
}

enum store_status answers_verify(struct answers_writer *w, answers_stop_fn *stop, void *arg)
{
    struct verifying v = {stop, arg};
    sqlite3_progress_handler(w->f.db, STOP_OPERATIONS, must_stop, &v);
    enum store_status status = file_verify(&w->f);
    sqlite3_progress_handler(w->f.db, 0, NULL, NULL);
    return status;
}

uint64_t answers_position(const struct answers_writer *w)
{
    return w->f.position;
}

const char *answers_why(const struct answers_writer *w)
{
    return w->f.why;
}
