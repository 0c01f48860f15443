#include "store/answers/file_internal.h"

#include "store/answers/answers.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TIMEOUT_MS 5000
#define WAL_PAGES 1000
#define WAL_PAGES_MOST 4000

static enum store_status run(struct file *f, const char *sql)
{
    return file_status(f, sqlite3_exec(f->db, sql, NULL, NULL, NULL));
}

/*
 * After a commit. A passive checkpoint does not block readers, but the WAL grows while there are
 * always some; so from time to time one waits for them, for milliseconds.
 */
static int checkpoint(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)arg;
    if (pages >= WAL_PAGES_MOST)
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    else if (pages >= WAL_PAGES)
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK; /* a later one writes the rest */
}

static enum store_status connect(struct file *f, const char *path,
                                 const struct answers_options *options)
{
    size_t cache = options == NULL || options->cache_bytes == 0 ? 1 << 20 : options->cache_bytes;
    int flags = f->writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    char sql[200];
    int rc =
        sqlite3_open_v2(path, &f->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(f->db, LOCK_TIMEOUT_MS);
    if (rc == SQLITE_OK)
        rc = tokenizer_register(f->db, &f->api);
    if (rc != SQLITE_OK)
        return file_status(f, rc);
    if (f->writes)
        sqlite3_wal_hook(f->db, checkpoint, NULL);
    snprintf(sql, sizeof(sql),
             "PRAGMA cache_size=-%zu; PRAGMA mmap_size=0; PRAGMA synchronous=NORMAL;"
             "PRAGMA journal_size_limit=0; PRAGMA secure_delete=OFF; PRAGMA temp_store=MEMORY; "
             "PRAGMA trusted_schema=ON",
             cache / 1024);
    return run(f, sql);
}

static enum store_status make(struct file *f, const uint8_t *store_id)
{
    char sql[400], hex[2 * ANSWERS_STORE_ID_BYTES + 1];
    for (size_t i = 0; i < ANSWERS_STORE_ID_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", store_id[i]);
    enum store_status status = run(f, "PRAGMA journal_mode=WAL");
    if (status == STORE_OK)
        status =
            run(f, "BEGIN IMMEDIATE;"
                   "CREATE TABLE meta(store BLOB NOT NULL, position INTEGER NOT NULL,"
                   " collection INTEGER NOT NULL, item INTEGER NOT NULL);"
                   "CREATE TABLE tables(number INTEGER PRIMARY KEY, language TEXT NOT NULL UNIQUE,"
                   " documents INTEGER NOT NULL, words INTEGER NOT NULL);"
                   "CREATE TABLE document(id INTEGER PRIMARY KEY, version INTEGER NOT NULL,"
                   " tab INTEGER NOT NULL, kind INTEGER NOT NULL);"
                   "CREATE TABLE token(tab INTEGER NOT NULL, token TEXT NOT NULL,"
                   " documents INTEGER NOT NULL, PRIMARY KEY(tab, token)) WITHOUT ROWID");
    snprintf(sql, sizeof(sql),
             "INSERT INTO meta VALUES(x'%s', 0, 0, 0); PRAGMA application_id=%d; PRAGMA "
             "user_version=%d; "
             "COMMIT",
             hex, ANSWERS_APPLICATION_ID, ANSWERS_FORMAT);
    return status == STORE_OK ? run(f, sql) : status;
}

static enum store_status same_store(struct file *f, const uint8_t *store_id)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(f->db, "SELECT store FROM meta", -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    enum store_status status = file_status(f, rc);
    const void *id = rc == SQLITE_ROW ? sqlite3_column_blob(stmt, 0) : NULL;
    if (status == STORE_OK &&
        (id == NULL || sqlite3_column_bytes(stmt, 0) != ANSWERS_STORE_ID_BYTES))
        status = file_refuse(f, STORE_CORRUPT, "The answer index has no store id.");
    else if (status == STORE_OK && memcmp(id, store_id, ANSWERS_STORE_ID_BYTES) != 0)
        status = file_refuse(f, STORE_STALE, "The answer index was built from another store.");
    sqlite3_finalize(stmt);
    return status;
}

static enum store_status judge(struct file *f, const uint8_t *store_id)
{
    int64_t application = 0, format = 0;
    enum store_status status = file_number(f, "PRAGMA application_id", &application);
    if (status == STORE_OK)
        status = file_number(f, "PRAGMA user_version", &format);
    if (status == STORE_OK && application != ANSWERS_APPLICATION_ID)
        status = file_refuse(f, STORE_CORRUPT, "The file is not an answer index.");
    if (status == STORE_OK && format != ANSWERS_FORMAT)
        status = file_refuse(f, STORE_OTHER_FORMAT, "The answer index has another format version.");
    if (status == STORE_OK)
        status = same_store(f, store_id);
    return status;
}

/* Columns: statement of struct file; SQL; for writers only. */
static const struct {
    size_t stmt;
    const char *sql;
    bool writes;
} statements[] = {
    {offsetof(struct file, begin), "BEGIN", false},
    {offsetof(struct file, commit), "COMMIT", false},
    {offsetof(struct file, rollback), "ROLLBACK", false},
    {offsetof(struct file, position_get), "SELECT position, collection, item FROM meta", false},
    {offsetof(struct file, tables_get), "SELECT number, language, documents, words FROM tables",
     false},
    {offsetof(struct file, version_get), "SELECT version, tab, kind FROM document WHERE id=?1",
     false},
    {offsetof(struct file, documents_with), "SELECT documents FROM token WHERE tab=?1 AND token=?2",
     false},
    {offsetof(struct file, position_set), "UPDATE meta SET position=?1, collection=?2, item=?3",
     true},
    {offsetof(struct file, table_add),
     "INSERT INTO tables(language, documents, words) VALUES(?1, 0, 0)", true},
    {offsetof(struct file, table_grow), "UPDATE tables SET documents=?2, words=?3 WHERE number=?1",
     true},
    {offsetof(struct file, version_set), "INSERT INTO document VALUES(?1, ?2, ?3, ?4)", true},
    {offsetof(struct file, version_drop), "DELETE FROM document WHERE id=?1", true},
    {offsetof(struct file, token_add),
     "INSERT INTO token VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET documents=documents+?3", true},
    {offsetof(struct file, token_drop),
     "DELETE FROM token WHERE tab=?1 AND token=?2 AND documents<=0", true},
};
#define STATEMENTS (sizeof(statements) / sizeof(*statements))

static sqlite3_stmt **statement(struct file *f, size_t i)
{
    return (sqlite3_stmt **)(void *)((char *)f + statements[i].stmt);
}

static enum store_status prepare_all(struct file *f)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < STATEMENTS && rc == SQLITE_OK; i++)
        if (f->writes || !statements[i].writes)
            rc = file_prepare(f, statement(f, i), statements[i].sql);
    return file_status(f, rc);
}

