/*
 * One open index file: connection, statements, tables. Writer and reader are built on it.
 *
 *   meta      one row: store id, position, progress of the build
 *   tables    number, language tag, documents, words (tokens of those documents)
 *   document  id -> version, table, kind; its id is the rowid of its FTS5 row
 *   token     table, token -> number of its documents that have it
 *   text_N    FTS5 (title, taxonomy, text) of the table with number N
 *
 * The FTS5 tables keep their content: SQLite 3.40 has no contentless_delete, so a delete needs the
 * old texts, and ranking reads the texts of the best candidates. With detail=column and
 * columnsize=0 the index has columns but no positions, which only phrases need.
 */
#ifndef ASSAY_STORE_ANSWERS_FILE_INTERNAL_H
#define ASSAY_STORE_ANSWERS_FILE_INTERNAL_H

#include "store/answers/answers.h"
#include "store/answers/tokenizer_internal.h"

#define ANSWERS_APPLICATION_ID 0x41737941 /* "AsyA" */
/* languages with their own table; others share the table without a language */
#define FILE_TABLES_MAX 64
#define COLUMNS 3
#define FILE_LACKS_TEXTS "The answer index lacks the texts of a document."

struct synonym {
    int group; /* words of one group are synonyms */
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

/*
 * file_create(f, ...): create the file and connect. file_connect(f, ...): connect to an existing
 * file. file_load(f, ...): check it, prepare statements, read position and tables. file_close(f):
 * close all. ${f} is zeroed before, except for ${f}->writes.
 */
enum store_status file_create(struct file *f, const char *path, const uint8_t *store_id,
                              const struct answers_options *options);
enum store_status file_connect(struct file *f, const char *path,
                               const struct answers_options *options);
enum store_status file_load(struct file *f, const uint8_t *store_id);
void file_close(struct file *f);

/*
 * file_verify(f): read all pages from the disk, and compare the tables with each other (verify.c).
 */
enum store_status file_verify(struct file *f);

/* file_read_position(f): into ${f}->position and ${f}->cursor. */
enum store_status file_read_position(struct file *f);

/* file_tables_load(f): read new tables and all counts. file_tables_close(f): forget all. */
enum store_status file_tables_load(struct file *f);
void file_tables_close(struct file *f);

/*
 * file_table_of(f, number): NULL: none. file_table_for: the table of a language, created if
 * necessary.
 */
struct file_table *file_table_of(struct file *f, int64_t number);
enum store_status file_table_for(struct file *f, struct str language, struct file_table **out);

/* ---- statement.c ---- */

/*
 * file_status(f, rc): translate an SQLite code and keep its message in ${f}->why.
 * file_refuse(f, status, sentence): keep ${sentence} there; returns ${status}.
 * file_prepare(f, stmt, sql): prepare a statement that is kept.
 * file_step(f, stmt): step a statement that returns no row, and reset it.
 * file_number(f, sql, out): the number that a statement returns; -1: it returns no row.
 */
enum store_status file_status(struct file *f, int rc);
enum store_status file_refuse(struct file *f, enum store_status status, const char *sentence);
int file_prepare(struct file *f, sqlite3_stmt **stmt, const char *sql);
enum store_status file_step(struct file *f, sqlite3_stmt *stmt);
enum store_status file_number(struct file *f, const char *sql, int64_t *out);

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
