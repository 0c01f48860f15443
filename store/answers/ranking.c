#include "store/answers/ranking_internal.h"

#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/bytes.h"

#include <math.h>

/*
 * Score: BM25 with a minimum rarity, so that small collections rank too, times how much of the
 * question's meaning was found. Share: how much of it the document has, more indulgent to missing
 * words. The constants were fitted to the questions of t/kit/questions.
 */

#define WINDOW 30          /* words of a passage, without stop words */
#define LENGTH 0.25        /* b of BM25 */
#define SHARE_FLOOR 0.54   /* weight of a document without the question's words */
#define ANYWHERE 0.8       /* weight of words anywhere, beside those in one passage */
#define MISSING_LIGHT 0.42 /* a missing light word counts this part of its meaning */
#define MISSING_POWER 0.45 /* missing words of a long question count less each */
#define PART_POWER 0.5     /* of parts of words, in the share */
#define TITLE_COVERED 0.7  /* meaning of a title of which the question has all words */
#define MENTIONED 0.9      /* part, in the share, of a word that only the text has, and once */

struct ranking {
    const struct question *q;
    int column, position;
    int title, asked; /* words of the title; those that the question has, without light ones */
    int asked_last;   /* position of the last of those */
    double found[QUESTION_WORDS]; /* occurrences, weighted by column */
    int times[QUESTION_WORDS];    /* occurrences */
    int last[QUESTION_WORDS];     /* its last position, from 1 */
    double part[QUESTION_WORDS];  /* part of it that was found */
    bool headed[QUESTION_WORDS];  /* in the title or the taxonomy */
    double meaning;               /* of the best passage */
};

/* Meaning of the question that a document has and has not. */
struct found {
    double found, missing;
};

static void look_at_passage(struct ranking *r)
{
    double meaning = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        bool here = r->headed[i] || (r->last[i] > 0 && r->last[i] > r->position - WINDOW);
        meaning += here ? r->part[i] * w->meaning : 0;
    }
    r->meaning = fmax(r->meaning, meaning);
}

static void find_word(struct ranking *r, unsigned i, double part)
{
    r->found[i] += part * (r->column < COLUMNS - 1 ? HEAD_WEIGHT : 1);
    r->part[i] = fmax(r->part[i], part);
    r->times[i]++;
    r->headed[i] = r->headed[i] || r->column < COLUMNS - 1;
    r->last[i] = r->position;
    if (r->column == 0 && r->asked_last < r->position && !r->q->words[i].light) {
        r->asked++;
        r->asked_last = r->position;
    }
}

/*
 * A token can be a synonym or a relative of several words: "ouvert" of "horaires d'ouverture",
 * "Sommerdecke" of "Decke für den Sommer".
 */
static void find_others(struct ranking *r, struct str token, unsigned i)
{
    double part;
    while ((i = question_match_part(r->q, token, i + 1, &part)) < r->q->count)
        find_word(r, i, part);
}

static int take_token(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct ranking *r = arg;
    (void)from, (void)to;
    if ((flags & FTS5_TOKEN_COLOCATED) == 0)
        r->position++;
    r->title = r->column == 0 ? r->position : r->title;
    double part;
    const struct str s = {token, (size_t)n};
    unsigned i = question_match(r->q, s, &part);
    if (i == r->q->count)
        return SQLITE_OK;
    find_word(r, i, part);
    if (part < 1)
        find_others(r, s, i);
    look_at_passage(r);
    return SQLITE_OK;
}

/* Part of a word in the share: a word mentioned once in the text counts a little less. */
static double share_part(const struct ranking *r, unsigned i)
{
    return pow(r->part[i], PART_POWER) * (r->headed[i] || r->times[i] > 1 ? 1 : MENTIONED);
}

static double score_part(const struct ranking *r, unsigned i)
{
    return r->part[i];
}

/*
 * How much of the question was found. Light words count more if found than if missing. Words far
 * apart count a little less than those of one passage. Other documents do not matter.
 */
static struct found found_of(const struct ranking *r,
                             double (*part_of)(const struct ranking *r, unsigned i))
{
    struct found f = {0};
    double anywhere = 0, passage = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        double part = part_of(r, i);
        anywhere += part * w->meaning;
        passage += r->part[i] * w->meaning;
        f.missing += (1 - part) * w->meaning * (w->light ? MISSING_LIGHT : 1);
    }
    f.found = anywhere * (passage > 0 ? ANYWHERE + (1 - ANYWHERE) * r->meaning / passage : 1);
    f.missing += fmax(anywhere - f.found, 0);
    return f;
}

static double share(double found, double missing)
{
    return found <= 0 ? 0 : found / (found + missing);
}

/* A title that the question covers counts as found. */
static double share_of(const struct ranking *r, struct found f)
{
    double title = TITLE_COVERED * r->asked / (r->title + 1);
    return share(f.found + title, pow(f.missing, MISSING_POWER));
}

static double score_of(const struct ranking *r, const struct file_table *t, struct found f)
{
    double average = t->documents > 0 && t->words > 0 ? (double)t->words / (double)t->documents : 1;
    double length = 1 - LENGTH + LENGTH * r->position / average, score = 0;
    for (unsigned i = 0; i < r->q->count; i++) {
        const struct question_word *w = &r->q->words[i];
        score += w->meaning * (RARITY_FLOOR + w->rarity) * r->found[i] * (1 + SATURATION) /
                 (r->found[i] + SATURATION * length);
    }
    return score * (SHARE_FLOOR + share(f.found, f.missing * f.missing));
}

int ranking_score(const struct file_table *t, const struct question *q, const struct str *texts,
                  struct answers_hit *hit)
{
    struct ranking r = {.q = q};
    int rc = SQLITE_OK;
    for (r.column = 0; r.column < COLUMNS && rc == SQLITE_OK; r.column++)
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_DOCUMENT, texts[r.column], take_token, &r);
    hit->share = share_of(&r, found_of(&r, share_part));
    hit->score = score_of(&r, t, found_of(&r, score_part));
    return rc;
}
