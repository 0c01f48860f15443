#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/store.h"

/*
 * A word that neither a document nor a relative's beginning has may be a misspelling: look for each
 * word with one letter inserted, deleted or replaced, or two adjacent letters swapped, behind the
 * first letter. Of those that documents have, the most frequent one is searched. That takes some 55
 * look-ups for each letter, so only a few words of a question are corrected.
 */

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define LETTER_COUNT 26
#define WORD_BYTES 16 /* longest word that is corrected */

struct correction {
    struct question_word *w;
    struct file *f;
    const struct file_table *t;
    enum store_status status;
};

static void try(struct correction *c, const struct question_form *form)
{
    struct question_word found = {.forms = {*form}, .form_count = 1, .own = 1};
    if (c->status == STORE_OK)
        c->status = question_count_documents(&found, c->f, c->t);
    if (c->status != STORE_OK || found.documents <= c->w->documents)
        return;
    c->w->documents = found.documents;
    c->w->slip = *form;
}

/* ${word} with the bytes from ${at} to ${to} replaced by ${n} bytes of ${p}. */
static void try_edit(struct correction *c, const struct question_form *word, size_t at, size_t to,
                     const char *p, size_t n)
{
    struct question_form form = {.n = (uint8_t)(word->n - (to - at) + n)};
    memcpy(form.p, word->p, at);
    memcpy(form.p + at, p, n);
    memcpy(form.p + at + n, word->p + to, word->n - to);
    try(c, &form);
}

static void try_at(struct correction *c, const struct question_form *word, size_t at)
{
    for (size_t i = 0; i < LETTER_COUNT; i++) {
        try_edit(c, word, at, at, &LETTERS[i], 1);
        if (at < word->n)
            try_edit(c, word, at, at + 1, &LETTERS[i], 1);
    }
    if (at < word->n)
        try_edit(c, word, at, at + 1, "", 0);
    if (at + 1 < word->n)
        try_edit(c, word, at, at + 2, (const char[]){word->p[at + 1], word->p[at]}, 2);
}

static bool has_only_letters(const struct question_form *word)
{
    for (size_t i = 0; i < word->n; i++)
        if (word->p[i] < 'a' || word->p[i] > 'z')
            return false;
    return true;
}

enum store_status question_seek_misspelling(struct question_word *w, struct file *f,
                                            const struct file_table *t)
{
    const struct question_form word = w->forms[0];
    struct correction c = {w, f, t, STORE_OK};
    if (word.n > WORD_BYTES || !has_only_letters(&word))
        return STORE_OK;
    for (size_t at = 1; at <= word.n && c.status == STORE_OK; at++)
        try_at(&c, &word, at);
    return c.status;
}
