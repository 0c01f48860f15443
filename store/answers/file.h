/*
 * One open index file: connection, statements, tables. Private to store/answers; writer and
 * reader are built on it.
 *
 *   meta      one row: store id, position, where the build of the file goes on
 *   tables    number, language tag, documents, words (tokens of those documents)
 *   document  id -> version, table, kind; the rowid of its FTS5 row is its id
 *   token     table, token -> how many of its documents have it
 *   text_N    FTS5 (title, taxonomy, text) of the table with number N
 *
 * The FTS5 tables keep their own content. SQLite 3.40 has no contentless_delete, so a delete
 * needs the old texts, and ranking reads the texts of the best candidates. With detail=column and
 * columnsize=0 the index has columns but no positions, which only phrases need.
 */
#ifndef ASSAY_ANSWERS_FILE_H
#define ASSAY_ANSWERS_FILE_H

#include "store/answers/answers.h"
#include "store/answers/tokenizer.h"

#define ANSWERS_APPLICATION_ID 0x41737941 /* "AsyA" */
#define FILE_TABLES_MAX 64 /* languages with a table of their own; more share the one without */
#define COLUMNS 3

struct synonym {
    int group; /* words of one group mean the same */
    uint8_t n;
    char form[TOKENIZER_WORD_MAX];
};

struct file_table {
    int64_t number;
    char language[3]; /* tag of a struct language; "" is no language */
    int64_t documents, words;
    struct tokenizer *tokenizer;
    struct wordset light; /* stems of the language's light words; made for questions */
    struct buf light_stems;
    struct buf synonyms;           /* struct synonym of the language; made for questions */
    sqlite3_stmt *match;           /* ?1: expression, ?2: rows -> rowid, score; reader */
    sqlite3_stmt *row;             /* ?1: id -> title, taxonomy, text */
    sqlite3_stmt *insert, *remove; /* writer */
};

struct file {
    sqlite3 *db;
    fts5_api *api;
    bool writes;
    char why[256];
    uint64_t position;
    struct answers_cursor cursor;
    struct file_table tables[FILE_TABLES_MAX];
    size_t count;
    sqlite3_stmt *begin, *commit, *rollback, *position_get, *tables_get, *version_get,
        *documents_with;
    /* writer */
    sqlite3_stmt *position_set, *table_add, *table_grow, *version_set, *version_drop, *token_add,
        *token_drop;
};

/* file_status(f, rc): translate an SQLite code, and keep its sentence in ${f}->why. */
enum store_status file_status(struct file *f, int rc);

/*
 * file_create(f, ...): make the file and connect. file_connect(f, ...): connect to an existing
 * one. file_load(f, ...): judge its contents, prepare statements, read position and tables.
 * file_close(f): undo all. ${f} is zero before, but for ${f}->writes.
 */
enum store_status file_create(struct file *f, const char *path, const uint8_t *store_id,
                              const struct answers_options *options);
enum store_status file_connect(struct file *f, const char *path,
                               const struct answers_options *options);
enum store_status file_load(struct file *f, const uint8_t *store_id);
void file_close(struct file *f);

/* file_quick_check(f): SQLite's own, of the structure of all pages. */
enum store_status file_quick_check(struct file *f);

/* file_step(f, stmt): step a statement that returns no row, and reset it. */
enum store_status file_step(struct file *f, sqlite3_stmt *stmt);

/* file_read_position(f): into ${f}->position and ${f}->cursor. */
enum store_status file_read_position(struct file *f);

/* file_tables_load(f): note new tables and everybody's counts. file_tables_close(f): forget all. */
enum store_status file_tables_load(struct file *f);
void file_tables_close(struct file *f);

/* file_table_of(f, number): NULL if there is none. file_table_for: a language's, made if needed. */
struct file_table *file_table_of(struct file *f, int64_t number);
enum store_status file_table_for(struct file *f, struct str language, struct file_table **out);

/* file_prepare(f, stmt, sql): prepared to be kept. */
int file_prepare(struct file *f, sqlite3_stmt **stmt, const char *sql);

static inline void bind_str(sqlite3_stmt *stmt, int at, struct str s)
{
    sqlite3_bind_text(stmt, at, s.n == 0 ? "" : s.p, (int)s.n, SQLITE_STATIC);
}

static inline struct str column_str(sqlite3_stmt *stmt, int at)
{
    const char *p = (const char *)sqlite3_column_text(stmt, at);
    return (struct str){p, p == NULL ? 0 : (size_t)sqlite3_column_bytes(stmt, at)};
}

#endif
