#include "store/answers/tokenizer_internal.h"

#include "store/answers/language_internal.h"
#include "store/answers/script_internal.h"
#include "store/bytes.h"

#include <libstemmer.h>
#include <stdlib.h>

struct tokenizer {
    const struct language *language;
    fts5_tokenizer unicode;
    Fts5Tokenizer *parts;  /* unicode61, keeping accents */
    Fts5Tokenizer *strips; /* unicode61, removing accents */
    struct sb_stemmer *stemmer;
    struct wordset stops;
};

/* State while a text is tokenized. */
struct run {
    struct tokenizer *t;
    token_fn *token;
    void *arg;
    int flags;
};

struct form {
    char p[TOKENIZER_WORD_MAX];
    size_t n;
};

static void form_set(struct form *f, const char *p, size_t n)
{
    if (n > TOKENIZER_WORD_MAX)
        for (n = TOKENIZER_WORD_MAX; ((uint8_t)p[n] & 0xc0) == 0x80;)
            n--;
    memcpy(f->p, p, n);
    f->n = n;
}

static int take_form(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct form *f = arg;
    (void)flags, (void)to;
    if (from == 0)
        form_set(f, token, (size_t)n);
    return SQLITE_OK;
}

static bool is_ascii(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (uint8_t)p[i] < 0x80)
        i++;
    return i == n;
}

static int strip(struct tokenizer *t, const struct form *f, struct form *out)
{
    *out = *f;
    if (is_ascii(f->p, f->n))
        return SQLITE_OK;
    return t->unicode.xTokenize(t->strips, out, FTS5_TOKENIZE_AUX, f->p, (int)f->n, take_form);
}

static void stem(struct tokenizer *t, const struct form *f, struct form *out)
{
    const sb_symbol *s = NULL;
    if (t->stemmer != NULL)
        s = sb_stemmer_stem(t->stemmer, (const sb_symbol *)f->p, (int)f->n);
    if (s == NULL)
        *out = *f;
    else
        form_set(out, (const char *)s, (size_t)sb_stemmer_length(t->stemmer));
}

static bool form_eq(const struct form *a, const struct form *b)
{
    return str_eq((struct str){a->p, a->n}, (struct str){b->p, b->n});
}

static int emit(struct run *r, int flags, const struct form *f, int from, int to)
{
    return f->n == 0 ? SQLITE_OK : r->token(r->arg, flags, f->p, (int)f->n, from, to);
}

static int spaced_word(struct run *r, const char *p, size_t n, int from, int to)
{
    struct form word, plain, stemmed, first, second;
    form_set(&word, p, n);
    int rc = strip(r->t, &word, &plain);
    if (rc != SQLITE_OK || wordset_has(&r->t->stops, (struct str){plain.p, plain.n}))
        return rc;
    stem(r->t, &word, &stemmed);
    rc = strip(r->t, &stemmed, &first);
    if (rc == SQLITE_OK)
        rc = emit(r, 0, &first, from, to);
    if (rc != SQLITE_OK || form_eq(&word, &plain))
        return rc;
    stem(r->t, &plain, &second);
    int flags = first.n > 0 ? FTS5_TOKEN_COLOCATED : 0;
    return form_eq(&first, &second) ? rc : emit(r, flags, &second, from, to);
}

struct piece {
    const char *p;
    size_t n;
};

/* ${two}: the letter and the next one; the letter alone at the end of its run. */
static int dense_pair(struct run *r, struct piece one, size_t second, bool starts, int from)
{
    bool document = (r->flags & FTS5_TOKENIZE_DOCUMENT) != 0;
    struct form f;
    int rc = SQLITE_OK;
    if (second > 0) {
        form_set(&f, one.p, one.n + second);
        rc = emit(r, 0, &f, from, from + (int)f.n);
    }
    if (rc != SQLITE_OK || (second > 0 && !document) || (second == 0 && !starts && !document))
        return rc;
    form_set(&f, one.p, one.n);
    return emit(r, second > 0 ? FTS5_TOKEN_COLOCATED : 0, &f, from, from + (int)f.n);
}

/* Does a run continue? A question's run ends where Hiragana, mostly grammar, begins or ends. */
static bool goes_on(const struct run *r, enum script last, enum script next)
{
    if (next == SCRIPT_SPACED)
        return false;
    return last == next || (r->flags & FTS5_TOKENIZE_DOCUMENT) != 0;
}

/* The run of a dense script at ${p}; returns its end. */
static int dense_run(struct run *r, const char **p, const char *end, int from)
{
    const char *begin = *p;
    size_t n, next = 0;
    int rc = SQLITE_OK;
    enum script script = script_of(*p, end, &n);
    bool particle = script == SCRIPT_HIRAGANA; /* a single letter in a question */
    for (bool more = true; more && rc == SQLITE_OK; *p += n, n = next) {
        enum script last = script;
        more = *p + n < end && goes_on(r, last, script = script_of(*p + n, end, &next));
        rc = dense_pair(r, (struct piece){*p, n}, more ? next : 0, *p == begin && !particle,
                        from + (int)(*p - begin));
    }
    return rc;
}

static const char *spaced_end(const char *p, const char *end)
{
    size_t n;
    while (p < end && script_of(p, end, &n) == SCRIPT_SPACED)
        p += n;
    return p;
}

