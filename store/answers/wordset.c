#include "store/answers/language_internal.h"
#include "store/bytes.h"

#include <stdlib.h>

static size_t hash(struct str word)
{
    size_t h = 5381;
    for (size_t i = 0; i < word.n; i++)
        h = h * 33 ^ (uint8_t)word.p[i];
    return h ^ h >> 15;
}

static struct str *slot_of(const struct wordset *set, struct str word)
{
    size_t at = hash(word) & set->mask;
    while (set->slots[at].n > 0 && !str_eq(set->slots[at], word))
        at = (at + 1) & set->mask;
    return &set->slots[at];
}

static size_t count_words(const char *list)
{
    size_t n = 1;
    for (; *list != '\0'; list++)
        n += *list == ' ';
    return n;
}

bool wordset_make(struct wordset *set, const char *list)
{
    size_t size = 8;
    while (size < 2 * count_words(list))
        size *= 2;
    *set = (struct wordset){.slots = calloc(size, sizeof(*set->slots)), .mask = size - 1};
    while (set->slots != NULL && *list != '\0') {
        struct str word = {list, strcspn(list, " ")};
        *slot_of(set, word) = word;
        list += word.n + (list[word.n] == ' ');
    }
    return set->slots != NULL;
}

void wordset_free(struct wordset *set)
{
    free(set->slots);
    *set = (struct wordset){0};
}

bool wordset_has(const struct wordset *set, struct str word)
{
    return set->slots != NULL && slot_of(set, word)->n > 0;
}
