/* An open reader. Private to store/answers. */
#ifndef ASSAY_ANSWERS_READER_H
#define ASSAY_ANSWERS_READER_H

#include "ranking.h"

/* passage.c: a table in memory that holds the text an excerpt is made of. */
struct passage {
    const struct language *language; /* NULL: not open */
    sqlite3 *db;
    sqlite3_stmt *insert, *find, *clear;
    struct file_table words; /* reads questions; only its tokenizer and light words are used */
};
void passage_close(struct passage *p);

struct answers_reader {
    struct file f;
    struct scoring scoring;
    struct passage passage;
    const struct answers_question *asked; /* while it is worked on */
};

#endif
