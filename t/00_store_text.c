/*
 * The full-text index by itself: what a word is, that rankings are those of BM25 worked out over all documents one by one, whatever was put,
 * put again and removed before, and that it does not grow with what went.
 */
#include "t/00_store_kit.h"

#include "store/fold.h"
#include "store/text.h"

#include <math.h>

static uint64_t seed;

static uint64_t chance(uint64_t of)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % of;
}

/* ---- words ---- */

/* Columns: a text, its words parted by spaces (of scripts without spaces one or two letters each, so that each is one), is it indexed? */
static const struct {
    const char *text, *words;
    bool whole;
} cases[] = {
    {"Free shipping, 30-day returns!", "free shipping 30 day returns", true},
    {"Café CRÈME brûlée", "cafe creme brulee", true},
    {"Cafe\xcc\x81", "cafe", true},
    {"Straße STRASSE Œuvre ŁÓDŹ Ærø", "strasse strasse oeuvre lodz aero", true},
    {"İstanbul ılık", "istanbul ilik", true},
    {"Το ΚΌΣΤΟΣ κόστος", "το κοστοσ κοστοσ", true},
    {"Ёлка МОЙ мои", "елка мой мои", true},
    {"don't l’eau", "don t l eau", true},
    {"", "", true},
    {" .,;— \xe2\x80\xa6 ", "", true},
    {"\xff\xfe broken \xc3", "broken", true},
    {"ＡＢＣ１２", "abc12", true},
    {"東京都", "東京 東 京都 京 都", true},
    {"東京都", "東京 京都", false},
    {"茶", "茶", true},
    {"茶", "茶", false},
    {"コーヒー", "コー ーヒ ヒー", true},
    {"iPhone手机", "iphone 手机 手 机", true},
    {"한국어", "한국 국어", true},
    {"กาแฟ", "กา าแ แฟ", true},
    {"👍 ok 👍🏽", "ok", true},
    {"x\xc2\xad"
     "y",
     "xy", true}, /* a soft hyphen */
    {"אֱלֹהִים", "אלהים", true},
    {"أَحْمَد", "احمد", true},
};

/* The words of ${expected}: each a text of its own, in which nothing parts. */
static uint64_t expected_hash(const char **at)
{
    size_t n = strcspn(*at, " ");
    uint64_t hash = words_hash((struct str){*at, n});
    *at += n + ((*at)[n] == ' ');
    return hash;
}

START_TEST(words_of_a_text_are_folded_and_parted_as_its_script_does)
{
    struct words w;
    struct word word;
    const char *expected = cases[_i].words;
    words_begin(&w, str_of(cases[_i].text), cases[_i].whole);
    while (words_next(&w, &word)) {
        ck_assert_msg(*expected != '\0', "\"%s\" has more words than \"%s\"", cases[_i].text, cases[_i].words);
        const char *from = expected;
        ck_assert_msg(word.hash == expected_hash(&expected), "\"%.*s\" in \"%s\" is not \"%s\"", (int)(word.to - word.from),
                      cases[_i].text + word.from, cases[_i].text, from);
        ck_assert_uint_lt(word.from, word.to);
        ck_assert_uint_le(word.to, strlen(cases[_i].text));
    }
    ck_assert_msg(*expected == '\0', "\"%s\" lacks \"%s\"", cases[_i].text, expected);
}
END_TEST

START_TEST(folding_what_is_folded_changes_nothing)
{
    for (uint32_t c = 0x80; c < 0x20000; c++) {
        uint32_t once[2], twice[2];
        size_t n = fold_class(c) == LETTER_WORD ? fold(c, once) : 0;
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(fold(once[i], twice) == 1 && twice[0] == once[i], "U+%04X becomes U+%04X, and that U+%04X", c, once[i], twice[0]);
            ck_assert_msg(fold_class(once[i]) == LETTER_WORD, "U+%04X becomes U+%04X, which is no letter", c, once[i]);
        }
    }
}
END_TEST

