/*
 * Fuzz: a visitor's question, and the excerpt of a text for it. The first byte is the language, the
 * second one says which part of the input is the question; the rest is the text.
 */
#include "store/answers/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LANGUAGES (sizeof(languages) / sizeof(*languages))
static const char *const languages[] = {"en", "de", "ja", "th", ""};

static const struct {
    const char *title, *text;
} pages[] = {
    {"Delivery", "We deliver within three days. Parcels of 30 kg are sent by courier."},
    {"Versandkosten", "Der Versand kostet 5 Euro. Hochbeete aus Lärche liefern wir kostenlos."},
    {"返品・交換について", "商品の到着後30日以内に返品できます。プレゼントの包装は無料です。"},
    {"การจัดส่ง", "จัดส่งภายในสามวัน คืนสินค้าได้ภายใน 30 วัน"},
    {"Refunds", "Money goes back to your card. \"Quoted\" OR NOT (nested) words* : {title}"},
};

static const uint8_t store_id[ANSWERS_STORE_ID_BYTES] = "fuzz";
static char dir[] = "/tmp/fuzz_questions.XXXXXX", path[64];
static struct answers_reader *reader;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void tear_down(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[80];
    answers_reader_close(reader);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
    rmdir(dir);
}

static void put_pages(struct answers_writer *w)
{
    for (uint64_t i = 0; i < LANGUAGES * (sizeof(pages) / sizeof(*pages)); i++) {
        const struct answers_document d = {.id = i + 1,
                                           .version = 1,
                                           .language = str_of(languages[i % LANGUAGES]),
                                           .kind = SYNCED_POST,
                                           .title = str_of(pages[i / LANGUAGES].title),
                                           .text = str_of(pages[i / LANGUAGES].text)};
        check(answers_put(w, &d) == STORE_OK);
    }
    check(answers_commit(w, 1) == STORE_OK);
}

static void set_up(void)
{
    struct answers_writer *w;
    char why[256];
    check(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/answers", dir);
    check(answers_create(path, store_id, NULL, &w, why, sizeof(why)) == STORE_OK);
    put_pages(w);
    answers_close(w);
    check(answers_reader_open(path, store_id, NULL, &reader, why, sizeof(why)) == STORE_OK);
    atexit(tear_down);
}

static void ask(struct str language, struct str question)
{
    struct answers_hit hits[ANSWERS_HITS_MAX];
    const struct answers_question q = {
        .text = question, .language = language, .limit = ANSWERS_HITS_MAX};
    unsigned count;
    enum store_status status = answers_ask(reader, &q, hits, &count);
    check(status == STORE_OK || status == STORE_INVALID);
    check(count <= ANSWERS_HITS_MAX && (status == STORE_OK || count == 0));
    for (unsigned i = 0; i < count; i++) {
        check(hits[i].share >= 0 && hits[i].share <= 1 && hits[i].score >= 0);
        check(i == 0 || hits[i].score <= hits[i - 1].score);
    }
}

static void excerpt(struct str language, struct str question, struct str text)
{
    const size_t most = 60;
    struct str out;
    check(answers_excerpt(reader, language, question, text, most, &out) == STORE_OK);
    check(out.n <= most && out.n <= text.n);
    check(out.n == 0 || (out.p >= text.p && out.p + out.n <= text.p + text.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (reader == NULL)
        set_up();
    if (size < 2)
        return 0;
    const struct str language = str_of(languages[data[0] % LANGUAGES]);
    const size_t n = (size - 2) * data[1] / UINT8_MAX;
    const struct str question = {(const char *)data + 2, n};
    ask(language, question);
    excerpt(language, question, (struct str){question.p + n, size - 2 - n});
    return 0;
}
