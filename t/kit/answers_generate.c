#include "t/kit/answers_sets.h"

#include <stdio.h>
#include <stdlib.h>

#define NONSENSE 50000 /* words beside those of the sets */

struct word {
    char *p;
    size_t document;
};

struct vocabulary {
    struct word *words; /* each as often as the sets have it */
    size_t count, cap;
};

static uint32_t pick(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33) % below;
}

static void add_word(struct vocabulary *v, const char *p, size_t n, size_t document)
{
    if (v->count == v->cap) {
        v->cap = v->cap * 2 + 1024;
        v->words = realloc(v->words, v->cap * sizeof(*v->words));
    }
    v->words[v->count++] = (struct word){strndup(p, n), document};
}

static void add_words(struct vocabulary *v, const char *text, size_t document)
{
    static const char ends[] = " \n\t.,;:!?()\"";
    while (*text != '\0') {
        size_t n = strcspn(text, ends);
        if (n > 0)
            add_word(v, text, n, document);
        text += n + strspn(text + n, ends);
    }
}

static int by_word(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    int order = strcmp(x->p, y->p);
    return order != 0 ? order : x->document < y->document ? -1 : x->document > y->document;
}

/* Keep the words that at least a tenth of the ${documents} has. */
static void keep_common(struct vocabulary *v, size_t documents)
{
    size_t kept = 0;
    qsort(v->words, v->count, sizeof(*v->words), by_word);
    for (size_t i = 0, next; i < v->count; i = next) {
        size_t in = 1;
        for (next = i + 1; next < v->count && strcmp(v->words[i].p, v->words[next].p) == 0; next++)
            in += v->words[next].document != v->words[next - 1].document;
        for (size_t j = i; j < next; j++) {
            if (in * 10 >= documents)
                v->words[kept++] = v->words[j];
            else
                free(v->words[j].p);
        }
    }
    v->count = kept;
}

struct vocabulary *vocabulary_of(const struct set *sets, size_t count)
{
    static const char *const columns[] = {"title", "taxonomy", "text"};
    struct vocabulary *v = calloc(1, sizeof(*v));
    size_t documents = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < sets[i].document_count; j++, documents++) {
            struct json_object *d = json_object_array_get_idx(sets[i].documents, j), *text;
            for (size_t c = 0; c < 3; c++)
                if (json_object_object_get_ex(d, columns[c], &text))
                    add_words(v, json_object_get_string(text), documents);
        }
    }
    keep_common(v, documents);
    return v;
}

void vocabulary_free(struct vocabulary *v)
{
    for (size_t i = 0; i < v->count; i++)
        free(v->words[i].p);
    free(v->words);
    free(v);
}

static size_t put_nonsense(char *to, uint32_t n)
{
    static const char *const bits[] = {"ba", "ke", "li", "mo", "nu", "ra", "se", "ti",
                                       "vo", "xu", "da", "fe", "gi", "ho", "ju", "zy"};
    uint32_t v = n * 2654435761u >> 12;
    for (int i = 0; i < 5; i++, v >>= 4)
        memcpy(to + 2 * i, bits[v & 15], 2);
    return 10;
}

/* Half of the words are common ones, by frequency; the rest is nonsense of falling frequency. */
static size_t put_word(const struct vocabulary *v, uint64_t *seed, char *to, size_t room)
{
    if (v->count > 0 && pick(seed, 2) == 0) {
        const char *word = v->words[pick(seed, (uint32_t)v->count)].p;
        size_t n = strlen(word);
        if (n >= room)
            return 0;
        memcpy(to, word, n);
        return n;
    }
    uint32_t range = NONSENSE >> pick(seed, 13);
    return room < 12 ? 0 : put_nonsense(to, pick(seed, range + 8) % NONSENSE);
}

static void put_words(const struct vocabulary *v, uint64_t *seed, char *to, size_t size,
                      unsigned words)
{
    size_t n = 0;
    for (unsigned i = 0; i < words && n + 2 < size; i++) {
        n += put_word(v, seed, to + n, size - n - 2);
        to[n++] = i % 9 == 8 ? '.' : ' ';
    }
    to[n] = '\0';
}

void generate(const struct vocabulary *v, uint64_t id, struct generated *out)
{
    uint64_t seed = id * 0x9e3779b97f4a7c15;
    pick(&seed, 2);
    put_words(v, &seed, out->title, sizeof(out->title), 3 + pick(&seed, 6));
    put_words(v, &seed, out->taxonomy, sizeof(out->taxonomy), 1 + pick(&seed, 4));
    put_words(v, &seed, out->text, sizeof(out->text), 30 + pick(&seed, 141));
}
