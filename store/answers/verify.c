/* Is all of an answer file what its writer wrote? SQLite's pages have no checksums. */
#include "store/answers/file_internal.h"

#include <stdio.h>

static int take_check(void *arg, int columns, char **values, char **names)
{
    bool *good = arg;
    (void)names;
    *good = columns == 1 && values[0] != NULL && strcmp(values[0], "ok") == 0;
    return 0;
}

/* The structure of all pages. */
static enum store_status check_pages(struct file *f)
{
    bool good = false;
    enum store_status status =
        file_status(f, sqlite3_exec(f->db, "PRAGMA quick_check(1)", take_check, &good, NULL));
    return status != STORE_OK || good
               ? status
               : file_refuse(f, STORE_CORRUPT, "The answer index fails quick_check.");
}

/* %1$lld: the table's number. The first makes FTS5 compare its postings with the texts. */
static const char integrity[] = "INSERT INTO text_%1$lld(text_%1$lld) VALUES('integrity-check')";
static const char vocabulary[] =
    "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, text_%1$lld, row)";

/* Each returns a number that is not 0 if they differ. */
static const char *const comparisons[] = {
    /* words and their documents */
    "SELECT EXISTS(SELECT 1 FROM temp.vocabulary v LEFT JOIN token t"
    " ON t.tab=%1$lld AND t.token=v.term WHERE t.documents IS NOT v.doc)",
    "SELECT (SELECT count(*) FROM token WHERE tab=%1$lld)"
    " <> (SELECT count(*) FROM temp.vocabulary)",
    /* documents */
    "SELECT EXISTS(SELECT 1 FROM text_%1$lld_content c LEFT JOIN document d"
    " ON d.id=c.id WHERE d.tab IS NOT %1$lld)",
    "SELECT (SELECT documents FROM tables WHERE number=%1$lld)"
    " IS NOT (SELECT count(*) FROM text_%1$lld_content)",
};

static enum store_status execute(struct file *f, const struct file_table *t, const char *format)
{
    char sql[160];
    snprintf(sql, sizeof(sql), format, (long long)t->number);
    return file_status(f, sqlite3_exec(f->db, sql, NULL, NULL, NULL));
}

static enum store_status compare(struct file *f, const struct file_table *t, const char *format)
{
    char sql[240];
    int64_t differs = 0;
    snprintf(sql, sizeof(sql), format, (long long)t->number);
    enum store_status status = file_number(f, sql, &differs);
    return status != STORE_OK || differs == 0
               ? status
               : file_refuse(f, STORE_CORRUPT,
                             "The tables of the answer index contradict each other.");
}

static enum store_status check_table(struct file *f, const struct file_table *t)
{
    enum store_status status = execute(f, t, integrity);
    if (status == STORE_OK)
        status = execute(f, t, vocabulary);
    for (size_t i = 0; i < sizeof(comparisons) / sizeof(*comparisons) && status == STORE_OK; i++)
        status = compare(f, t, comparisons[i]);
    sqlite3_exec(f->db, "DROP TABLE IF EXISTS temp.vocabulary", NULL, NULL, NULL);
    return status;
}

/* Each document belongs to one of the tables. */
static enum store_status check_documents(struct file *f)
{
    int64_t documents = 0, counted = 0;
    enum store_status status = file_number(f, "SELECT count(*) FROM document", &documents);
    for (size_t i = 0; i < f->count; i++)
        counted += f->tables[i].documents;
    return status != STORE_OK || documents == counted
               ? status
               : file_refuse(f, STORE_CORRUPT, FILE_LACKS_TEXTS);
}

enum store_status file_verify(struct file *f)
{
    sqlite3_db_release_memory(f->db); /* cached pages would hide damage of the file */
    enum store_status status = check_pages(f);
    if (status == STORE_OK)
        status = file_tables_load(f);
    for (size_t i = 0; i < f->count && status == STORE_OK; i++)
        status = check_table(f, &f->tables[i]);
    return status == STORE_OK ? check_documents(f) : status;
}
