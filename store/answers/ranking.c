#include "store/answers/ranking.h"

#include "store/answers/answers.h"
#include "store/answers/file.h"
#include "store/answers/question.h"
#include "store/answers/tokenizer.h"
#include "store/bytes.h"

#include <math.h>

/*
 * Score: BM25 with a floor under the rarity of a word, so that small collections rank too, plus
 * what one passage has. Share: of the question's meaning, what the document has; see share_of.
 * The constants were fitted to the questions of t/answers.
 */

#define WINDOW 30 /* words of a passage, without stop words */
#define RARITY_FLOOR 0.5
#define SATURATION 1.0 /* k1 of BM25 */
#define LENGTH 0.05    /* b of BM25: pages of shops say what they say once */
#define PASSAGE_SCORE 0.2
#define SHARE_FLOOR 0.5    /* of the factor by which the share raises the score */
#define ANYWHERE 0.9       /* weight of words anywhere, beside those in one passage */
#define MISSING_LIGHT 0.45 /* of its meaning, what a light word counts where it is missing */
#define RELATED 0.7        /* of a word, what a relative of it counts */
#define MISSING_POWER 0.8  /* a long question's missing words count less each */

static const double column_weights[COLUMNS] = {4, 2, 1};

struct ranking {
    const struct question *q;
    int column, position;
    double found[QUESTION_WORDS]; /* times a word was found, by weight of the column */
    int last[QUESTION_WORDS];     /* its last position in the text, from 1 */
    double part[QUESTION_WORDS];  /* of it that was found: RELATED of a word of its family */
    bool headed[QUESTION_WORDS];  /* in the title or the taxonomy */
    double meaning, rarity;       /* most of a passage */
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
 * found / (found + missing^MISSING_POWER). Light words count more found than missing. Words found
 * far apart count a little less than those of one passage. No other document matters.
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
