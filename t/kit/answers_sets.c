#include "t/kit/answers_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BURIED_FIRST 1000000 /* id of the first generated document */

const uint8_t sets_store_id[ANSWERS_STORE_ID_BYTES] = "question sets";

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "answers_sets: %s: %s\n", what, why);
    exit(1);
}

static struct json_object *field(struct json_object *o, const char *name)
{
    struct json_object *value;
    if (!json_object_object_get_ex(o, name, &value))
        fail(name, "is missing");
    return value;
}

static const char *string(struct json_object *o, const char *name)
{
    return json_object_get_string(field(o, name));
}

void set_load(const char *path, struct set *out)
{
    const char *name = strrchr(path, '/');
    out->json = json_object_from_file(path);
    if (out->json == NULL)
        fail(path, json_util_get_last_err());
    out->name = name == NULL ? path : name + 1;
    out->language = string(out->json, "language");
    out->documents = field(out->json, "documents");
    out->questions = field(out->json, "questions");
    out->document_count = json_object_array_length(out->documents);
    out->question_count = json_object_array_length(out->questions);
}

void set_free(struct set *set)
{
    json_object_put(set->json);
}

/* ---- indexes ---- */

static void must(enum store_status status, const char *why)
{
    if (status != STORE_OK)
        fail(store_status_text(status), why);
}

