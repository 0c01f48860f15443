/* A question, as the tokenizer of one table reads it. */
#ifndef ASSAY_STORE_ANSWERS_QUESTION_INTERNAL_H
#define ASSAY_STORE_ANSWERS_QUESTION_INTERNAL_H

#include "store/answers/file_internal.h"

#define QUESTION_BYTES 2000 /* of a question; the rest is ignored */
#define QUESTION_WORDS 32
#define QUESTION_FORMS 24 /* of a word: of the tokenizer, and synonyms */
#define QUESTION_PHRASES (QUESTION_WORDS * (QUESTION_FORMS + 1))

/* How much of a word a document with one of these has. */
#define SYNONYM 0.65
#define RELATIVE 0.87

struct question_form {
    char p[TOKENIZER_WORD_MAX];
    uint8_t n;
};

struct question_word {
    struct question_form forms[QUESTION_FORMS];
    unsigned form_count, own; /* own: number of the tokenizer's forms; synonyms follow them */
    struct str source;        /* in the question */
    double meaning;           /* share of the question's meaning; depends on the language alone */
    bool light;
    bool policy; /* about a policy of the shop, such as delivery */
    size_t stem; /* bytes of the first form that its relatives start with; 0: it has none */
    /* bytes of the prefix that is searched instead of a word that no document has; or 0 */
    size_t start;
    struct question_form
        slip; /* or the most frequent word that it is a misspelling of; n 0: none */
    double
        rarity; /* in the table, of the word or, if none has it, of all forms; for ranking alone */
    int64_t documents;     /* of the table, that have any form, at most */
    int64_t own_documents; /* that have a form of the tokenizer, at most */
};

struct question {
    struct question_word words[QUESTION_WORDS];
    unsigned count;
    bool compounds; /* the table's language has compounds */
    uint64_t first; /* a bit for each first byte and length of a form */
};

/* question_read(t, language, text, out): ${language}: of the question. SQLite codes. */
int question_read(struct file_table *t, struct str language, struct str text, struct question *out);

/*
 * question_match(q, token, part): number of the word of which ${token} is a form, a synonym or a
 * relative; q->count: none. ${part}: how much of the word a document with ${token} has, up to 1.
 * question_match_part(q, token, from, part): the first word, from number ${from}, of which it is a
 * synonym or a relative.
 */
unsigned question_match(const struct question *q, struct str token, double *part);
unsigned question_match_part(const struct question *q, struct str token, unsigned from,
                             double *part);

/*
 * Relatives (relatives.c) are other words of a word's family: "repair" of "reparation".
 * question_stem(q, w): set w->stem. question_is_relative(q, w, token): is ${token} one of ${w}?
 * question_seek_relatives(q, f, t): search for relatives of words that no document has.
 */
bool question_is_relative(const struct question *q, const struct question_word *w,
                          struct str token);
void question_stem(const struct question *q, struct question_word *w);

/* question_seek_misspelling(w, f, t): set slip and documents of a word that no document has. */
enum store_status question_seek_misspelling(struct question_word *w, struct file *f,
                                            const struct file_table *t);
enum store_status question_seek_relatives(struct question *q, struct file *f,
                                          const struct file_table *t);

/* question_weigh(q, f, t): set documents and rarity of each word. question_weigh.c */
enum store_status question_weigh(struct question *q, struct file *f, struct file_table *t);

/*
 * Parts of question_weigh: documents of one word; compound.c; the index for question_match.
 */
enum store_status question_count_documents(struct question_word *w, struct file *f,
                                           const struct file_table *t);
void question_split_compounds(struct question *q, struct file *f, struct file_table *t);
void question_index(struct question *q);

/*
 * synonyms.c: of the table's language; added to a word as further forms. synonyms_of(language):
 * groups of words, as synonyms_lists.c describes; "": the language has none.
 */
struct synonym_list {
    const char *tag, *groups;
};
const char *synonyms_of(const char *language);
int synonyms_make(struct file_table *t);
void synonyms_add(const struct file_table *t, struct question_word *w);

/* question_phrases(w): number of phrases that question_expression makes of a word. */
static inline unsigned question_phrases(const struct question_word *w)
{
    return 1 + w->form_count - w->own + (w->start > 0) + (w->slip.n > 0);
}

/*
 * question_expression(q, words, count, out): an FTS5 expression: any of the words with these
 * numbers.
 */
void question_expression(const struct question *q, const unsigned *words, unsigned count,
                         struct buf *out);

#endif
