#include "store/index/bitmap_internal.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/search_internal.h"

#include <stdlib.h>

#define PRESENT_WORDS (TRIGRAM_CODES / 64)
#define BEFORE_STEP 8
#define FREQUENT 64   /* a word is frequent if one in so many rows has it, */
#define ROWS_LEAST 32 /* and at least this many */
#define WORD_BYTES_MAX 64
#define WORDS_A_ROW 64

void *part_space(struct buf *out, size_t n)
{
    size_t padded = (n + 7) & ~(size_t)7;
    char *p = buf_reserve(out, padded);
    if (p == NULL)
        return NULL;
    if (padded != 0)
        memset(p, 0, padded);
    out->n += padded;
    return p;
}

void part_put(struct buf *out, const void *p, size_t n)
{
    void *to = part_space(out, n);
    if (to != NULL && n != 0)
        memcpy(to, p, n);
}

struct urls {
    const struct str *first;
    uint32_t count;
    size_t stride;
};

static struct str url_at(const struct urls *u, uint32_t i)
{
    return *(const struct str *)(const void *)((const char *)u->first + i * u->stride);
}

/* ---- trigrams ---- */

/* For each code: the number of its rows, and the last one noted, from 1. */
struct trigram {
    uint32_t rows, last, at;
};

static void count_trigrams(const struct urls *u, struct trigram *trigrams, uint64_t *present)
{
    for (uint32_t row = 0; row < u->count; row++) {
        struct str url = url_at(u, row);
        for (size_t i = 0; i + 3 <= url.n; i++) {
            uint32_t code = search_trigram((const uint8_t *)url.p + i);
            struct trigram *g = &trigrams[code];
            bit_set(present, code);
            g->rows += g->last != row + 1;
            g->last = row + 1;
        }
    }
}

static void put_present(const uint64_t *present, struct buf *out)
{
    part_put(out, present, PRESENT_WORDS * sizeof(*present));
    uint32_t *before = part_space(out, PRESENT_WORDS / BEFORE_STEP * sizeof(*before));
    for (uint32_t i = 0, n = 0; before != NULL && i < PRESENT_WORDS; i++) {
        if (i % BEFORE_STEP == 0)
            before[i / BEFORE_STEP] = n;
        n += bit_count(present[i]);
    }
}

/*
 * Set where the rows of each code begin; returns the number of all. ${bitmap}: numbers that a
 * bitmap takes.
 */
static uint32_t place_grams(const uint64_t *present, struct trigram *trigrams, uint32_t bitmap,
                            uint32_t *at)
{
    uint32_t n = 0, sum = 0;
    for (uint32_t i = 0; i < PRESENT_WORDS; i++) {
        for (uint64_t left = present[i]; left != 0; left &= left - 1) {
            struct trigram *g = &trigrams[i * 64 + (uint32_t)__builtin_ctzll(left)];
            at[n++] = g->at = sum;
            g->last = 0;
            sum += g->rows < bitmap ? g->rows : bitmap;
        }
    }
    at[n] = sum;
    return sum;
}

static void fill_trigrams(const struct urls *u, struct trigram *trigrams, uint32_t bitmap,
                          uint16_t *postings)
{
    for (uint32_t row = 0; row < u->count; row++) {
        struct str url = url_at(u, row);
        for (size_t i = 0; i + 3 <= url.n; i++) {
            struct trigram *g = &trigrams[search_trigram((const uint8_t *)url.p + i)];
            if (g->last == row + 1)
                continue;
            g->last = row + 1;
            if (g->rows < bitmap)
                postings[g->at++] = (uint16_t)row;
            else
                postings[g->at + row / 16] |= (uint16_t)(1u << row % 16);
        }
    }
}

static void put_trigrams(const struct urls *u, struct ngram_block_head *head, struct buf *out)
{
    struct trigram *trigrams = calloc(TRIGRAM_CODES, sizeof(*trigrams)); /* some megabytes */
    uint64_t present[PRESENT_WORDS] = {0};
    uint32_t bitmap = (u->count + 63) / 64 * 4;
    if (trigrams == NULL) {
        out->failed = true;
        return;
    }
    count_trigrams(u, trigrams, present);
    for (uint32_t i = 0; i < PRESENT_WORDS; i++)
        head->trigrams += bit_count(present[i]);
    put_present(present, out);
    uint32_t *at = part_space(out, ((size_t)head->trigrams + 1) * sizeof(*at));
    if (at != NULL) {
        head->postings = place_grams(present, trigrams, bitmap, at);
        uint16_t *postings = part_space(out, head->postings * sizeof(*postings));
        if (postings != NULL)
            fill_trigrams(u, trigrams, bitmap, postings);
    }
    free(trigrams);
}

/* ---- frequent words ---- */

struct word {
    struct str text; /* of its first occurrence */
    uint32_t hash, rows, last;
};

struct words {
    struct word *all; /* in the order of their first occurrence */
    size_t count, cap;
    uint32_t *slots; /* place of a word in ${all}, from 1; 0: none */
    size_t slot_count;
    struct buf met; /* for each row: its words by that place, and a 0 */
    bool failed;
};