static void remove_index(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[4200];
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static struct answers_writer *create(const char *path)
{
    struct answers_writer *w = NULL;
    char why[256] = "";
    remove_index(path);
    must(answers_create(path, sets_store_id, NULL, &w, why, sizeof(why)), why);
    return w;
}

static struct answers_writer *reopen(const char *path)
{
    struct answers_writer *w = NULL;
    char why[256] = "";
    must(answers_open(path, sets_store_id, NULL, &w, why, sizeof(why)), why);
    return w;
}

static struct answers_reader *reader(const char *path)
{
    struct answers_reader *r = NULL;
    char why[256] = "";
    must(answers_reader_open(path, sets_store_id, NULL, &r, why, sizeof(why)), why);
    return r;
}

static void put(struct answers_writer *w, const struct set *set, size_t at)
{
    struct json_object *d = json_object_array_get_idx(set->documents, at);
    const struct answers_document document = {
        .id = (uint64_t)json_object_get_int64(field(d, "id")),
        .version = 1,
        .language = str_of(set->language),
        .kind = strcmp(string(d, "kind"), "post") == 0 ? SYNCED_POST : SYNCED_PRODUCT,
        .title = str_of(string(d, "title")),
        .taxonomy = str_of(string(d, "taxonomy")),
        .text = str_of(string(d, "text")),
    };
    must(answers_put(w, &document), answers_why(w));
}

static uint64_t id_of(const struct set *set, size_t at)
{
    return (uint64_t)json_object_get_int64(
        field(json_object_array_get_idx(set->documents, at), "id"));
}

void sets_bury(const char *dir, const struct set *sets, size_t count, size_t documents)
{
    struct vocabulary *v = vocabulary_of(sets, count);
    struct generated g;
    char path[4200];
    snprintf(path, sizeof(path), "%s/buried", dir);
    struct answers_writer *w = create(path);
    for (size_t i = 0; i < documents; i++) {
        generate(v, i, &g);
        const struct answers_document d = {.id = BURIED_FIRST + i,
                                           .version = 1,
                                           .kind = i % 5 == 0 ? SYNCED_POST : SYNCED_PRODUCT,
                                           .language = str_of(sets[0].language),
                                           .title = str_of(g.title),
                                           .taxonomy = str_of(g.taxonomy),
                                           .text = str_of(g.text)};
        must(answers_put(w, &d), answers_why(w));
        if (i % 1000 == 999)
            must(answers_commit(w, i), answers_why(w));
    }
    must(answers_commit(w, documents), answers_why(w));
    answers_close(w);
    vocabulary_free(v);
}

/* ---- questions ---- */

static bool is_right(struct json_object *right, uint64_t id)
{
    for (size_t i = 0; i < json_object_array_length(right); i++)
        if ((uint64_t)json_object_get_int64(json_object_array_get_idx(right, i)) == id)
            return true;
    return false;
}

static void ask(struct answers_reader *r, const struct set *set, struct json_object *question,
                bool verbose, struct tally *tally)
{
    struct json_object *right = field(question, "right");
    struct answers_hit hits[3] = {0};
    unsigned count;
    const char *q = string(question, "q");
    must(answers_ask(r,
                     &(struct answers_question){
                         .text = str_of(q), .language = str_of(set->language), .limit = 3},
                     hits, &count),
         answers_reader_why(r));
    bool answerable = json_object_array_length(right) > 0;
    bool answered = count > 0 && hits[0].answers;
    bool first = count > 0 && is_right(right, hits[0].id);
    tally->answerable += answerable;
    tally->unanswerable += !answerable;
    tally->first += first;
    tally->kept += first && answered;
    tally->answered += !answerable && answered;
    if (verbose && (answerable ? !first || !answered : answered))
        printf("    %s: \"%s\" right %s, first %llu (share %.2f, score %.2f), then %llu (%.2f, "
               "%.2f)\n",
               set->name, q, json_object_to_json_string(right), (unsigned long long)hits[0].id,
               hits[0].share, hits[0].score, (unsigned long long)hits[1].id, hits[1].share,
               hits[1].score);
}

static bool is_of(struct json_object *question, const char *use)
{
    return strcmp(string(question, "use"), use) == 0;
}

static void ask_all(const struct set *set, const char *path, const char *use, bool verbose,
                    struct tally *tally)
{
    struct answers_reader *r = reader(path);
    for (size_t i = 0; i < set->question_count; i++) {
        struct json_object *question = json_object_array_get_idx(set->questions, i);
        if (is_of(question, use))
            ask(r, set, question, verbose, tally);
    }
    answers_reader_close(r);
}

static void ask_whole(const struct set *set, const char *path, const char *use, bool verbose,
                      struct tally *tally)
{
    struct answers_writer *w = create(path);
    for (size_t i = 0; i < set->document_count; i++)
        put(w, set, i);
    must(answers_commit(w, 1), answers_why(w));
    answers_close(w);
    ask_all(set, path, use, verbose, tally);
    remove_index(path);
}

static void ask_buried(const struct set *set, const char *path, const char *use, bool verbose,
                       struct tally *tally)
{
    struct answers_writer *w = reopen(path);
    for (size_t i = 0; i < set->document_count; i++)
        put(w, set, i);
    must(answers_commit(w, 1), answers_why(w));
    ask_all(set, path, use, verbose, tally);
    for (size_t i = 0; i < set->document_count; i++)
        must(answers_remove(w, id_of(set, i)), answers_why(w));
    must(answers_commit(w, 2), answers_why(w));
    answers_close(w);
}

static size_t index_of(const struct set *set, struct json_object *right, size_t otherwise)
{
    for (size_t i = 0; i < set->document_count; i++)
        if (is_right(right, id_of(set, i)))
            return i;
    return otherwise;
}

/* The other page is the next one of the set. */
static void ask_pair(const struct set *set, const char *path, struct json_object *question,
                     size_t number, bool verbose, struct tally *tally)
{
    size_t one = index_of(set, field(question, "right"), number % set->document_count);
    struct answers_writer *w = create(path);
    put(w, set, one);
    put(w, set, (one + 1) % set->document_count);
    must(answers_commit(w, 1), answers_why(w));
    answers_close(w);
    struct answers_reader *r = reader(path);
    ask(r, set, question, verbose, tally);
    answers_reader_close(r);
    remove_index(path);
}

void set_ask(const struct set *set, const char *use, enum shop shop, const char *dir, bool verbose,
             struct tally *tally)
{
    static const char *const names[] = {"whole", "pair", "buried"};
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", dir, names[shop]);
    if (shop == SHOP_WHOLE)
        ask_whole(set, path, use, verbose, tally);
    else if (shop == SHOP_BURIED)
        ask_buried(set, path, use, verbose, tally);
    for (size_t i = 0; i < set->question_count && shop == SHOP_PAIR; i++)
        if (is_of(json_object_array_get_idx(set->questions, i), use))
            ask_pair(set, path, json_object_array_get_idx(set->questions, i), i, verbose, tally);
}
