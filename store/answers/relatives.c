#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/script_internal.h"
#include "store/store.h"

/*
 * Relatives of a word: words with the same beginning ("Reparatur", "repariert"), compounds with it
 * ("Stiel", "Holzstiel"), and misspellings by one letter. A document's relatives count whether or
 * not another document has the word itself, so that a share depends on the document alone. Words
 * with digits have no relatives: "TB-30" is not "TB-31".
 */

#define START_LETTERS 5 /* common letters of relatives, at least half of the longer one */
#define SHORT_LETTERS 4 /* of a stem with relatives that is shorter than its word; compounds only */
#define SLIP_BYTES 6    /* shortest word that is compared with its misspellings */
#define TOKENS_MAX 1000 /* tokens of a table that are read to count documents */
#define CORRECTED 3     /* words of a question whose misspellings are sought */

static size_t common_start(struct str a, struct str b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.p[n] == b.p[n])
        n++;
    return n;
}

static size_t common_end(struct str a, struct str b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.p[a.n - 1 - n] == b.p[b.n - 1 - n])
        n++;
    return n;
}

static bool has_digit(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] >= '0' && word.p[i] <= '9')
            return true;
    return false;
}

/* Bytes of the first ${least} letters of a word; 0: it has fewer, or other characters. */
static size_t start_of(struct str word, unsigned least)
{
    size_t at = 0, n;
    if (has_digit(word))
        return 0;
    for (unsigned letters = 0; letters < least; letters++, at += n)
        if (at >= word.n || script_of(word.p + at, word.p + word.n, &n) != SCRIPT_SPACED)
            return 0;
    return at;
}

/* One letter inserted, deleted or replaced, or two adjacent letters swapped. */
static bool is_misspelling(struct str a, struct str b, size_t start, size_t end)
{
    size_t shorter = a.n < b.n ? a.n : b.n, longer = a.n + b.n - shorter;
    if (longer < SLIP_BYTES || start == 0 || longer - shorter > 1)
        return false;
    if (start + end + 1 >= longer)
        return true;
    return a.n == b.n && start + end + 2 == a.n && a.p[start] == b.p[start + 1] &&
           a.p[start + 1] == b.p[start];
}

static bool are_related(struct str word, struct str token, size_t least, bool compounds)
{
    size_t start = common_start(word, token), end = common_end(word, token);
    if (start == word.n || (compounds && end == word.n))
        return true;
    if (start >= least && start * 2 >= word.n && start * 2 >= token.n)
        return true;
    return is_misspelling(word, token, start, end);
}

static struct str first_form(const struct question_word *w)
{
    return (struct str){w->forms[0].p, w->forms[0].n};
}

/* In languages with compounds a short stem has relatives if its word is longer. */
static bool has_short_relatives(const struct question *q, const struct question_word *w)
{
    const struct str stem = first_form(w);
    return q->compounds && w->source.n > stem.n && start_of(stem, SHORT_LETTERS) == stem.n;
}

void question_stem(const struct question *q, struct question_word *w)
{
    w->stem = w->light ? 0 : start_of(first_form(w), START_LETTERS);
    if (!w->light && has_short_relatives(q, w))
        w->stem = w->forms[0].n;
}

bool question_is_relative(const struct question *q, const struct question_word *w, struct str token)
{
    return w->stem > 0 && !has_digit(token) &&
           are_related(first_form(w), token, w->stem, q->compounds);
}

static enum store_status count_relatives(struct question_word *w, struct file *f,
                                         const struct file_table *t, size_t start)
{
    static const char sql[] = "SELECT total(documents) FROM (SELECT documents FROM token WHERE"
                              " tab=?1 AND token>=?2 AND token<?2||char(0x10ffff) LIMIT ?3)";
    sqlite3_stmt *stmt = NULL;
    double n = 0;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(stmt, 1, t->number);
        bind_str(stmt, 2, (struct str){w->forms[0].p, start});
        sqlite3_bind_int(stmt, 3, TOKENS_MAX);
        rc = sqlite3_step(stmt);
    }
    if (rc == SQLITE_ROW)
        n = sqlite3_column_double(stmt, 0);
    enum store_status status = file_status(f, rc);
    sqlite3_finalize(stmt);
    w->documents = n < 0 ? 0 : n < UINT32_MAX ? (int64_t)n : UINT32_MAX;
    w->start = w->documents > 0 ? start : 0;
    return status;
}

enum store_status question_seek_relatives(struct question *q, struct file *f,
                                          const struct file_table *t)
{
    enum store_status status = STORE_OK;
    unsigned corrected = 0;
    for (unsigned i = 0; i < q->count && status == STORE_OK; i++) {
        struct question_word *w = &q->words[i];
        size_t start = w->documents > 0 ? 0 : w->stem;
        if (start > 0)
            status = count_relatives(w, f, t, start);
        if (status == STORE_OK && start > 0 && w->documents == 0 && corrected++ < CORRECTED)
            status = question_seek_misspelling(w, f, t);
    }
    return status;
}