static uint8_t fold(char c)
{
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool part_of_word(char c)
{
    uint8_t sort = search_sorts[(uint8_t)c];
    return sort >= search_sorts['a'] && sort <= search_sorts['9'];
}

static bool same_folded(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    if (memcmp(a.p, b.p, a.n) == 0) /* as most words are */
        return true;
    for (size_t i = 0; i < a.n; i++)
        if (fold(a.p[i]) != fold(b.p[i]))
            return false;
    return true;
}

static uint32_t hash_folded(struct str text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.n; i++)
        hash = (hash ^ fold(text.p[i])) * 0x100000001b3;
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t *word_slot(const struct words *w, uint32_t hash, struct str text)
{
    for (size_t at = hash;; at++) {
        uint32_t *slot = &w->slots[at & (w->slot_count - 1)];
        if (*slot == 0 ||
            (w->all[*slot - 1].hash == hash && same_folded(w->all[*slot - 1].text, text)))
            return slot;
    }
}

static void words_grow(struct words *w)
{
    size_t cap = w->cap == 0 ? 2048 : w->cap * 2;
    struct word *all = realloc(w->all, cap * sizeof(*all));
    uint32_t *slots = calloc(cap * 2, sizeof(*slots));
    if (all != NULL)
        w->all = all;
    w->failed = all == NULL || slots == NULL;
    if (w->failed) {
        free(slots);
        return;
    }
    free(w->slots);
    w->slots = slots;
    w->cap = cap;
    w->slot_count = cap * 2;
    for (uint32_t i = 0; i < w->count; i++) {
        size_t at = all[i].hash;
        while (slots[at & (w->slot_count - 1)] != 0)
            at++;
        slots[at & (w->slot_count - 1)] = i + 1;
    }
}

static void meet_word(struct words *w, uint32_t row, struct str text)
{
    if (w->count == w->cap)
        words_grow(w);
    if (w->failed)
        return;
    uint32_t hash = hash_folded(text), *slot = word_slot(w, hash, text);
    if (*slot == 0) {
        w->all[w->count++] = (struct word){.text = text, .hash = hash};
        *slot = (uint32_t)w->count;
    }
    struct word *word = &w->all[*slot - 1];
    if (word->last == row + 1)
        return;
    word->rows++;
    word->last = row + 1;
    buf_add(&w->met, slot, sizeof(*slot));
}

/*
 * Each word of a URL twice: with the separators after it, and with those before it. Words far into
 * a long URL are left out: their rows are compared instead.
 */
static void each_word(struct words *w, uint32_t row, struct str url)
{
    size_t at = 0, before = 0;
    for (unsigned words = 0; at < url.n && words < WORDS_A_ROW; words++) {
        size_t end, after;
        while (at < url.n && !part_of_word(url.p[at]))
            at++;
        for (end = at; end < url.n && part_of_word(url.p[end]);)
            end++;
        for (after = end; after < url.n && !part_of_word(url.p[after]);)
            after++;
        if (end != at && after - at <= WORD_BYTES_MAX)
            meet_word(w, row, (struct str){url.p + at, after - at});
        if (end != at && before != at && end - before <= WORD_BYTES_MAX)
            meet_word(w, row, (struct str){url.p + before, end - before});
        before = end;
        at = end;
        if (end == after)
            return;
    }
}

struct frequent {
    struct buf texts, at; /* folded, concatenated; where each begins, and the end */
    uint32_t least, count;
};

/* The number of a word, from 1. */
static uint32_t add_frequent(struct frequent *f, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = fold(text.p[i]);
        buf_add(&f->texts, &c, 1);
    }
    uint32_t end = (uint32_t)f->texts.n;
    buf_add(&f->at, &end, sizeof(end));
    return ++f->count;
}

/*
 * A word with its separators before it is read from its end, one with those after it from its
 * beginning.
 */
static struct str affix(const struct word *word, size_t n)
{
    bool end = !part_of_word(*word->text.p);
    return (struct str){end ? word->text.p + word->text.n - n : word->text.p, n};
}

/* The byte that extends the affix of ${n} bytes. */
static uint8_t next_byte(const struct word *word, size_t n)
{
    const char *p = affix(word, n).p;
    return fold(p == word->text.p ? p[n] : p[-1]);
}

/*
 * Move words whose affix of ${n} bytes is extended by that byte to the front; returns their number.
 */
static size_t gather(struct word **all, size_t count, size_t n, uint8_t byte)
{
    size_t front = 0;
    for (size_t i = 0; i < count; i++) {
        struct word *word = all[i];
        if (word->text.n == n || next_byte(word, n) != byte)
            continue;
        all[i] = all[front];
        all[front++] = word;
    }
    return front;
}

static unsigned most_of(const uint32_t rows[256])
{
    unsigned most = 0;
    for (unsigned byte = 1; byte < 256; byte++)
        if (rows[byte] > rows[most])
            most = byte;
    return most;
}

