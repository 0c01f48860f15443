#include "store/answers/reader_internal.h"

#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/ranking_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

/* operations of SQLite's virtual machine between two calls of ${stop} */
#define STOP_OPERATIONS 1000

static int must_stop(void *arg)
{
    const struct answers_reader *r = arg;
    return r->asked != NULL && r->asked->stop != NULL && r->asked->stop(r->asked->arg);
}

static enum store_status prepare(struct answers_reader *r, const char *path,
                                 const uint8_t *store_id, const struct answers_options *options)
{
    enum store_status status = file_connect(&r->f, path, options);
    if (status == STORE_OK)
        status = file_status(&r->f, candidates_register(r->f.api, &r->scoring));
    return status == STORE_OK ? file_load(&r->f, store_id) : status;
}

enum store_status answers_reader_open(const char *path, const uint8_t *store_id,
                                      const struct answers_options *options,
                                      struct answers_reader **out, char *why, size_t why_size)
{
    struct answers_reader *r = calloc(1, sizeof(*r));
    enum store_status status = r == NULL ? STORE_BUSY : prepare(r, path, store_id, options);
    if (status == STORE_OK) {
        sqlite3_progress_handler(r->f.db, STOP_OPERATIONS, must_stop, r);
        *out = r;
        return status;
    }
    snprintf(why, why_size, "%s", r == NULL ? "Out of memory." : r->f.why);
    answers_reader_close(r);
    return status;
}

void answers_reader_close(struct answers_reader *r)
{
    if (r == NULL)
        return;
    file_close(&r->f);
    free(r);
}

const char *answers_reader_why(const struct answers_reader *r)
{
    return r->f.why;
}

enum store_status answers_reader_position(struct answers_reader *r, uint64_t *out, bool *whole)
{
    enum store_status status = file_read_position(&r->f);
    *out = r->f.position;
    *whole = r->f.cursor.collection == ANSWERS_WHOLE;
    return status;
}

/* ---- questions ---- */

struct asking {
    struct answers_reader *r;
    const struct answers_question *asked;
    struct answers_hit *hits;
    unsigned limit, *count;
    size_t bytes, most_bytes; /* bytes of texts read of a table, and their maximum */
};

static void keep(struct asking *a, struct answers_hit hit)
{
    unsigned at = *a->count;
    if (at == a->limit && (at == 0 || a->hits[--at].score >= hit.score))
        return;
    for (; at > 0 && a->hits[at - 1].score < hit.score; at--)
        a->hits[at] = a->hits[at - 1];
    a->hits[at] = hit;
    *a->count += *a->count < a->limit;
}

static enum store_status score_row(struct asking *a, struct file_table *t, const struct question *q,
                                   struct answers_hit *hit)
{
    struct str texts[COLUMNS];
    sqlite3_bind_int64(t->row, 1, (int64_t)hit->id);
    int rc = sqlite3_step(t->row);
    bool there = rc == SQLITE_ROW;
    for (int i = 0; i < COLUMNS && there; i++) {
        texts[i] = column_str(t->row, i);
        a->bytes += texts[i].n;
    }
    if (there)
        rc = ranking_score(t, q, texts, hit);
    enum store_status status = there || rc != SQLITE_DONE
                                   ? file_status(&a->r->f, rc)
                                   : file_refuse(&a->r->f, STORE_CORRUPT, FILE_LACKS_TEXTS);
    sqlite3_reset(t->row);
    return status;
}

static enum store_status score(struct asking *a, struct file_table *t, const struct question *q,
                               const struct candidate *c)
{
    struct answers_hit hit = {.id = (uint64_t)c->id, .version = c->version};
    enum store_status status = score_row(a, t, q, &hit);
    double enough = tokenizer_language(t->tokenizer)->enough;
    hit.answers = hit.share >= (enough > 0 ? enough : ENOUGH_ELSEWHERE);
    if (c->page)
        hit.score *= PAGE_SCORE;
    if (status == STORE_OK)
        keep(a, hit);
    return status;
}

static enum store_status ask_table(struct asking *a, struct file_table *t)
{
    struct question q;
    struct candidates c = {
        .f = &a->r->f, .t = t, .q = &q, .scoring = &a->r->scoring, .asked = a->asked};
    int rc = question_read(t, a->asked->language, a->asked->text, &q);
    enum store_status status = file_status(&a->r->f, rc);
    if (status == STORE_OK)
        status = question_weigh(&q, &a->r->f, t);
    if (status == STORE_OK)
        status = candidates_find(&c);
    a->bytes = 0;
    for (unsigned i = 0; i < c.count && status == STORE_OK && a->bytes < a->most_bytes; i++)
        status = must_stop(a->r) ? STORE_BUSY : score(a, t, &q, &c.best[i]);
    return status;
}

static enum store_status ask_all(struct asking *a)
{
    struct file *f = &a->r->f;
    enum store_status status = file_read_position(f);
    if (status == STORE_OK)
        status = file_tables_load(f);
    unsigned tables = 0;
    for (size_t i = 0; i < f->count; i++)
        tables += f->tables[i].documents > 0;
    a->most_bytes = RANKING_BYTES / (tables > 0 ? tables : 1);
    for (size_t i = 0; i < f->count && status == STORE_OK; i++)
        if (f->tables[i].documents > 0)
            status = ask_table(a, &f->tables[i]);
    return status;
}

enum store_status answers_ask(struct answers_reader *r, const struct answers_question *question,
                              struct answers_hit *hits, unsigned *count)
{
    struct asking a = {.r = r, .asked = question, .hits = hits, .count = count};
    a.limit = question->limit < ANSWERS_HITS_MAX ? question->limit : ANSWERS_HITS_MAX;
    *count = 0;
    r->asked = question;
    enum store_status status = file_step(&r->f, r->f.begin);
    if (status == STORE_OK)
        status = ask_all(&a);
    r->asked = NULL;
    if (!sqlite3_get_autocommit(r->f.db))
        file_step(&r->f, status == STORE_OK ? r->f.commit : r->f.rollback);
    if (status != STORE_OK)
        *count = 0;
    return status;
}
