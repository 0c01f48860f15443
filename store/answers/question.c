#include "store/answers/question_internal.h"

#include "store/answers/file_internal.h"
#include "store/answers/language_internal.h"
#include "store/answers/script_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

/* Weight of a word in the question's meaning. */
#define MEANING_WORD 1.0
#define MEANING_POLICY 1.2   /* factor, of words about a policy: "return", not the article */
#define MEANING_LIGHT 0.65   /* factor, of light words and numbers */
#define MEANING_DENSE 0.6    /* a bigram, or a single letter */
#define MEANING_KATAKANA 0.3 /* a bigram of Katakana: its words are longer */
#define MEANING_HIRAGANA 0.2 /* a bigram of Hiragana */
#define MEANING_GRAMMAR 0.02 /* a light bigram of Hiragana */

struct reading {
    struct file_table *t;
    struct question *q;
    struct str text;
    const struct language *asker;
    struct wordset stops; /* of the question's language */
    bool skipped;         /* the word of the following forms is left out */
};

static uint64_t first_bit(struct str token)
{
    return UINT64_C(1) << (((uint8_t)token.p[0] * 7u + token.n) & 63);
}

static struct str form_str(const struct question_form *f)
{
    return (struct str){f->p, f->n};
}

static bool has_form(const struct question_word *w, unsigned from, unsigned to, struct str token)
{
    for (unsigned i = from; i < to; i++)
        if (str_eq(form_str(&w->forms[i]), token))
            return true;
    return false;
}

static unsigned word_of(const struct question *q, struct str token)
{
    unsigned i = (q->first & first_bit(token)) == 0 ? q->count : 0;
    while (i < q->count && !has_form(&q->words[i], 0, q->words[i].own, token))
        i++;
    return i;
}

unsigned question_match(const struct question *q, struct str token, double *part)
{
    unsigned i = word_of(q, token);
    *part = 1;
    return i < q->count ? i : question_match_part(q, token, 0, part);
}

unsigned question_match_part(const struct question *q, struct str token, unsigned from,
                             double *part)
{
    bool listed = (q->first & first_bit(token)) != 0;
    for (; from < q->count; from++) {
        const struct question_word *w = &q->words[from];
        bool synonym = listed && has_form(w, w->own, w->form_count, token);
        *part = synonym ? SYNONYM : RELATIVE;
        if (synonym || question_is_relative(q, w, token))
            break;
    }
    return from;
}

static void add_form(struct question *q, struct question_word *w, struct str token)
{
    if (w->form_count == QUESTION_FORMS || token.n > TOKENIZER_WORD_MAX)
        return;
    struct question_form *f = &w->forms[w->form_count++];
    memcpy(f->p, token.p, token.n);
    f->n = (uint8_t)token.n;
    w->own = w->form_count;
    q->first |= first_bit(token);
}

static double meaning_of(struct str token, bool light)
{
    const double factor = light ? MEANING_LIGHT : 1;
    size_t n;
    switch (script_of(token.p, token.p + token.n, &n)) {
    case SCRIPT_SPACED:
        return factor * MEANING_WORD;
    case SCRIPT_KATAKANA:
        return factor * MEANING_KATAKANA;
    case SCRIPT_HIRAGANA:
        return light ? MEANING_GRAMMAR : MEANING_HIRAGANA;
    case SCRIPT_DENSE:
        break;
    }
    return factor * MEANING_DENSE;
}

/* Hiragana behind Kanji or Katakana is mostly an ending or a particle, and "wo" always is one. */
static bool is_grammar(struct str text, struct str token, int from)
{
    size_t n;
    int at = from;
    if (script_of(token.p, token.p + token.n, &n) != SCRIPT_HIRAGANA)
        return false;
    while (at > 0 && ((uint8_t)text.p[--at] & 0xc0) == 0x80)
        continue;
    enum script before = script_of(text.p + at, text.p + from + n, &n);
    return before == SCRIPT_DENSE || before == SCRIPT_KATAKANA ||
           memmem(token.p, token.n, "を", 3) != NULL;
}

