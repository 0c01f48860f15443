/*
 * Full-text index of one agent's documents: one SQLite file with FTS5 tables. LMDB is not involved.
 * The file is derived: it can be deleted and rebuilt from the store.
 *
 * One writer (one thread of one process) changes a file. Any number of processes and threads read
 * it meanwhile; each handle belongs to one thread at a time, and none survives a fork.
 *
 * Documents lie in one FTS5 table for each language, whose tokenizer has the stop words and the
 * stemmer of that language (language_internal.h). A question is asked in every table and the
 * results are merged.
 *
 *   STORE_NOT_FOUND     the file is missing; the document is not in it
 *   STORE_EXISTS        answers_create: the file exists
 *   STORE_OTHER_FORMAT  the file has another format version: delete and rebuild it
 *   STORE_STALE         the file belongs to another store: delete and rebuild it
 *   STORE_CORRUPT       the file is damaged: delete and rebuild it
 *   STORE_BUSY          cancelled by ${stop}; locked for over five seconds; out of memory
 *
 * SQLite pages have no checksums, so the caller compares id and version of each hit with the store.
 */
#ifndef ASSAY_STORE_ANSWERS_ANSWERS_H
#define ASSAY_STORE_ANSWERS_ANSWERS_H

#include "store/store.h"

#define ANSWERS_STORE_ID_BYTES 16 /* random id of the store that the documents belong to */
#define ANSWERS_LANGUAGE_MAX 35   /* bytes of a language tag */
#define ANSWERS_HITS_MAX 16

struct answers_options {
    size_t cache_bytes; /* page cache of the handle; 0: 1 MiB */
};

struct answers_document {
    uint64_t id, version;  /* id: 1 to INT64_MAX */
    struct str language;   /* BCP 47 tag ("pt-BR"); only the primary subtag counts; may be empty */
    enum synced_kind kind; /* pages rank before products that fit equally */
    struct str title, taxonomy, text; /* UTF-8; taxonomy includes the SKU */
};

/* ---- writing ---- */

struct answers_writer;

/*
 * answers_create(path, store_id, options, out, why, why_size): create the file, at position 0.
 * answers_open(...): open an existing one. ${options} may be NULL. On an error ${why} is a
 * sentence and nothing is left open. answers_close(w): roll back what is not committed, free ${w}.
 */
enum store_status answers_create(const char *path, const uint8_t *store_id,
                                 const struct answers_options *options, struct answers_writer **out,
                                 char *why, size_t why_size) __attribute__((warn_unused_result));
enum store_status answers_open(const char *path, const uint8_t *store_id,
                               const struct answers_options *options, struct answers_writer **out,
                               char *why, size_t why_size) __attribute__((warn_unused_result));
void answers_close(struct answers_writer *w);

/*
 * Progress of the build: the file has the documents of earlier collections, and those of this one
 * up to the item. ANSWERS_WHOLE: it has all. A new file begins at 0, 0. answers_cursor(w): the
 * cursor of the last commit; the next commit writes what the caller changes.
 */
#define ANSWERS_WHOLE UINT64_MAX
struct answers_cursor {
    uint64_t collection, item;
};
struct answers_cursor *answers_cursor(struct answers_writer *w);

/*
 * answers_put(w, document): insert or replace the document of that id. answers_remove(w, id):
 * delete it; STORE_OK also if it is not there. Both begin a transaction if none is open.
 * answers_commit(w, position): write ${position} and commit; readers see all of the transaction
 * or nothing. The first error of a transaction sticks: later calls return it, and answers_commit
 * rolls back and returns it. answers_abort(w): roll back.
 */
enum store_status answers_put(struct answers_writer *w, const struct answers_document *document);
enum store_status answers_remove(struct answers_writer *w, uint64_t id);
enum store_status answers_commit(struct answers_writer *w, uint64_t position)
    __attribute__((warn_unused_result));
void answers_abort(struct answers_writer *w);

/*
 * answers_verify(w, stop, arg): read the whole file and compare the index with its texts;
 * STORE_CORRUPT: they differ. It costs about as much as building the file. STORE_BUSY: ${stop},
 * which is called often, returned true. No transaction may be open.
 */
typedef bool answers_stop_fn(void *arg);
enum store_status answers_verify(struct answers_writer *w, answers_stop_fn *stop, void *arg);

/* Position of the last commit. A sentence about the last error, borrowed until the next call. */
uint64_t answers_position(const struct answers_writer *w);
const char *answers_why(const struct answers_writer *w);

/* ---- reading ---- */

struct answers_reader;

/* answers_reader_open(...): as answers_open, read-only. The file's directory must be writable. */
enum store_status answers_reader_open(const char *path, const uint8_t *store_id,
                                      const struct answers_options *options,
                                      struct answers_reader **out, char *why, size_t why_size)
    __attribute__((warn_unused_result));
void answers_reader_close(struct answers_reader *r);
const char *answers_reader_why(const struct answers_reader *r);

/*
 * answers_reader_position(r, out, whole): the position of the newest commit; whole: the build is
 * complete.
 */
enum store_status answers_reader_position(struct answers_reader *r, uint64_t *out, bool *whole);

struct answers_hit {
    uint64_t id, version;
    double score; /* rank among the hits of one question; depends on the collection */
    double share; /* share of the question's meaning found, 0 to 1; depends on the document alone */
    bool answers; /* the share is enough for an answer */
};

/*
 * answers_stop_fn: called often; true: stop with STORE_BUSY. answers_check_fn: may the document be
 * a hit? ${position}: of the file's snapshot. STORE_NOT_FOUND: no; any other status but STORE_OK
 * ends the question with it.
 */
typedef enum store_status answers_check_fn(void *arg, uint64_t id, uint64_t version,
                                           uint64_t position);

struct answers_question {
    struct str text;         /* UTF-8 */
    struct str language;     /* of the question; its stop words are also left out; may be empty */
    unsigned limit;          /* hits at most, up to ANSWERS_HITS_MAX */
    answers_stop_fn *stop;   /* may be NULL */
    answers_check_fn *check; /* may be NULL */
    void *arg;
};

/*
 * answers_ask(r, question, hits, count): the documents that fit ${question} best, best first. One
 * snapshot of the file. STORE_OK with ${count} 0: no document has any of the question's words.
 */
enum store_status answers_ask(struct answers_reader *r, const struct answers_question *question,
                              struct answers_hit *hits, unsigned *count);

/*
 * answers_excerpt(r, language, question, text, most_bytes, out): the passage of ${text} with most
 * of the question's words, in whole sentences if they fit, at most ${most_bytes}. ${text} is the
 * document's text from the store, in ${language}; if the file has no table for that language, the
 * beginning. ${out} is a part of ${text}. STORE_BUSY: out of memory.
 */
enum store_status answers_excerpt(struct answers_reader *r, struct str language,
                                  struct str question, struct str text, size_t most_bytes,
                                  struct str *out);

#endif
