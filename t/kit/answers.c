#include "t/kit/answers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

const uint8_t store_id[ANSWERS_STORE_ID_BYTES] = "store one",
              other_id[ANSWERS_STORE_ID_BYTES] = "store two";
char dir[64], path[128], why[256];

void set_up(void)
{
    snprintf(dir, sizeof(dir), "/tmp/answers_index.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/index", dir);
}

void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

struct answers_writer *create_file(void)
{
    struct answers_writer *w;
    ck_assert_int_eq(answers_create(path, store_id, NULL, &w, why, sizeof(why)), STORE_OK);
    return w;
}

struct answers_writer *reopen_file(void)
{
    struct answers_writer *w;
    enum store_status status = answers_open(path, store_id, NULL, &w, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s: %s", store_status_text(status), why);
    ck_assert_int_eq(answers_verify(w, NULL, NULL), STORE_OK);
    return w;
}

struct answers_reader *open_reader(void)
{
    struct answers_reader *r;
    enum store_status status = answers_reader_open(path, store_id, NULL, &r, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s: %s", store_status_text(status), why);
    return r;
}

void put_document(struct answers_writer *w, uint64_t id, uint64_t version, const char *language,
                  const char *title, const char *text)
{
    const struct answers_document d = {
        id, version, str_of(language), SYNCED_POST, str_of(title), str_of(""), str_of(text)};
    ck_assert_msg(answers_put(w, &d) == STORE_OK, "%s", answers_why(w));
}

void commit_to(struct answers_writer *w, uint64_t position)
{
    ck_assert_msg(answers_commit(w, position) == STORE_OK, "%s", answers_why(w));
    ck_assert_uint_eq(answers_position(w), position);
}

/* The best hit's id, which must answer; 0: nothing does. */
uint64_t first_hit(struct answers_reader *r, const char *question, const char *language,
                   uint64_t *version)
{
    struct answers_hit hits[4];
    unsigned count;
    ck_assert_msg(answers_ask(r,
                              &(struct answers_question){.text = str_of(question),
                                                         .language = str_of(language),
                                                         .limit = 4},
                              hits, &count) == STORE_OK,
                  "%s", answers_reader_why(r));
    *version = count > 0 ? hits[0].version : 0;
    return count > 0 && hits[0].answers ? hits[0].id : 0;
}

void must_answer(struct answers_reader *r, const char *question, uint64_t id)
{
    uint64_t version, found = first_hit(r, question, "en", &version);
    ck_assert_msg(found == id, "\"%s\": %llu, not %llu", question, (unsigned long long)found,
                  (unsigned long long)id);
}

void make_index(uint64_t documents)
{
    struct answers_writer *w = create_file();
    for (uint64_t id = 1; id <= documents; id++) {
        char text[200];
        snprintf(text, sizeof(text), "number%llu tea of the mountain and some other words%llu",
                 (unsigned long long)id, (unsigned long long)id % 97);
        put_document(w, id, 1, "en", "Tea", text);
    }
    commit_to(w, documents);
    answers_close(w);
}