static bool is_asker_stop(const struct reading *r, int from, int to)
{
    char lower[TOKENIZER_WORD_MAX];
    size_t n = (size_t)(to - from);
    if (n > sizeof(lower))
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = r->text.p[from + (int)i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return wordset_has(&r->stops, (struct str){lower, n});
}

static bool is_number(struct str token)
{
    size_t n = 0;
    while (n < token.n && token.p[n] >= '0' && token.p[n] <= '9')
        n++;
    return n == token.n;
}

static int take_token(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct reading *r = arg;
    struct question *q = r->q;
    struct str s = {token, (size_t)n};
    if ((flags & FTS5_TOKEN_COLOCATED) != 0) {
        if (!r->skipped && q->count > 0 && word_of(q, s) == q->count)
            add_form(q, &q->words[q->count - 1], s);
        return SQLITE_OK;
    }
    r->skipped =
        q->count == QUESTION_WORDS || word_of(q, s) < q->count || is_asker_stop(r, from, to);
    if (r->skipped)
        return SQLITE_OK;
    struct question_word *w = &q->words[q->count++];
    bool light = wordset_has(&r->t->light, s) || is_number(s) || is_grammar(r->text, s, from);
    *w = (struct question_word){.source = {r->text.p + from, (size_t)(to - from)},
                                .meaning = meaning_of(s, light),
                                .light = light};
    add_form(q, w, s);
    return SQLITE_OK;
}

static int take_light(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct buf *stems = arg;
    (void)flags, (void)from, (void)to;
    buf_add(stems, token, (size_t)n);
    buf_adds(stems, " ");
    return SQLITE_OK;
}

static int make_light(struct file_table *t)
{
    struct str list = str_of(tokenizer_language(t->tokenizer)->light);
    if (t->light.slots != NULL)
        return SQLITE_OK;
    int rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_QUERY, list, take_light, &t->light_stems);
    buf_add(&t->light_stems, "", 1);
    if (rc != SQLITE_OK || !buf_ok(&t->light_stems))
        return rc != SQLITE_OK ? rc : SQLITE_NOMEM;
    return wordset_make(&t->light, t->light_stems.p) ? SQLITE_OK : SQLITE_NOMEM;
}

static bool has_compounds(const struct file_table *t)
{
    static const char *const tags[] = {"de", "nl", "sv", "da", "nb", "no", "fi", "hu"};
    for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++)
        if (strcmp(tags[i], t->language) == 0)
            return true;
    return false;
}

int question_read(struct file_table *t, struct str language, struct str text, struct question *out)
{
    struct reading r = {.t = t, .q = out, .text = text, .asker = language_find(language)};
    if (r.text.n > QUESTION_BYTES)
        r.text.n = QUESTION_BYTES;
    *out = (struct question){.compounds = has_compounds(t)};
    int rc = make_light(t);
    if (rc == SQLITE_OK)
        rc = synonyms_make(t);
    if (rc == SQLITE_OK && r.asker != tokenizer_language(t->tokenizer) &&
        !wordset_make(&r.stops, r.asker->stop))
        rc = SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_QUERY, r.text, take_token, &r);
    wordset_free(&r.stops);
    for (unsigned i = 0; i < out->count; i++) {
        synonyms_add(t, &out->words[i]);
        out->words[i].meaning *= out->words[i].policy ? MEANING_POLICY : 1;
    }
    question_index(out);
    return rc;
}

/* A damaged count must not overflow sums. */
static int64_t clamped(int64_t n)
{
    return n < 0 ? 0 : n < UINT32_MAX ? n : UINT32_MAX;
}

static enum store_status documents_with(struct file *f, const struct file_table *t,
                                        struct str token, int64_t *sum)
{
    sqlite3_bind_int64(f->documents_with, 1, t->number);
    bind_str(f->documents_with, 2, token);
    int rc = sqlite3_step(f->documents_with);
    if (rc == SQLITE_ROW)
        *sum += clamped(sqlite3_column_int64(f->documents_with, 0));
    enum store_status status = file_status(f, rc);
    sqlite3_reset(f->documents_with);
    return status;
}

enum store_status question_count_documents(struct question_word *w, struct file *f,
                                           const struct file_table *t)
{
    enum store_status status = STORE_OK;
    for (unsigned j = 0; j < w->form_count && status == STORE_OK; j++) {
        status = documents_with(f, t, form_str(&w->forms[j]), &w->documents);
        if (j < w->own)
            w->own_documents = w->documents;
    }
    return status;
}

void question_index(struct question *q)
{
    q->first = 0;
    for (unsigned i = 0; i < q->count; i++) {
        question_stem(q, &q->words[i]);
        for (unsigned j = 0; j < q->words[i].form_count; j++)
            q->first |= first_bit(form_str(&q->words[i].forms[j]));
    }
}

static void begin_phrase(struct buf *out)
{
    buf_adds(out, out->n == 0 || out->p[out->n - 1] == '(' ? "\"" : " OR \"");
    buf_adds(out, TOKENIZER_VERBATIM);
}

/* The tokenizer's forms are at one place; each synonym is a phrase. */
static void put_word(const struct question_word *w, struct buf *out)
{
    for (unsigned i = 0; i < w->form_count; i++) {
        if (i == 0 || i >= w->own)
            begin_phrase(out);
        else
            buf_adds(out, TOKENIZER_SAME);
        buf_str(out, form_str(&w->forms[i]));
        buf_adds(out, i + 1 < w->own ? "" : "\"");
    }
}

void question_expression(const struct question *q, const unsigned *words, unsigned count,
                         struct buf *out)
{
    for (unsigned i = 0; i < count; i++) {
        const struct question_word *w = &q->words[words[i]];
        put_word(w, out);
        if (w->start > 0) {
            begin_phrase(out);
            buf_str(out, (struct str){w->forms[0].p, w->start});
            buf_adds(out, "\" *");
        }
        if (w->slip.n > 0) {
            begin_phrase(out);
            buf_str(out, form_str(&w->slip));
            buf_adds(out, "\"");
        }
    }
}
