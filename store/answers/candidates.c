#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/ranking_internal.h"
#include "store/store.h"

/* ---- the function that FTS5 calls for each row ---- */

static double phrase_score(const Fts5ExtensionApi *api, Fts5Context *fts, int phrase)
{
    Fts5PhraseIter it;
    int column;
    double score = 0;
    int rc = api->xPhraseFirstColumn(fts, phrase, &it, &column);
    for (; rc == SQLITE_OK && column >= 0 && column < COLUMNS;
         api->xPhraseNextColumn(fts, &it, &column))
        score += column < COLUMNS - 1 ? HEAD_WEIGHT : 1;
    return score;
}

static void assay_score(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *result,
                        int n, sqlite3_value **values)
{
    const struct scoring *s = api->xUserData(fts);
    double score = 0;
    (void)n, (void)values;
    for (unsigned i = 0, next; i < s->count; i = next) {
        const struct question_word *w = &s->q->words[s->words[i]];
        double found = 0;
        for (next = i; next < s->count && s->words[next] == s->words[i]; next++)
            found += s->parts[next] * phrase_score(api, fts, (int)next);
        score += w->meaning * (RARITY_FLOOR + w->rarity) * found / (found + SATURATION);
    }
    sqlite3_result_double(result, score);
}

int candidates_register(fts5_api *api, struct scoring *scoring)
{
    return api->xCreateFunction(api, "assay_score", scoring, assay_score, NULL);
}

/* ---- the best candidates ---- */

static enum store_status read_version(struct file *f, struct candidate *new)
{
    sqlite3_bind_int64(f->version_get, 1, new->id);
    int rc = sqlite3_step(f->version_get);
    if (rc == SQLITE_ROW) {
        new->version = (uint64_t)sqlite3_column_int64(f->version_get, 0);
        new->page = sqlite3_column_int(f->version_get, 2) == SYNCED_POST;
    }
    enum store_status status =
        rc == SQLITE_DONE
            ? file_refuse(f, STORE_CORRUPT, "A row of the answer index has no document.")
            : file_status(f, rc);
    sqlite3_reset(f->version_get);
    return status;
}

static enum store_status check(const struct candidates *c, const struct candidate *new)
{
    const struct answers_question *asked = c->asked;
    if (asked->check == NULL)
        return STORE_OK;
    enum store_status status =
        asked->check(asked->arg, (uint64_t) new->id, new->version, c->f->position);
    return status == STORE_CORRUPT
               ? file_refuse(c->f, status, "A document differs from its record in the store.")
               : status;
}

static bool is_kept(const struct candidates *c, const struct candidate *new)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->best[i].id == new->id)
            return true;
    return false;
}

static void insert(struct candidates *c, struct candidate new)
{
    unsigned at = c->count == FINALISTS ? FINALISTS - 1 : c->count;
    for (; at > 0 && c->best[at - 1].score < new.score; at--)
        c->best[at] = c->best[at - 1];
    c->best[at] = new;
    c->count += c->count < FINALISTS;
}

static enum store_status keep(struct candidates *c, struct candidate new)
{
    bool low = c->count == FINALISTS && c->best[FINALISTS - 1].score >= new.score;
    if (low || is_kept(c, &new))
        return STORE_OK;
    enum store_status status = read_version(c->f, &new);
    if (status == STORE_OK)
        status = check(c, &new);
    if (status == STORE_OK)
        insert(c, new);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status run(struct candidates *c, const struct buf *expression, int rows)
{
    sqlite3_stmt *match = c->t->match;
    enum store_status status = STORE_OK;
    int rc = SQLITE_ROW;
    if (!buf_ok(expression))
        return STORE_BUSY;
    bind_str(match, 1, buf_view(expression));
    sqlite3_bind_int(match, 2, rows);
    while (status == STORE_OK && (rc = sqlite3_step(match)) == SQLITE_ROW)
        status = keep(c, (struct candidate){.id = sqlite3_column_int64(match, 0),
                                            .score = sqlite3_column_double(match, 1)});
    if (status == STORE_OK)
        status = (rc & 0xff) == SQLITE_ERROR ? STORE_INVALID : file_status(c->f, rc);
    sqlite3_reset(match);
    return status;
}

/* ---- queries ---- */

/* Words with little meaning, or in many documents, come last. */
static double cost(const struct question_word *w)
{
    return (double)w->documents / (w->meaning * w->meaning);
}

/* The words that the table has, cheapest first; returns their number. */
static unsigned order_words(const struct question *q, unsigned *order)
{
    unsigned n = 0;
    for (unsigned i = 0; i < q->count; i++) {
        if (q->words[i].documents <= 0)
            continue;
        unsigned at = n++;
        for (; at > 0 && cost(&q->words[order[at - 1]]) > cost(&q->words[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}

static unsigned count_rare(const struct question *q, const unsigned *order, unsigned n)
{
    int64_t rows = 0;
    unsigned i = 0;
    for (; i < n; i++) {
        rows += q->words[order[i]].documents;
        if (rows > CANDIDATES)
            break;
    }
    return i;
}

/* In the order of question_expression. */
static void set_words(struct candidates *c, const unsigned *words, unsigned n)
{
    struct scoring *s = c->scoring;
    s->q = c->q;
    s->count = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct question_word *w = &c->q->words[words[i]];
        for (unsigned j = 0; j < question_phrases(w); j++, s->count++) {
            s->words[s->count] = words[i];
            s->parts[s->count] = j == 0 ? 1 : j <= w->form_count - w->own ? SYNONYM : RELATIVE;
        }
    }
}

/* Documents that have any of the words. */
static enum store_status any_of(struct candidates *c, const unsigned *words, unsigned n)
{
    struct buf expression = {0};
    set_words(c, words, n);
    question_expression(c->q, words, n, &expression);
    enum store_status status = run(c, &expression, CANDIDATES);
    buf_free(&expression);
    return status;
}

/* Documents that have the first word and one of some others: of frequent words. */
static enum store_status first_and_others(struct candidates *c, const unsigned *words, unsigned n)
{
    struct buf expression = {0};
    set_words(c, words, n);
    buf_adds(&expression, "(");
    question_expression(c->q, words, 1, &expression);
    buf_adds(&expression, ") AND (");
    question_expression(c->q, words + 1, n - 1, &expression);
    buf_adds(&expression, ")");
    enum store_status status = run(c, &expression, CANDIDATES / 2);
    buf_free(&expression);
    return status;
}

/* Documents whose title or taxonomy has the word. */
static enum store_status in_title(struct candidates *c, unsigned word)
{
    struct buf expression = {0};
    set_words(c, &word, 1);
    buf_adds(&expression, "{title taxonomy} : (");
    question_expression(c->q, &word, 1, &expression);
    buf_adds(&expression, ")");
    enum store_status status = run(c, &expression, CANDIDATES / 4);
    buf_free(&expression);
    return status;
}

enum store_status candidates_find(struct candidates *c)
{
    unsigned order[QUESTION_WORDS], n = order_words(c->q, order), rare = count_rare(c->q, order, n);
    const unsigned *frequent = order + rare, left = n - rare < 3 ? n - rare : 3;
    enum store_status status = STORE_OK;
    c->count = 0;
    if (rare > 0)
        status = any_of(c, order, rare);
    if (status == STORE_OK && left > 1)
        status = first_and_others(c, frequent, left);
    if (status == STORE_OK && left > 0 && rare == 0)
        status = in_title(c, frequent[0]);
    if (status == STORE_OK && left > 0 && c->count == 0)
        status = any_of(c, frequent, 1);
    return status;
}
