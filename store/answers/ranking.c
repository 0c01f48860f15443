#include "store/answers/ranking_internal.h"

#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/bytes.h"

#include <math.h>

/*
 * Score: BM25 with a minimum rarity, so that small collections rank too, plus a share for the best
 * passage. Share: how much of the question's meaning the document has; see share_of. The constants
 * were fitted to the questions of t/kit/questions.
 */

#define WINDOW 30 /* words of a passage, without stop words */
#define RARITY_FLOOR 0.5
#define SATURATION 1.0 /* k1 of BM25 */
#define LENGTH 0.05    /* b of BM25: pages of shops rarely repeat themselves */
#define PASSAGE_SCORE 0.2
#define SHARE_FLOOR 0.5    /* weight of the share in the score */
#define ANYWHERE 0.9       /* weight of words anywhere, beside those in one passage */
#define MISSING_LIGHT 0.45 /* a missing light word counts this part of its meaning */
#define RELATED 0.7        /* a relative counts this part of the word */
#define MISSING_POWER 0.8  /* missing words of a long question count less each */

static const double column_weights[COLUMNS] = {4, 2, 1};

struct ranking {
    const struct question *q;
    int column, position;
    double found[QUESTION_WORDS]; /* occurrences, weighted by column */
    int last[QUESTION_WORDS];     /* its last position in the text, from 1 */
    double part[QUESTION_WORDS];  /* part of it that was found: RELATED for a relative */
    bool headed[QUESTION_WORDS];  /* in the title or the taxonomy */
    double meaning, rarity;       /* meaning of the best passage */
};

static void look_at_passage(struct ranking *r)
{
    double meaning = 0, rarity = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        bool here = r->headed[i] || (r->last[i] > 0 && r->last[i] > r->position - WINDOW);
        meaning += here ? r->part[i] * w->meaning : 0;
        rarity += here ? r->part[i] * w->meaning * w->rarity : 0;
    }
    r->meaning = fmax(r->meaning, meaning);
    r->rarity = fmax(r->rarity, rarity);
}

static int take_token(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct ranking *r = arg;
    (void)from, (void)to;
    if ((flags & FTS5_TOKEN_COLOCATED) == 0)
        r->position++;
    double part = 1;
    unsigned i = question_word_of(r->q, (struct str){token, (size_t)n});
    if (i == r->q->count) {
        part = RELATED;
        i = question_relative_of(r->q, (struct str){token, (size_t)n});
    }
    if (i == r->q->count)
        return SQLITE_OK;
    r->found[i] += part * column_weights[r->column];
    r->part[i] = fmax(r->part[i], part);
    if (r->column < COLUMNS - 1)
        r->headed[i] = true;
    else
        r->last[i] = r->position;
    look_at_passage(r);
    return SQLITE_OK;
}

/*
 * found / (found + missing^MISSING_POWER). Light words count more if found than if missing. Words
 * far apart count a little less than those of one passage. Other documents do not matter.
 */
static double share_of(const struct ranking *r)
{
    double anywhere = 0, missing = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        anywhere += r->part[i] * w->meaning;
        missing += (1 - r->part[i]) * w->meaning * (w->light ? MISSING_LIGHT : 1);
    }
    double found = ANYWHERE * anywhere + (1 - ANYWHERE) * r->meaning;
    missing += fmax(anywhere - found, 0);
    return found <= 0 ? 0 : found / (found + pow(missing, MISSING_POWER));
}

static double score_of(const struct ranking *r, const struct file_table *t)
{
    double average = t->documents > 0 && t->words > 0 ? (double)t->words / (double)t->documents : 1;
    double length = 1 - LENGTH + LENGTH * r->position / average, score = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        score += w->meaning * (RARITY_FLOOR + w->rarity) * r->found[i] * (1 + SATURATION) /
                 (r->found[i] + SATURATION * length);
    }
    return score + PASSAGE_SCORE * r->rarity;
}

int ranking_score(const struct file_table *t, const struct question *q, const struct str *texts,
                  struct answers_hit *hit)
{
    struct ranking r = {.q = q};
    int rc = SQLITE_OK;
    for (r.column = 0; r.column < COLUMNS && rc == SQLITE_OK; r.column++)
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_DOCUMENT, texts[r.column], take_token, &r);
    hit->share = share_of(&r);
    hit->score = score_of(&r, t) * (SHARE_FLOOR + hit->share);
    return rc;
}