START_TEST(frequent_words_of_questions_are_known_and_others_are_not)
{
    static const char *const stops[] = {"the", "How", "Où", "für", "você", "é"};
    static const char *const others[] = {"shipping", "returns", "rücksendung", "茶", "xyzzy"};
    for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++)
        ck_assert_msg(words_is_stop(words_hash(str_of(stops[i]))), "%s", stops[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        ck_assert_msg(!words_is_stop(words_hash(str_of(others[i]))), "%s", others[i]);
}
END_TEST

/* ---- a model: documents one by one ---- */

#define DOCS 600
#define VOCABULARY 400

struct doc {
    bool there;
    char title[64], taxonomy[64], text[1024];
    uint64_t order; /* when it was put */
};

static struct doc docs[DOCS];
static uint64_t order;
static const struct ulid agent = {{1, 2, 3, 4}}, other_agent = {{1, 2, 3, 5}};

static struct text_doc doc_of(const struct doc *d)
{
    return (struct text_doc){.title = str_of(d->title), .taxonomy = str_of(d->taxonomy), .text = str_of(d->text)};
}

/* Some words are in most documents, most in few. */
static void random_words(char *to, size_t size, unsigned words)
{
    size_t n = 0;
    to[0] = '\0';
    for (unsigned i = 0; i < words && n + 12 < size; i++) {
        uint64_t range = 1 + chance(VOCABULARY);
        n += (size_t)snprintf(to + n, size - n, "%sw%u", i == 0 ? "" : " ", (unsigned)chance(range));
    }
}

static void random_doc(struct doc *d)
{
    random_words(d->title, sizeof(d->title), 1 + (unsigned)chance(6));
    random_words(d->taxonomy, sizeof(d->taxonomy), (unsigned)chance(4));
    random_words(d->text, sizeof(d->text), (unsigned)chance(chance(4) == 0 ? 120 : 20));
    d->there = true;
    d->order = ++order;
}

/* ${words}: how many the document has; the result: what ${hash} counts in it. */
static unsigned frequency_in(const struct doc *d, uint64_t hash, unsigned *words)
{
    const char *const texts[] = {d->title, d->taxonomy, d->text};
    static const unsigned each[] = {4, 2, 1};
    unsigned frequency = 0;
    *words = 0;
    for (size_t i = 0; i < 3; i++) {
        struct words w;
        struct word word;
        words_begin(&w, str_of(texts[i]), true);
        while (words_next(&w, &word)) {
            frequency += word.hash == hash ? each[i] : 0;
            *words += word.counts;
        }
    }
    return frequency < 255 ? frequency : 255;
}

struct modelled {
    size_t doc;
    double score;
};

static int by_score(const void *a, const void *b)
{
    const struct modelled *x = a, *y = b;
    if (fabs(x->score - y->score) > 1e-9)
        return x->score > y->score ? -1 : 1;
    return docs[x->doc].order < docs[y->doc].order ? -1 : 1;
}

struct model_word {
    uint64_t hash, documents;
};

static int by_rarity(const void *a, const void *b)
{
    const struct model_word *x = a, *y = b;
    if (x->documents != y->documents)
        return x->documents < y->documents ? -1 : 1;
    return x->hash < y->hash ? -1 : 1;
}

/* All documents' scores for ${question}, the best first; how many have one. */
static size_t model_find(const char *question, struct modelled *out)
{
    struct model_word words[64];
    size_t count = 0, living = 0, found = 0;
    double all_words = 0;
    unsigned length;
    for (size_t i = 0; i < DOCS; i++) {
        if (!docs[i].there)
            continue;
        frequency_in(&docs[i], 0, &length);
        all_words += length;
        living++;
    }
    for (const char *at = question; *at != '\0';) {
        uint64_t hash = expected_hash(&at);
        struct model_word word = {hash, 0};
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = known || words[i].hash == hash;
        for (size_t i = 0; i < DOCS; i++)
            word.documents += docs[i].there && frequency_in(&docs[i], hash, &length) > 0;
        if (!known && word.documents > 0)
            words[count++] = word;
    }
    qsort(words, count, sizeof(*words), by_rarity);
    size_t used = 0;
    double weighed = living < TEXT_LEAST_DOCUMENTS ? TEXT_LEAST_DOCUMENTS : (double)living;
    for (uint64_t sum = 0; used < count; used++) {
        sum += words[used].documents;
        if (living > TEXT_SMALL &&
            (used == TEXT_SCORED_WORDS || (used > 0 && sum > TEXT_SCORED_SHARE * living)))
            break;
    }
    for (size_t i = 0; i < DOCS; i++) {
        double score = 0;
        bool any = false;
        for (size_t j = 0; j < used && docs[i].there; j++) {
            double f = frequency_in(&docs[i], words[j].hash, &length), n = (double)words[j].documents;
            any = any || f > 0;
            score += log(1 + (weighed - n + 0.5) / (n + 0.5)) * f * 2.2 /
                     (f + 1.2 * (1 - 0.75 + 0.75 * length / (all_words / (double)living)));
        }
        if (any)
            out[found++] = (struct modelled){i, score};
    }
    qsort(out, found, sizeof(*out), by_score);
    return found;
}

/* ---- the index, held against it ---- */

static struct store_txn *begin(struct kit *k)
{
    struct store_txn *t;
    ck_status(store_begin(k->s, &t), STORE_OK);
    return t;
}

static unsigned find(struct kit *k, const struct ulid *of, const char *question, unsigned limit, struct text_hit *hits)
{
    struct text_question q;
    MDB_txn *txn;
    unsigned count;
    ck_status(store_snapshot(k->s, &txn), STORE_OK);
    ck_status(text_ask(k->s, txn, of, str_of(question), &q), STORE_OK);
    ck_status(text_find(k->s, txn, of, &q, limit, NULL, NULL, hits, &count), STORE_OK);
    store_read_end(k->s);
    return count;
}

static void compare(struct kit *k, const char *question, unsigned limit)
{
    static struct modelled expected[DOCS];
    struct text_hit hits[TEXT_HITS_MAX];
    size_t all = model_find(question, expected);
    unsigned count = find(k, &agent, question, limit, hits);
    ck_assert_msg(count == (all < limit ? all : limit), "\"%s\": %u of %zu", question, count, all);
    for (unsigned i = 0; i < count; i++) {
        const double close = 1e-5 * (1 + expected[i].score);
        ck_assert_msg(fabs((double)hits[i].score - expected[i].score) < close, "\"%s\", hit %u: %.7f must be %.7f", question, i,
                      (double)hits[i].score, expected[i].score);
        size_t at = 0;
        while (at < all && expected[at].doc + 1 != hits[i].id)
            at++;
        ck_assert_msg(at < all && fabs(expected[at].score - expected[i].score) < close,
                      "\"%s\", hit %u: document %llu does not belong there", question, i, (unsigned long long)hits[i].id);
        ck_assert(i == 0 || hits[i - 1].score > hits[i].score || (hits[i - 1].score == hits[i].score && hits[i - 1].seq < hits[i].seq));
    }
}

static size_t parts_of(struct kit *k, const struct ulid *of, struct text_head *head, uint64_t *terms)
{
    struct text_manifest m;
    MDB_txn *txn;
    ck_status(store_snapshot(k->s, &txn), STORE_OK);
    ck_status(text_manifest(k->s, txn, of, &m), STORE_OK);
    *head = m.head;
    *terms = 0;
    for (size_t i = 0; i < m.count; i++)
        *terms += m.parts[i].terms;
    store_read_end(k->s);
    return m.count;
}

static void change(struct store_txn *t, size_t i)
{
    struct doc before = docs[i];
    struct text_doc was = doc_of(&before), now;
    if (before.there && chance(4) == 0) {
        docs[i].there = false;
        text_set(t, &agent, i + 1, &was, NULL);
        return;
    }
    random_doc(&docs[i]);
    now = doc_of(&docs[i]);
    text_set(t, &agent, i + 1, before.there ? &was : NULL, &now);
}

START_TEST(rankings_and_scores_are_those_of_bm25_over_all_documents)
{
    struct kit k;
    kit_open(&k);
    memset(docs, 0, sizeof(docs));
    order = 0;
    seed = (uint64_t)_i * 977 + 5;
    for (unsigned round = 0; round < 60; round++) {
        struct store_txn *t = begin(&k);
        struct doc *saved = malloc(sizeof(docs));
        ck_assert_ptr_nonnull(saved);
        memcpy(saved, docs, sizeof(docs));
        for (uint64_t n = 1 + chance(1 + chance(120)); n > 0; n--)
            change(t, chance(DOCS));
        if (chance(5) == 0) { /* nothing of it happened */
            store_abort(t);
            memcpy(docs, saved, sizeof(docs));
        } else {
            ck_status(store_commit(t), STORE_OK);
        }
        free(saved);
        for (unsigned n = 0; n < 6; n++) {
            char question[256];
            random_words(question, sizeof(question), 1 + (unsigned)chance(9));
            compare(&k, question, 1 + (unsigned)chance(12));
        }
    }
    kit_close(&k);
}
END_TEST

START_TEST(counts_are_exact_and_parts_few_after_a_thousand_commits_of_one)
{
    struct kit k;
    struct text_head head;
    uint64_t terms, living = 0, words = 0;
    unsigned length;
    kit_open(&k);
    memset(docs, 0, sizeof(docs));
    seed = 7;
    for (unsigned round = 0; round < 1000; round++) {
        struct store_txn *t = begin(&k);
        change(t, chance(200));
        ck_status(store_commit(t), STORE_OK);
        ck_assert_uint_le(parts_of(&k, &agent, &head, &terms), 24);
    }
    for (size_t i = 0; i < DOCS; i++) {
        frequency_in(&docs[i], 0, &length);
        living += docs[i].there;
        words += docs[i].there ? length : 0;
    }
    ck_assert_uint_eq(head.documents, living);
    ck_assert_uint_eq(head.words, words);
    compare(&k, "w1 w2 w3 w50", 10);
    kit_close(&k);
}
END_TEST

START_TEST(what_went_leaves_nothing_behind)
{
    struct kit k;
    struct text_head head;
    uint64_t terms;
    kit_open(&k);
    memset(docs, 0, sizeof(docs));
    seed = 11;
    for (unsigned generation = 0; generation < 8; generation++) { /* all of it, again and again, in batches */
        for (size_t i = 0; i < DOCS; i += 50) {
            struct store_txn *t = begin(&k);
            for (size_t j = i; j < i + 50; j++) {
                struct doc before = docs[j];
                struct text_doc was = doc_of(&before), now;
                random_doc(&docs[j]);
                now = doc_of(&docs[j]);
                text_set(t, &agent, j + 1, before.there ? &was : NULL, &now);
            }
            ck_status(store_commit(t), STORE_OK);
        }
        parts_of(&k, &agent, &head, &terms);
        ck_assert_uint_eq(head.documents, DOCS);
        ck_assert_msg(terms < 16 * VOCABULARY, "generation %u: %llu terms", generation, (unsigned long long)terms);
    }
    for (size_t i = 0; i < DOCS; i++) {
        struct store_txn *t = begin(&k);
        struct text_doc was = doc_of(&docs[i]);
        text_set(t, &agent, i + 1, &was, NULL);
        ck_status(store_commit(t), STORE_OK);
    }
    ck_assert_uint_le(parts_of(&k, &agent, &head, &terms), 24);
    ck_assert_uint_eq(head.documents, 0);
    ck_assert_uint_eq(head.words, 0);
    struct text_hit hits[4];
    ck_assert_uint_eq(find(&k, &agent, "w1 w2 w3", 4, hits), 0);
    kit_close(&k);
}
END_TEST

static void put_one(struct kit *k, const struct ulid *of, uint64_t id, const char *title, const char *text)
{
    struct store_txn *t = begin(k);
    struct text_doc now = {.title = str_of(title), .text = str_of(text)};
    text_set(t, of, id, NULL, &now);
    ck_status(store_commit(t), STORE_OK);
}

START_TEST(an_agent_finds_its_own_alone_and_nothing_after_it_is_erased)
{
    struct kit k;
    struct text_hit hits[4];
    uint64_t left = 2;
    kit_open(&k);
    put_one(&k, &agent, 1, "Returns", "Send it back.");
    put_one(&k, &other_agent, 2, "Returns", "We take nothing back.");
    ck_assert_uint_eq(find(&k, &agent, "returns", 4, hits), 1);
    ck_assert_uint_eq(hits[0].id, 1);
    struct store_txn *t = begin(&k);
    text_erase(t, &agent, &left);
    text_forget(t, 1);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_eq(find(&k, &agent, "returns", 4, hits), 0);
    ck_assert_uint_eq(find(&k, &other_agent, "returns", 4, hits), 1);
    put_one(&k, &agent, 1, "Returns", "Again.");
    ck_assert_uint_eq(find(&k, &agent, "returns", 4, hits), 1);
    kit_close(&k);
}
END_TEST

START_TEST(a_document_put_twice_in_one_transaction_is_there_once)
{
    struct kit k;
    struct text_hit hits[4];
    struct text_doc first = {.title = STR("alpha")}, second = {.title = STR("beta")};
    kit_open(&k);
    struct store_txn *t = begin(&k);
    text_set(t, &agent, 1, NULL, &first);
    text_set(t, &agent, 1, &first, &second);
    text_set(t, &agent, 2, NULL, &first);
    text_set(t, &agent, 2, &first, NULL);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(find(&k, &agent, "alpha", 4, hits), 0);
    ck_assert_uint_eq(find(&k, &agent, "beta", 4, hits), 1);
    ck_assert_uint_eq(hits[0].id, 1);
    kit_close(&k);
}
END_TEST

START_TEST(a_title_counts_more_than_the_text_and_rare_words_more_than_frequent)
{
    struct kit k;
    struct text_hit hits[4];
    kit_open(&k);
    put_one(&k, &agent, 1, "About us", "We sell bicycles, and bicycles are what we mend too in our shop.");
    put_one(&k, &agent, 2, "Bicycles", "We sell them, and they are what we mend too in our shop of two.");
    put_one(&k, &agent, 3, "Shop", "A helmet is for sale in this shop, and more is said of it in words.");
    ck_assert_uint_eq(find(&k, &agent, "bicycles", 4, hits), 2);
    ck_assert_uint_eq(hits[0].id, 2);
    ck_assert_uint_eq(find(&k, &agent, "shop helmet", 4, hits), 3);
    ck_assert_uint_eq(hits[0].id, 3);
    ck_assert_msg(hits[0].share > 0.99F && hits[1].share < 0.5F, "%f %f", (double)hits[0].share, (double)hits[1].share);
    ck_assert_uint_eq(find(&k, &agent, "Helmet xylophone", 4, hits), 1);
    ck_assert_msg(hits[0].share < 0.5F, "%f", (double)hits[0].share);
    kit_close(&k);
}
END_TEST

START_TEST(hostile_questions_find_little_and_break_nothing)
{
    struct kit k;
    struct text_hit hits[TEXT_HITS_MAX];
    char *many = malloc(8192);
    size_t n = 0;
    ck_assert_ptr_nonnull(many);
    kit_open(&k);
    put_one(&k, &agent, 1, "Only one", "with few words w17 and a b c");
    ck_assert_uint_eq(find(&k, &agent, "", 4, hits), 0);
    ck_assert_uint_eq(find(&k, &agent, "?!.,", 4, hits), 0);
    ck_assert_uint_eq(find(&k, &agent, "the of and is to", 4, hits), 0);
    ck_assert_uint_eq(find(&k, &agent, "b", 4, hits), 1);
    ck_assert_uint_eq(find(&k, &agent, "\xff\xc0\x80 w17\xe4", 4, hits), 1);
    for (unsigned i = 0; n < 4000; i++)
        n += (size_t)snprintf(many + n, 8192 - n, "w%u ", i);
    ck_assert_uint_eq(find(&k, &agent, many, TEXT_HITS_MAX, hits), 1);
    memset(many, 'x', 8000);
    many[8000] = '\0';
    ck_assert_uint_eq(find(&k, &agent, many, TEXT_HITS_MAX, hits), 0);
    ck_assert_uint_eq(find(&k, &agent, "w17", 0, hits), 0);
    free(many);
    kit_close(&k);
}
END_TEST

START_TEST(a_document_of_more_words_than_are_read_is_cut)
{
    struct kit k;
    struct text_hit hits[4];
    struct text_head head;
    uint64_t terms;
    size_t n = 0, size = (size_t)1 << 20;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    for (unsigned i = 0; i < 70000; i++)
        n += (size_t)snprintf(text + n, size - n, "x%u ", i);
    kit_open(&k);
    put_one(&k, &agent, 1, "Long", text);
    parts_of(&k, &agent, &head, &terms);
    ck_assert_uint_eq(head.words, TEXT_WORDS);
    ck_assert_uint_eq(find(&k, &agent, "x65000", 4, hits), 1);
    ck_assert_uint_eq(find(&k, &agent, "x69000", 4, hits), 0);
    struct store_txn *t = begin(&k);
    struct text_doc was = {.title = STR("Long"), .text = str_of(text)};
    text_set(t, &agent, 1, &was, NULL);
    ck_status(store_commit(t), STORE_OK);
    ck_assert_uint_eq(find(&k, &agent, "x65000", 4, hits), 0);
    free(text);
    kit_close(&k);
}
END_TEST

/* ---- the passage ---- */

/* Columns: question, text, most bytes, the passage. */
static const struct {
    const char *question, *text;
    size_t most;
    const char *passage;
} passages[] = {
    {"returns", "We ship at once. Returns are free for 30 days. Ask us.", 40, "Returns are free for 30 days. Ask us."},
    {"returns", "We ship at once. Returns are free for 30 days. Ask us.", 32, "Returns are free for 30 days."},
    {"nothing", "We ship at once. Returns are free.", 20, "We ship at once."},
    {"red bicycle", "A bicycle is here. Much is said. The red bicycle costs 10.", 30, "The red bicycle costs 10."},
    {"warranty", "one two three four five six seven eight nine ten warranty eleven twelve thirteen", 20, "warranty eleven"},
    {"x", "", 20, ""},
    {"退货", "我们很快发货。退货是免费的。请联系我们。", 30, "退货是免费的。"},
};

START_TEST(the_passage_that_tells_most_is_cut_out_whole)
{
    struct kit k;
    struct text_question q;
    MDB_txn *txn;
    kit_open(&k);
    put_one(&k, &agent, 1, "", passages[_i].text);
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    ck_status(text_ask(k.s, txn, &agent, str_of(passages[_i].question), &q), STORE_OK);
    struct str got = excerpt(&q, str_of(passages[_i].text), passages[_i].most);
    ck_assert_msg(str_eq(got, str_of(passages[_i].passage)), "\"%.*s\" must be \"%s\"", (int)got.n, got.p, passages[_i].passage);
    store_read_end(k.s);
    kit_close(&k);
}
END_TEST

START_TEST(a_passage_of_any_text_is_within_it_and_not_too_long)
{
    struct kit k;
    struct text_question q;
    MDB_txn *txn;
    seed = 3;
    kit_open(&k);
    put_one(&k, &agent, 1, "", "a1 b2 é3 東4 c5");
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    ck_status(text_ask(k.s, txn, &agent, STR("a1 b2 é3 東 c5"), &q), STORE_OK);
    for (unsigned i = 0; i < 3000; i++) {
        static const char *const bits[] = {"a1", "b2", "é3", "東", "c5", " ", "\n", ". ", "。", "long-word-of-nothing", "\xc3", "😀"};
        char text[300] = "";
        for (uint64_t n = chance(30); n > 0 && strlen(text) < 260; n--)
            strcat(text, bits[chance(sizeof(bits) / sizeof(*bits))]);
        size_t most = 1 + chance(60);
        struct str got = excerpt(&q, str_of(text), most);
        ck_assert(got.p >= text && got.p + got.n <= text + strlen(text));
        ck_assert_uint_le(got.n, most);
    }
    store_read_end(k.s);
    kit_close(&k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_text");
    TCase *words = tcase_create("words");
    tcase_add_loop_test(words, words_of_a_text_are_folded_and_parted_as_its_script_does, 0, sizeof(cases) / sizeof(*cases));
    tcase_add_test(words, folding_what_is_folded_changes_nothing);
    tcase_add_test(words, frequent_words_of_questions_are_known_and_others_are_not);
    suite_add_tcase(suite, words);
    TCase *index = tcase_create("index");
    tcase_set_timeout(index, 120);
    tcase_add_loop_test(index, rankings_and_scores_are_those_of_bm25_over_all_documents, 0, 4);
    tcase_add_test(index, counts_are_exact_and_parts_few_after_a_thousand_commits_of_one);
    tcase_add_test(index, what_went_leaves_nothing_behind);
    tcase_add_test(index, an_agent_finds_its_own_alone_and_nothing_after_it_is_erased);
    tcase_add_test(index, a_document_put_twice_in_one_transaction_is_there_once);
    tcase_add_test(index, a_title_counts_more_than_the_text_and_rare_words_more_than_frequent);
    tcase_add_test(index, hostile_questions_find_little_and_break_nothing);
    tcase_add_test(index, a_document_of_more_words_than_are_read_is_cut);
    suite_add_tcase(suite, index);
    TCase *passage = tcase_create("passage");
    tcase_add_loop_test(passage, the_passage_that_tells_most_is_cut_out_whole, 0, sizeof(passages) / sizeof(*passages));
    tcase_add_test(passage, a_passage_of_any_text_is_within_it_and_not_too_long);
    suite_add_tcase(suite, passage);
    return kit_run(suite);
}
