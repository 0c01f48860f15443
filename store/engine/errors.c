#include "store/engine/errors.h"

#include "store/engine/environment.h"

#include <errno.h>
#include <stdio.h>

/* Columns: status, phrase. */
static const char *const status_texts[STORE_STATUSES] = {
    [STORE_OK] = "done",
    [STORE_NOT_FOUND] = "there is no such record",
    [STORE_EXISTS] = "that name is taken",
    [STORE_PRECONDITION] = "the record has another version",
    [STORE_KEY_REUSED] = "the idempotency key was used with another body",
    [STORE_NO_PASSWORD] = "privacy 2 needs a password",
    [STORE_NOT_PROTECTED] = "a password needs privacy 2",
    [STORE_QUEUE_FULL] = "too many reports of this workspace are pending",
    [STORE_STALE] = "results of an older attempt",
    [STORE_FULL] = "the store is full",
    [STORE_BUSY] = "too many processes read the store",
    [STORE_OTHER_FORMAT] = "the store has another format",
    [STORE_INVALID] = "malformed",
    [STORE_CORRUPT] = "the store is damaged",
    [STORE_AGAIN] = "the query was stopped",
    [STORE_REBUILDING] = "the index of reports is being rebuilt",
    [STORE_DAMAGED] = "the index of reports is damaged",
    [STORE_AWAY] = "no node of the cluster leads",
    [STORE_TOO_MANY] = "the maximum number is reached",
    [STORE_IO] = "an error of the disk or the system",
};

const char *store_status_text(enum store_status status)
{
    return (unsigned)status < STORE_STATUSES ? status_texts[status] : "unknown";
}

/* Columns: code of LMDB or of the system, our status, advice; NULL: LMDB's message. */
static const struct {
    int rc;
    enum store_status status;
    const char *advice;
} translations[] = {
    {MDB_NOTFOUND, STORE_NOT_FOUND, NULL},
    {MDB_MAP_FULL, STORE_FULL, "the map is full: raise store.map_size"},
    {ENOSPC, STORE_FULL, "the disk is full: free disk space, or move data_dir"},
    {EDQUOT, STORE_FULL, "the disk quota is used up"},
    {EFBIG, STORE_FULL, "the file size limit is reached: raise it (LimitFSIZE, ulimit -f)"},
    {MDB_READERS_FULL, STORE_BUSY, "every reader slot is taken"},
    {MDB_CORRUPTED, STORE_CORRUPT, "data.mdb is damaged: restore a backup"},
    {MDB_PAGE_NOTFOUND, STORE_CORRUPT, "data.mdb is damaged: restore a backup"},
    {MDB_INVALID, STORE_CORRUPT, "data.mdb is not a store, or is damaged: restore a backup"},
    {MDB_INCOMPATIBLE, STORE_CORRUPT,
     "data.mdb is not a store of Assay, or is damaged: restore a backup"},
    {MDB_VERSION_MISMATCH, STORE_OTHER_FORMAT, "data.mdb was written by another version of LMDB"},
    {EACCES, STORE_IO, "permission denied: run as the owner of the data directory"},
    {EPERM, STORE_IO, "permission denied: run as the owner of the data directory"},
    {EROFS, STORE_IO, "the file system is read-only"},
};

enum store_status store_fail(struct store *s, int rc, const char *what)
{
    enum store_status status = STORE_IO;
    const char *advice = NULL;
    for (size_t i = 0; i < sizeof(translations) / sizeof(*translations); i++) {
        if (translations[i].rc == rc) {
            status = translations[i].status;
            advice = translations[i].advice;
        }
    }
    snprintf(s->why, sizeof(s->why), "could not %s: %s", what,
             advice != NULL ? advice : mdb_strerror(rc));
    return status;
}

enum store_status store_corrupt(struct store *s, const char *what)
{
    snprintf(s->why, sizeof(s->why), "%s is damaged: run assay check, and restore a backup", what);
    return STORE_CORRUPT;
}

const char *store_why(const struct store *s)
{
    return s->why;
}