enum store_status file_read_position(struct file *f)
{
    int rc = sqlite3_step(f->position_get);
    if (rc == SQLITE_ROW) {
        f->position = (uint64_t)sqlite3_column_int64(f->position_get, 0);
        f->cursor = (struct answers_cursor){(uint64_t)sqlite3_column_int64(f->position_get, 1),
                                            (uint64_t)sqlite3_column_int64(f->position_get, 2)};
    }
    enum store_status status = file_status(f, rc);
    sqlite3_reset(f->position_get);
    return status;
}

enum store_status file_create(struct file *f, const char *path, const uint8_t *store_id,
                              const struct answers_options *options)
{
    int fd =
        /* SQLite gives -wal and -shm the same mode */
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return file_refuse(f, STORE_EXISTS, "The answer index exists already.");
    if (fd < 0)
        return file_refuse(f, errno == ENOSPC ? STORE_FULL : STORE_IO, strerror(errno));
    close(fd);
    enum store_status status = connect(f, path, options);
    return status == STORE_OK ? make(f, store_id) : status;
}

static bool is_missing(const char *path)
{
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/*
 * Must this process not open the file? A lack of descriptors is another error. This function does
 * not open it: closing it again would release SQLite's locks on it.
 */
static bool is_forbidden(const char *path, bool writes)
{
    struct stat st;
    return (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) ||
           (faccessat(AT_FDCWD, path, writes ? R_OK | W_OK : R_OK, AT_EACCESS) != 0 &&
            errno == EACCES);
}

enum store_status file_connect(struct file *f, const char *path,
                               const struct answers_options *options)
{
    enum store_status status = is_missing(path) ? STORE_NOT_FOUND : connect(f, path, options);
    if (status == STORE_IO && is_missing(path)) /* created a moment ago */
        status = STORE_NOT_FOUND;
    if (status == STORE_NOT_FOUND)
        return file_refuse(f, status, "The answer index does not exist.");
    bool read_only = f->writes && status == STORE_OK && sqlite3_db_readonly(f->db, "main") != 0;
    if ((status == STORE_IO || read_only) && is_forbidden(path, f->writes))
        return file_refuse(f, STORE_CORRUPT,
                           "The answer index may not be opened: its owner or mode.");
    return status;
}

enum store_status file_load(struct file *f, const uint8_t *store_id)
{
    enum store_status status = judge(f, store_id);
    if (status == STORE_OK)
        status = prepare_all(f);
    if (status == STORE_OK)
        status = file_read_position(f);
    return status == STORE_OK ? file_tables_load(f) : status;
}

void file_close(struct file *f)
{
    file_tables_close(f);
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(*statement(f, i));
    sqlite3_close_v2(f->db);
    f->db = NULL;
}
