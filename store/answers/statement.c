/* Statements of SQLite, and what its codes mean for the store. */
#include "store/answers/file_internal.h"

#include <stdio.h>

static enum store_status status_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return STORE_OK;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* our SQL is fixed; a damaged schema must not run code */
        return STORE_CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return STORE_BUSY;
    case SQLITE_FULL:
        return STORE_FULL;
    case SQLITE_TOOBIG:
        return STORE_INVALID;
    default:
        return STORE_IO;
    }
}

enum store_status file_status(struct file *f, int rc)
{
    enum store_status status = status_of(rc);
    if (rc == SQLITE_IOERR_SHORT_READ)
        status = STORE_CORRUPT;
    if (status != STORE_OK)
        snprintf(f->why, sizeof(f->why), "SQLite error %d: %s", rc, sqlite3_errmsg(f->db));
    return status;
}

enum store_status file_refuse(struct file *f, enum store_status status, const char *sentence)
{
    snprintf(f->why, sizeof(f->why), "%s", sentence);
    return status;
}

enum store_status file_step(struct file *f, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    enum store_status status = file_status(f, rc);
    sqlite3_reset(stmt);
    return status;
}

int file_prepare(struct file *f, sqlite3_stmt **stmt, const char *sql)
{
    return sqlite3_prepare_v3(f->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
}

enum store_status file_number(struct file *f, const char *sql, int64_t *out)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    enum store_status status = file_status(f, rc);
    sqlite3_finalize(stmt);
    return status;
}
