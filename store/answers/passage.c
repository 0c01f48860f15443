#include "reader.h"

#include <stdlib.h>

/*
 * FTS5's snippet() finds the passage, in a table in memory that has one row, the caller's text;
 * the passage then grows to whole sentences on both sides while they fit.
 */

#define SNIPPET_TOKENS_MAX 64 /* FTS5's own limit */
#define TOKEN_BYTES 12        /* of text for a token, about: stop words are not tokens */
#define PASSAGE_TEXT_MAX (256 * 1024)

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_continuation(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* Does a sentence begin at ${at}? After a line; after a full stop and a space; after a wide one. */
static bool sentence_starts(struct str text, size_t at)
{
    static const char wide[][4] = {"。", "！", "？", "।"};
    const char *p = text.p + at;
    if (at == 0 || at == text.n || p[-1] == '\n')
        return true;
    if (at >= 2 && is_space(p[-1]) && (p[-2] == '.' || p[-2] == '!' || p[-2] == '?'))
        return true;
    for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
        if (at >= 3 && memcmp(p - 3, wide[i], 3) == 0)
            return true;
    return false;
}

/* The nearest start of a sentence at or before ${at}, no earlier than ${least}; else ${at}. */
static size_t start_before(struct str text, size_t at, size_t least)
{
    for (size_t i = at;; i--) {
        if (sentence_starts(text, i))
            return i;
        if (i <= least)
            return at;
    }
}

/* The last end of a sentence from ${least} to ${most}; else of a word; else of a letter. */
static size_t end_within(struct str text, size_t from, size_t least, size_t most)
{
    if (most >= text.n)
        return text.n;
    for (size_t i = most; i >= least && i > from; i--)
        if (sentence_starts(text, i))
            return i;
    for (size_t i = most; i > from; i--)
        if (is_space(text.p[i]))
            return i;
    while (most > from && is_continuation(text.p[most]))
        most--;
    return most;
}

static struct str trimmed(struct str s)
{
    while (s.n > 0 && is_space(*s.p))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The snippet is at ${from}, ${n} bytes long. */
static struct str grown(struct str text, size_t from, size_t n, size_t most_bytes)
{
    size_t spare = most_bytes > n ? most_bytes - n : 0;
    size_t start = start_before(text, from, from > spare ? from - spare : 0);
    while (start > 0 && is_continuation(text.p[start]))
        start--;
    size_t end = end_within(text, start, from + n, start + most_bytes);
    return trimmed((struct str){text.p + start, end - start});
}

/* ---- the table in memory ---- */

void passage_close(struct passage *p)
{
    sqlite3_finalize(p->insert);
    sqlite3_finalize(p->find);
    sqlite3_finalize(p->clear);
    tokenizer_free(p->words.tokenizer);
    wordset_free(&p->words.light);
    buf_free(&p->words.light_stems);
    buf_free(&p->words.synonyms);
    sqlite3_close(p->db);
    *p = (struct passage){0};
}

static int create(sqlite3 *db, const struct language *language)
{
    char *sql = sqlite3_mprintf(
        "CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='assay %s')", language->tag);
    int rc = sql == NULL ? SQLITE_NOMEM : sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc;
}

static int prepare(struct passage *p)
{
    static const char find[] = "SELECT snippet(passage, 0, '', '', '', ?2) FROM passage"
                               " WHERE passage MATCH ?1";
    int rc = sqlite3_prepare_v2(p->db, "INSERT INTO passage VALUES(?1)", -1, &p->insert, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(p->db, find, -1, &p->find, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(p->db, "DELETE FROM passage", -1, &p->clear, NULL);
    return rc;
}

/* The table for this language: the last one's, if that is the same. */
static int open_table(struct passage *p, const struct language *language)
{
    fts5_api *api;
    if (p->language == language)
        return SQLITE_OK;
    passage_close(p);
    int rc = sqlite3_open_v2(":memory:", &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = tokenizer_register(p->db, &api);
    if (rc == SQLITE_OK)
        rc = create(p->db, language);
    if (rc == SQLITE_OK)
        rc = prepare(p);
    if (rc == SQLITE_OK)
        rc = tokenizer_new(api, language, &p->words.tokenizer);
    p->language = rc == SQLITE_OK ? language : NULL;
    return rc;
}

/* The snippet is a part of the text; its place is where the text has it. */
static struct str place_of(struct str text, struct str snippet)
{
    const char *at = snippet.n == 0 ? NULL : memmem(text.p, text.n, snippet.p, snippet.n);
    return at == NULL ? (struct str){text.p, 0} : (struct str){at, snippet.n};
}

static int step(sqlite3_stmt *stmt)
{
    sqlite3_step(stmt);
    return sqlite3_reset(stmt);
}

static int snippet(struct passage *p, struct str text, const struct buf *expression,
                   size_t most_bytes, struct str *out)
{
    size_t tokens = most_bytes / TOKEN_BYTES;
    tokens = tokens < 1 ? 1 : tokens < SNIPPET_TOKENS_MAX ? tokens : SNIPPET_TOKENS_MAX;
    bind_str(p->insert, 1, text);
    int rc = step(p->insert);
    if (rc != SQLITE_OK)
        return rc;
    bind_str(p->find, 1, buf_view(expression));
    sqlite3_bind_int(p->find, 2, (int)tokens);
    rc = sqlite3_step(p->find);
    if (rc == SQLITE_ROW)
        *out = place_of(text, column_str(p->find, 0));
    rc = sqlite3_reset(p->find);
    return rc != SQLITE_OK ? rc : step(p->clear);
}

/* All words of the question, as this language's tokenizer reads them. */
static int expression_of(struct passage *p, struct str question, struct buf *out)
{
    struct question q;
    unsigned words[QUESTION_WORDS];
    int rc = question_read(&p->words, str_of(p->language->tag), question, &q);
    for (unsigned i = 0; rc == SQLITE_OK && i < q.count; i++)
        words[i] = i;
    if (rc == SQLITE_OK)
        question_expression(&q, words, q.count, out);
    return rc == SQLITE_OK && !buf_ok(out) ? SQLITE_NOMEM : rc;
}

enum store_status answers_excerpt(struct answers_reader *r, struct str language,
                                  struct str question, struct str text, size_t most_bytes,
                                  struct str *out)
{
    struct passage *p = &r->passage;
    struct buf expression = {0};
    struct str found = {text.p, 0};
    if (text.n > PASSAGE_TEXT_MAX)
        text.n = PASSAGE_TEXT_MAX;
    *out = found;
    if (text.n == 0)
        return STORE_OK;
    int rc = open_table(p, language_find(language));
    if (rc == SQLITE_OK)
        rc = expression_of(p, question, &expression);
    if (rc == SQLITE_OK && expression.n > 0)
        rc = snippet(p, text, &expression, most_bytes, &found);
    buf_free(&expression);
    if (rc == SQLITE_OK)
        *out = grown(text, (size_t)(found.p - text.p), found.n, most_bytes);
    else
        passage_close(p);
    return rc == SQLITE_OK ? STORE_OK : STORE_BUSY;
}