/*
 * ${all} share an affix of ${n} bytes. An affix that enough rows have becomes a frequent word: the
 * longest ones, and a shorter one if enough rows remain that no longer one covers. The most common
 * next byte is taken first, so that few words are left for the others, whatever the words are. A
 * row counts once for each of its words.
 */
static void add_affixes(struct frequent *f, struct word **all, size_t count, size_t n)
{
    /* three letters are answered by trigrams; few patterns are longer than the maximum */
    enum { LEAST = 4, MOST = 24 };
    uint32_t rows[256] = {0}, left = 0;
    size_t done = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i]->text.n > n && n < MOST)
            rows[next_byte(all[i], n)] += all[i]->rows;
    for (unsigned byte; rows[byte = most_of(rows)] >= f->least; rows[byte] = 0) {
        size_t with = gather(all + done, count - done, n, (uint8_t)byte);
        add_affixes(f, all + done, with, n + 1);
        done += with;
    }
    for (size_t i = 0; i < count; i++)
        left += all[i]->last == 0 ? all[i]->rows : 0;
    if (n < LEAST || left < f->least)
        return;
    uint32_t number = add_frequent(f, affix(all[0], n));
    for (size_t i = 0; i < count; i++)
        all[i]->last = all[i]->last == 0 ? number : all[i]->last;
}

/* From here on ${last} is the frequent word that a word contains, from 1; 0: none. */
static void choose_frequent(struct words *w, struct frequent *f)
{
    struct word **rare = calloc(w->count + 1, sizeof(*rare));
    size_t begin = 0, end = w->count;
    w->failed = w->failed || rare == NULL;
    for (size_t i = 0; i < w->count && !w->failed; i++) {
        struct word *word = &w->all[i];
        word->last = word->rows < f->least ? 0 : add_frequent(f, word->text);
        if (word->last == 0)
            rare[part_of_word(*word->text.p) ? begin++ : --end] = word;
    }
    if (!w->failed) {
        add_affixes(f, rare, begin, 0);
        add_affixes(f, rare + end, w->count - end, 0);
    }
    free(rare);
}

static void mark_rows(const struct words *w, uint64_t *bits, uint32_t bitmap)
{
    const uint32_t *met = (const uint32_t *)(const void *)w->met.p,
                   *end = met + w->met.n / sizeof(*met);
    for (uint32_t row = 0; met < end; met++)
        if (*met == 0)
            row++;
        else if (w->all[*met - 1].last != 0)
            bit_set(bits + (size_t)(w->all[*met - 1].last - 1) * bitmap, row);
}

static void put_words(const struct urls *u, struct ngram_block_head *head, struct buf *out)
{
    struct words w = {0};
    struct frequent f = {.least =
                             u->count / FREQUENT < ROWS_LEAST ? ROWS_LEAST : u->count / FREQUENT};
    uint32_t zero = 0, bitmap = (u->count + 63) / 64;
    for (uint32_t row = 0; row < u->count && !w.failed; row++) {
        each_word(&w, row, url_at(u, row));
        buf_add(&w.met, &zero, sizeof(zero));
    }
    buf_add(&f.at, &zero, sizeof(zero));
    choose_frequent(&w, &f);
    head->words = f.count;
    head->word_bytes = (uint32_t)f.texts.n;
    part_put(out, f.at.p, f.at.n);
    uint64_t *bits = part_space(out, (size_t)f.count * bitmap * sizeof(*bits));
    if (bits != NULL && f.count != 0 && buf_ok(&w.met))
        mark_rows(&w, bits, bitmap);
    part_put(out, f.texts.p, f.texts.n);
    out->failed = out->failed || w.failed || w.met.failed || f.texts.failed || f.at.failed;
    buf_free(&f.texts);
    buf_free(&f.at);
    buf_free(&w.met);
    free(w.slots);
    free(w.all);
}

/* ---- the block ---- */

static void put_text(const struct urls *u, size_t bytes, struct buf *out)
{
    char *to = part_space(out, bytes + TEXT_PAD);
    for (uint32_t i = 0; to != NULL && i < u->count; i++) {
        struct str url = url_at(u, i);
        memcpy(to, url.p, url.n);
        to += url.n + 1;
    }
}

void ngram_block_make(const struct str *urls, uint32_t count, size_t stride, struct buf *out)
{
    const struct urls u = {urls, count, stride};
    struct ngram_block_head head = {.rows = count};
    size_t head_at = out->n;
    part_put(out, &head, sizeof(head));
    uint32_t *offset = part_space(out, ((size_t)count + 1) * sizeof(*offset));
    for (uint32_t i = 0; offset != NULL && i < count; i++) {
        struct str url = url_at(&u, i);
        head.text_bytes += (uint32_t)url.n + 1;
        head.short_rows += url.n < 3;
        offset[i + 1] = head.text_bytes;
    }
    put_trigrams(&u, &head, out);
    put_words(&u, &head, out);
    put_text(&u, head.text_bytes, out);
    if (buf_ok(out))
        memcpy(out->p + head_at, &head, sizeof(head));
}
