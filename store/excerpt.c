#include "text.h"

#include <stdlib.h>

/*
 * A passage begins where a sentence or a line does, or at the first word asked for where none fits, and is as many bytes as are asked for at
 * most. The words of the question in the text are found once; each beginning is then looked at with those behind it.
 */

#define FOUND_MAX 512 /* places that are looked at: the first in the text, and of each word no more than its share */

struct place {
    uint32_t from, to;
    uint32_t start; /* of its sentence */
    unsigned term;
};

static unsigned term_of(const struct text_question *q, uint64_t hash)
{
    unsigned i = 0;
    while (i < q->count && q->terms[i].hash != hash)
        i++;
    return i;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Does a sentence end before ${at}? After a line; after a full stop and a space; after one of the wide ones of CJK. */
static bool sentence_starts(const uint8_t *p, size_t at)
{
    static const char wide[][4] = {"。", "！", "？", "।"};
    if (at == 0 || p[at - 1] == '\n')
        return true;
    if (at >= 2 && is_space(p[at - 1]) && (p[at - 2] == '.' || p[at - 2] == '!' || p[at - 2] == '?'))
        return true;
    for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
        if (at >= 3 && memcmp(p + at - 3, wide[i], 3) == 0)
            return true;
    return false;
}

/* Where the sentence begins that ${at} is in, at most ${most} before it; ${at} where it begins earlier. */
static size_t sentence_of(const uint8_t *p, size_t at, size_t most)
{
    for (size_t i = at; at - i <= most; i--) {
        if (sentence_starts(p, i))
            return i;
        if (i == 0)
            break;
    }
    return at;
}

static size_t find_places(const struct text_question *q, struct str text, size_t most_bytes, struct place *places)
{
    struct words w;
    struct word word;
    unsigned seen[TEXT_QUESTION_WORDS] = {0}, each = FOUND_MAX / (q->count + 1);
    size_t n = 0;
    words_begin(&w, text, false);
    while (n < FOUND_MAX && words_next(&w, &word)) {
        unsigned term = term_of(q, word.hash);
        if (term == q->count || q->terms[term].stop || seen[term]++ >= each)
            continue;
        size_t start = sentence_of((const uint8_t *)text.p, word.from, most_bytes / 2);
        places[n++] = (struct place){word.from, word.to, (uint32_t)start, term};
    }
    return n;
}

/* What the passage that begins at a place's sentence has: each word's weight once. */
static double passage_weight(const struct text_question *q, const struct place *places, size_t first, size_t n, size_t most_bytes)
{
    bool has[TEXT_QUESTION_WORDS] = {false};
    double sum = 0;
    for (size_t i = first; i < n && places[i].to - places[first].start <= most_bytes; i++) {
        sum += has[places[i].term] ? 0 : (double)q->terms[places[i].term].weight;
        has[places[i].term] = true;
    }
    return sum;
}

static bool is_continuation(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* As far as the last sentence that ends within, if the last word asked for is in it; else to a word's end; else to a letter's. */
static size_t passage_end(struct str text, size_t from, size_t needed, size_t most_bytes)
{
    const uint8_t *p = (const uint8_t *)text.p;
    size_t most = from + most_bytes;
    if (most >= text.n)
        return text.n;
    for (size_t at = most; at >= needed && at > from; at--)
        if (sentence_starts(p, at))
            return at;
    for (size_t at = most; at > from && at > needed; at--)
        if (is_space(p[at]))
            return at;
    while (most > from && is_continuation(text.p[most]))
        most--;
    return most;
}

static struct str trimmed(struct str s)
{
    while (s.n > 0 && is_space((uint8_t)*s.p))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n > 0 && is_space((uint8_t)s.p[s.n - 1]))
        s.n--;
    return s;
}

struct str excerpt(const struct text_question *q, struct str text, size_t most_bytes)
{
    struct place places[FOUND_MAX];
    if (text.n == 0)
        return text;
    size_t n = find_places(q, text, most_bytes, places), best = 0, needed = 0;
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double weight = passage_weight(q, places, i, n, most_bytes);
        if (weight > most) {
            most = weight;
            best = i;
        }
    }
    size_t from = n == 0 ? 0 : places[best].start;
    for (size_t i = best; i < n && places[i].to - from <= most_bytes; i++)
        needed = places[i].to;
    size_t end = passage_end(text, from, needed, most_bytes);
    return trimmed((struct str){text.p + from, end - from});
}
