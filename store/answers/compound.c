#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/store.h"

/*
 * Compounds ("Lärchenhochbeet") that no document has: search for both parts instead, if the table
 * has them, or for the last part alone.
 */

#define COMPOUND_BYTES 8 /* shortest compound */
#define PART_BYTES 3     /* shortest first part */
#define LAST_BYTES 4     /* shortest last part */

static struct question_word part(struct file *f, struct file_table *t, struct str source)
{
    struct question q;
    enum store_status status = file_status(f, question_read(t, (struct str){"", 0}, source, &q));
    struct question_word w = {.source = source};
    if (status != STORE_OK || q.count != 1)
        return w;
    w = q.words[0];
    if (question_count_documents(&w, f, t) != STORE_OK)
        w.documents = 0;
    return w;
}

/* A first part may end in a linking letter or two: "Lärche-n", "Garten", "Arbeit-s". */
static struct question_word first_part(struct file *f, struct file_table *t, struct str source)
{
    static const char *const links[] = {"", "s", "n", "en", "es", "er", "e"};
    struct question_word w = {0};
    for (size_t i = 0; i < sizeof(links) / sizeof(*links) && w.documents == 0; i++) {
        size_t n = strlen(links[i]);
        if (source.n >= PART_BYTES + n && memcmp(source.p + source.n - n, links[i], n) == 0)
            w = part(f, t, (struct str){source.p, source.n - n});
    }
    return w;
}

static void put_parts(struct question *q, unsigned at, struct question_word *first,
                      struct question_word *last)
{
    double meaning = q->words[at].meaning;
    last->meaning = meaning / 2;
    first->meaning = meaning / 2;
    if (first->documents == 0 || q->count == QUESTION_WORDS) {
        q->words[at].meaning -= last->meaning;
        *first = q->words[at];
    }
    q->words[at] = *last;
    if (q->count < QUESTION_WORDS)
        q->words[q->count++] = *first;
}

static void split(struct question *q, unsigned at, struct file *f, struct file_table *t)
{
    struct str whole = q->words[at].source;
    struct question_word first = {0}, last = {0};
    bool found = false;
    for (size_t i = PART_BYTES; i + LAST_BYTES <= whole.n && first.documents == 0; i++) {
        if (((uint8_t)whole.p[i] & 0xc0) == 0x80)
            continue;
        struct question_word tail = part(f, t, (struct str){whole.p + i, whole.n - i});
        if (tail.documents == 0)
            continue;
        struct question_word head = first_part(f, t, (struct str){whole.p, i});
        if (!found || head.documents > 0) {
            first = head;
            last = tail;
        }
        found = true;
    }
    if (found)
        put_parts(q, at, &first, &last);
}

void question_split_compounds(struct question *q, struct file *f, struct file_table *t)
{
    unsigned count = q->count;
    if (!q->compounds)
        return;
    for (unsigned i = 0; i < count; i++)
        if (q->words[i].documents == 0 && q->words[i].source.n >= COMPOUND_BYTES)
            split(q, i, f, t);
    question_index(q);
}
