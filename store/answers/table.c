#include "store/answers/file_internal.h"
#include "store/answers/language_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

static void close_table(struct file_table *t)
{
    sqlite3_finalize(t->match);
    sqlite3_finalize(t->row);
    sqlite3_finalize(t->insert);
    sqlite3_finalize(t->remove);
    tokenizer_free(t->tokenizer);
    wordset_free(&t->light);
    buf_free(&t->light_stems);
    buf_free(&t->synonyms);
}

void file_tables_close(struct file *f)
{
    for (size_t i = 0; i < f->count; i++)
        close_table(&f->tables[i]);
    f->count = 0;
}

static int prepare(struct file *f, struct file_table *t, sqlite3_stmt **stmt, const char *format)
{
    char sql[160];
    snprintf(sql, sizeof(sql), format, (long long)t->number);
    return file_prepare(f, stmt, sql);
}

static int open_table(struct file *f, struct file_table *t)
{
    int rc = tokenizer_new(f->api, language_find(str_of(t->language)), &t->tokenizer);
    if (rc == SQLITE_OK)
        rc = prepare(f, t, &t->row, "SELECT title, taxonomy, text FROM text_%lld WHERE rowid=?1");
    if (rc == SQLITE_OK && !f->writes)
        rc = prepare(f, t, &t->match,
                     "SELECT rowid, assay_score(text_%1$lld) FROM text_%1$lld WHERE text_%1$lld "
                     "MATCH ?1 ORDER BY rowid DESC LIMIT ?2");
    if (rc == SQLITE_OK && f->writes)
        rc = prepare(f, t, &t->insert,
                     "INSERT INTO text_%lld(rowid, title, taxonomy, text) VALUES(?1, ?2, ?3, ?4)");
    if (rc == SQLITE_OK && f->writes)
        rc = prepare(f, t, &t->remove, "DELETE FROM text_%lld WHERE rowid=?1");
    return rc;
}

struct file_table *file_table_of(struct file *f, int64_t number)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->tables[i].number == number)
            return &f->tables[i];
    return NULL;
}

static enum store_status add_table(struct file *f, int64_t number, const char *language,
                                   struct file_table **out)
{
    struct file_table t = {.number = number};
    if (f->count == FILE_TABLES_MAX || language == NULL || strlen(language) >= sizeof(t.language))
        return file_refuse(f, STORE_CORRUPT, "A table of the answer index has no valid language.");
    snprintf(t.language, sizeof(t.language), "%s", language);
    enum store_status status = file_status(f, open_table(f, &t));
    if (status != STORE_OK) {
        close_table(&t);
        return status;
    }
    f->tables[f->count] = t;
    *out = &f->tables[f->count++];
    return STORE_OK;
}

static enum store_status take_table(struct file *f, sqlite3_stmt *row)
{
    struct file_table *t = file_table_of(f, sqlite3_column_int64(row, 0));
    enum store_status status = STORE_OK;
    if (t == NULL)
        status = add_table(f, sqlite3_column_int64(row, 0), column_str(row, 1).p, &t);
    if (status == STORE_OK) {
        t->documents = sqlite3_column_int64(row, 2);
        t->words = sqlite3_column_int64(row, 3);
    }
    return status;
}

enum store_status file_tables_load(struct file *f)
{
    enum store_status status = STORE_OK;
    int rc = SQLITE_ROW;
    while (status == STORE_OK && (rc = sqlite3_step(f->tables_get)) == SQLITE_ROW)
        status = take_table(f, f->tables_get);
    if (status == STORE_OK)
        status = file_status(f, rc);
    sqlite3_reset(f->tables_get);
    return status;
}

static enum store_status create_table(struct file *f, const char *tag, struct file_table **out)
{
    char sql[220];
    bind_str(f->table_add, 1, str_of(tag));
    enum store_status status = file_step(f, f->table_add);
    int64_t number = sqlite3_last_insert_rowid(f->db);
    snprintf(sql, sizeof(sql),
             "CREATE VIRTUAL TABLE text_%lld USING fts5(title, taxonomy, text,"
             " tokenize='assay %s', detail=column, columnsize=0)",
             (long long)number, tag);
    if (status == STORE_OK)
        status = file_status(f, sqlite3_exec(f->db, sql, NULL, NULL, NULL));
    return status == STORE_OK ? add_table(f, number, tag, out) : status;
}

enum store_status file_table_for(struct file *f, struct str language, struct file_table **out)
{
    const char *tag = language_find(language)->tag;
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->tables[i].language, tag) == 0) {
            *out = &f->tables[i];
            return STORE_OK;
        }
    }
    return create_table(f, tag, out);
}
