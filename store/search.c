#include "search.h"

#include <stdlib.h>

static inline unsigned char fold(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

bool search_begin(struct search *s, struct str needle)
{
    s->allocated = NULL;
    char *to = s->folded;
    if (needle.n > sizeof(s->folded)) {
        to = s->allocated = malloc(needle.n);
        if (to == NULL)
            return false;
    }
    for (size_t i = 0; i < 256; i++)
        s->skip[i] = needle.n;
    for (size_t i = 0; i < needle.n; i++) {
        to[i] = (char)fold(needle.p[i]);
        if (i + 1 < needle.n)
            s->skip[(unsigned char)to[i]] = needle.n - 1 - i;
    }
    s->needle = (struct str){to, needle.n};
    return true;
}

bool search_matches(const struct search *s, struct str text)
{
    size_t n = s->needle.n;
    if (n == 0)
        return true;
    for (size_t at = 0; at + n <= text.n;) {
        size_t i = n;
        while (i > 0 && fold(text.p[at + i - 1]) == (unsigned char)s->needle.p[i - 1])
            i--;
        if (i == 0)
            return true;
        at += s->skip[fold(text.p[at + n - 1])];
    }
    return false;
}

void search_end(struct search *s)
{
    free(s->allocated);
    s->allocated = NULL;
}
