#include "store/answers/answers.h"
#include "store/answers/file_internal.h"
#include "store/answers/language_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/reader_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/store.h"

/*
 * The passage of a text with most of a question's words: the window over the places of these words
 * with most of the question's meaning, extended to whole sentences while they fit. FTS5's snippet()
 * costs the square of the number of places, of which one text can have thousands.
 */

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

/* The window begins at ${from} and has ${n} bytes. */
static struct str grown(struct str text, size_t from, size_t n, size_t most_bytes)
{
    size_t spare = most_bytes > n ? most_bytes - n : 0;
    size_t start = start_before(text, from, from > spare ? from - spare : 0);
    while (start > 0 && is_continuation(text.p[start]))
        start--;
    size_t end = end_within(text, start, from + n, start + most_bytes);
    return trimmed((struct str){text.p + start, end - start});
}

/* ---- the window ---- */

struct place {
    uint32_t from, to;
    uint32_t word; /* number in the question */
};

struct finding {
    const struct question *q;
    struct buf places; /* in order */
};

static int take_token(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct finding *f = arg;
    const struct str s = {token, (size_t)n};
    double part;
    (void)flags;
    unsigned word = question_match(f->q, s, &part);
    const struct place place = {(uint32_t)from, (uint32_t)to, word};
    if (word < f->q->count)
        buf_add(&f->places, &place, sizeof(place));
    return buf_ok(&f->places) ? SQLITE_OK : SQLITE_NOMEM;
}

/* The first of the best windows of at most ${most} bytes: *from, and its length; 0: none fits. */
static size_t best_window(const struct finding *f, size_t most, size_t *from)
{
    const struct place *places = (const struct place *)(const void *)f->places.p;
    size_t count = f->places.n / sizeof(*places), first = 0, length = 0;
    unsigned there[QUESTION_WORDS] = {0};
    double meaning = 0, best = 0;
    for (size_t i = 0; i < count; i++) {
        if (there[places[i].word]++ == 0)
            meaning += f->q->words[places[i].word].meaning;
        for (; first <= i && places[i].to - places[first].from > most; first++)
            if (--there[places[first].word] == 0)
                meaning -= f->q->words[places[first].word].meaning;
        if (first > i || meaning <= best + 1e-9)
            continue;
        best = meaning;
        *from = places[first].from;
        length = places[i].to - places[first].from;
    }
    return length;
}

static struct file_table *table_of(struct file *f, struct str language)
{
    const char *tag = language_find(language)->tag;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->tables[i].language, tag) == 0)
            return &f->tables[i];
    return NULL;
}

enum store_status answers_excerpt(struct answers_reader *r, struct str language,
                                  struct str question, struct str text, size_t most_bytes,
                                  struct str *out)
{
    struct file_table *t = table_of(&r->f, language);
    struct question q;
    struct finding f = {.q = &q};
    size_t from = 0, length = 0;
    if (text.n > PASSAGE_TEXT_MAX)
        text.n = PASSAGE_TEXT_MAX;
    if (text.n <= most_bytes) {
        *out = trimmed(text);
        return STORE_OK;
    }
    int rc = t == NULL ? SQLITE_OK : question_read(t, language, question, &q);
    if (rc == SQLITE_OK && t != NULL)
        rc = tokenizer_run(t->tokenizer, FTS5_TOKENIZE_DOCUMENT, text, take_token, &f);
    if (rc == SQLITE_OK)
        length = best_window(&f, most_bytes, &from);
    buf_free(&f.places);
    *out = grown(text, from, length, most_bytes);
    return rc == SQLITE_OK ? STORE_OK : STORE_BUSY;
}
