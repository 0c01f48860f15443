/*
 * Names of answer files: DATA_DIR/answers/AGENT-GENERATION-STORE.db, with SQLite's -wal and -shm.
 * STORE is the store's id in hexadecimal digits.
 */
#ifndef ASSAY_STORE_ANSWERS_PATH_H
#define ASSAY_STORE_ANSWERS_PATH_H

#include "store/engine/format.h"

#define ANSWERS_PATH_BYTES (4096 + 128)

struct answers_name {
    struct ulid agent;
    uint32_t generation;
    uint8_t store_id[STORE_ID_BYTES];
};

/* answers_path(out, dir, name): the file's path; ${dir}: the data directory. */
void answers_path(char out[ANSWERS_PATH_BYTES], const char *dir, const struct answers_name *name);

/*
 * answers_name_read(text, out): parse the name of a file, or of its -wal or -shm; false: another
 * file.
 */
bool answers_name_read(const char *text, struct answers_name *out);

/* answers_unlink(dir, name): delete the file, its -wal and its -shm, if they exist. */
void answers_unlink(const char *dir, const struct answers_name *name);

#endif
