/* For tests of the answer index: one answer file in a private directory. */
#ifndef ASSAY_T_ANSWERS_KIT_H
#define ASSAY_T_ANSWERS_KIT_H

#include "store/answers/answers.h"

extern const uint8_t store_id[ANSWERS_STORE_ID_BYTES], other_id[ANSWERS_STORE_ID_BYTES];
extern char dir[64], path[128], why[256]; /* the directory, the file, the last error */

void set_up(void);
void tear_down(void);

/* create_file, open_reader: fail the test on an error. reopen_file: the file must be sound, too. */
struct answers_writer *create_file(void);
struct answers_writer *reopen_file(void);
struct answers_reader *open_reader(void);

void put_document(struct answers_writer *w, uint64_t id, uint64_t version, const char *language,
                  const char *title, const char *text);
void commit_to(struct answers_writer *w, uint64_t position);

/*
 * first_hit(r, question, language, version): id of the first hit, 0: none. must_answer: it must be
 * ${id}.
 */
uint64_t first_hit(struct answers_reader *r, const char *question, const char *language,
                   uint64_t *version);
void must_answer(struct answers_reader *r, const char *question, uint64_t id);

/* make_index(documents): a file with so many documents that share words. */
void make_index(uint64_t documents);

#endif