/* Scripts can be adjacent without a space. Folding keeps the length of letters of dense scripts. */
static int take_part(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct run *r = arg;
    const char *end = token + n;
    int rc = SQLITE_OK;
    (void)flags;
    if (is_ascii(token, (size_t)n) || to - from != n)
        return spaced_word(r, token, (size_t)n, from, to);
    for (const char *p = token; p < end && rc == SQLITE_OK;) {
        const char *spaced = spaced_end(p, end), *begin = p;
        int at = from + (int)(p - token);
        if (spaced > p) {
            rc = spaced_word(r, p, (size_t)(spaced - p), at, at + (int)(spaced - p));
            p = spaced;
        } else {
            rc = dense_run(r, &p, end, at);
        }
        if (p == begin)
            break;
    }
    return rc;
}

int tokenizer_run(struct tokenizer *t, int flags, struct str text, token_fn *token, void *arg)
{
    struct run r = {t, token, arg, flags};
    if (text.n == 0 || text.n > INT32_MAX)
        return SQLITE_OK;
    return t->unicode.xTokenize(t->parts, &r, flags, text.p, (int)text.n, take_part);
}

const struct language *tokenizer_language(const struct tokenizer *t)
{
    return t->language;
}

/* Marks are parts of letters in Thai and in the scripts of India. */
static int open_unicode(fts5_api *api, struct tokenizer *t)
{
    const char *keep[] = {"remove_diacritics", "0", "categories", "L* N* Co M*"};
    const char *remove[] = {"remove_diacritics", "2", "categories", "L* N* Co M*"};
    void *context;
    int rc = api->xFindTokenizer(api, "unicode61", &context, &t->unicode);
    if (rc == SQLITE_OK)
        rc = t->unicode.xCreate(context, keep, 4, &t->parts);
    if (rc == SQLITE_OK)
        rc = t->unicode.xCreate(context, remove, 4, &t->strips);
    return rc;
}

int tokenizer_new(fts5_api *api, const struct language *language, struct tokenizer **out)
{
    struct tokenizer *t = calloc(1, sizeof(*t));
    int rc = t == NULL ? SQLITE_NOMEM : open_unicode(api, t);
    if (rc == SQLITE_OK && !wordset_make(&t->stops, language->stop))
        rc = SQLITE_NOMEM;
    if (rc == SQLITE_OK && language->stemmer != NULL) {
        t->stemmer = sb_stemmer_new(language->stemmer, NULL);
        rc = t->stemmer == NULL ? SQLITE_NOMEM : SQLITE_OK;
    }
    if (rc != SQLITE_OK) {
        tokenizer_free(t);
        return rc;
    }
    t->language = language;
    *out = t;
    return SQLITE_OK;
}

void tokenizer_free(struct tokenizer *t)
{
    if (t == NULL)
        return;
    if (t->parts != NULL)
        t->unicode.xDelete(t->parts);
    if (t->strips != NULL)
        t->unicode.xDelete(t->strips);
    sb_stemmer_delete(t->stemmer);
    wordset_free(&t->stops);
    free(t);
}

/* ---- callbacks of FTS5 ---- */

static int create(void *api, const char **args, int count, Fts5Tokenizer **out)
{
    struct str tag = str_of(count > 0 ? args[0] : "");
    return tokenizer_new(api, language_find(tag), (struct tokenizer **)out);
}

static void free_tokenizer(Fts5Tokenizer *t)
{
    tokenizer_free((struct tokenizer *)t);
}

static int verbatim(struct str tokens, void *arg, token_fn *token)
{
    int rc = SQLITE_OK, flags = 0;
    while (tokens.n > 0 && rc == SQLITE_OK) {
        const char *end = memmem(tokens.p, tokens.n, TOKENIZER_SAME, 3);
        size_t n = end == NULL ? tokens.n : (size_t)(end - tokens.p);
        size_t step = end == NULL ? n : n + 3;
        rc = token(arg, flags, tokens.p, (int)n, 0, (int)n);
        tokens = (struct str){tokens.p + step, tokens.n - step};
        flags = FTS5_TOKEN_COLOCATED;
    }
    return rc;
}

static int tokenize(Fts5Tokenizer *t, void *arg, int flags, const char *text, int n,
                    int (*token)(void *, int, const char *, int, int, int))
{
    bool query = (flags & FTS5_TOKENIZE_QUERY) != 0;
    if (query && n > 3 && memcmp(text, TOKENIZER_VERBATIM, 3) == 0)
        return verbatim((struct str){text + 3, (size_t)n - 3}, arg, token);
    return tokenizer_run((struct tokenizer *)t, flags, (struct str){text, (size_t)n}, token, arg);
}

static int find_api(sqlite3 *db, fts5_api **api)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL);
    *api = NULL;
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_pointer(stmt, 1, api, "fts5_api_ptr", NULL);
    if (rc == SQLITE_OK)
        sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc != SQLITE_OK || *api != NULL ? rc : SQLITE_ERROR;
}

int tokenizer_register(sqlite3 *db, fts5_api **api)
{
    fts5_tokenizer own = {create, free_tokenizer, tokenize};
    int rc = find_api(db, api);
    return rc != SQLITE_OK ? rc : (*api)->xCreateTokenizer(*api, "assay", *api, &own, NULL);
}
