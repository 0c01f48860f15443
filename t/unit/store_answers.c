/*
 * Questions over a small shop: the right page answers in any number of pages, an unanswerable
 * question gets no answer, and neither hashes nor word order matter.
 */
#include "t/kit/store.h"

#include <limits.h>
#include <math.h>

static struct kit kit;
static uint64_t workspace;
static struct ulid agent;

/* Columns: title, text, two questions that only this page answers. */
static const struct page {
    const char *title, *text, *questions[2];
} pages[] = {
    {"Refund policy",
     "We give refunds within 30 days of delivery. Refunds are paid to the card you used. Refunds "
     "take five working days.",
     {"How many days do refunds take?", "Are refunds paid to my card?"}},
    {"Shipping to Norway",
     "We ship to Norway every Tuesday. Parcels arrive after six days, and customs fees are "
     "included.",
     {"Do you ship to Norway?", "Are customs fees included?"}},
    {"Opening hours",
     "The showroom opens at nine and closes at six. On Sundays the showroom is closed.",
     {"When does the showroom open on Sundays?", "Is the showroom closed on Sundays?"}},
    {"Payment methods",
     "You can pay by credit card, PayPal or bank transfer. Cash is taken in the store only.",
     {"Can I pay with PayPal?", "Do you accept a bank transfer?"}},
    {"Warranty",
     "Every grinder has a warranty of two years. Send the grinder with its receipt to our workshop "
     "for repair.",
     {"How long is the warranty on a grinder?", "Where do I send a grinder for repair?"}},
    {"Gift vouchers",
     "Gift vouchers are sent by e-mail and are valid for three years. A voucher can be used "
     "several times.",
     {"For how long are gift vouchers valid?", "Are vouchers sent by e-mail?"}},
    {"Careers",
     "We look for a roaster and a barista. Write to jobs@harbour.example with your application.",
     {"Do you have jobs for a barista?", "Where do I send my application?"}},
    {"Wholesale",
     "Cafés and offices get wholesale prices from 20 kilograms a month. Ask for our wholesale "
     "catalogue.",
     {"Do offices get wholesale prices?", "Can I have your wholesale catalogue?"}},
    {"Brewing guide",
     "For a French press take 60 grams of coarse coffee per litre of water, and wait four minutes.",
     {"How much coffee for a French press?", "How many grams of coffee per litre of water?"}},
    {"Subscriptions",
     "A subscription brings fresh beans each month. Pause or cancel your subscription in your "
     "account at any time.",
     {"How do I cancel my subscription?", "Can I pause the subscription?"}},
    {"Data protection",
     "We store your name and address for orders. Ask us to delete your data by writing to "
     "privacy@harbour.example.",
     {"How can I delete my data?", "Do you store my address?"}},
    {"Decaf",
     "Our decaf is made by the Swiss Water process, without chemicals. It tastes of cocoa and has "
     "no caffeine.",
     {"Is the decaf made without chemicals?", "Does the decaf taste of cocoa?"}},
    {"Lost parcels",
     "Has your parcel not come after ten days? Tell us the tracking number, and we look for the "
     "lost parcel.",
     {"My parcel is lost, what now?", "Where is my tracking number?"}},
    {"Barista courses",
     "Our latte art courses are on Saturdays. A course costs 89 euros and lasts three hours.",
     {"What does a latte art course cost?", "Are the courses on Saturdays?"}},
    {"Organic certificate",
     "All beans from Peru and Honduras are organic. The certificate is DE-ÖKO-006.",
     {"Are the beans from Peru organic?", "Do you have an organic certificate?"}},
    {"Cleaning a grinder",
     "Brush the burrs each week. Never wash burrs with water, since they rust.",
     {"Can I wash the burrs?", "Do burrs rust?"}},
};

#define PAGES (sizeof(pages) / sizeof(*pages))

static const char *const unanswered[] = {
    "Do you sell submarines?",
    "Who won the football match?",
    "Ship the xylophone to Zanzibar by zeppelin",
    "Is there parking for motorcycles",
    "What colour is the president's tie?",
    "Do dogs like bananas?",
    "Can I book a hotel in Madrid?",
    "Which blender makes smoothies?",
    "My laptop battery explodes",
    "Is the showroom wheelchair accessible for my grandmother?",
    "Do your offices have a swimming pool?",
    "Which French wine suits fish on a balcony?",
    "Can a dog wear a Kenya shirt?",
    "Translate this sentence into Finnish",
};

/* ---- a collection ---- */

static void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
}

static void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

static void new_collection(void)
{
    agent = kit_agent(&kit, workspace, "\"language_default\":\"en\"");
}

static void pack(struct buf *rows, uint64_t wp_id, const char *title, const char *text)
{
    const uint8_t hash[16] = {0};
    struct store_synced d = {.title = str_of(title),
                             .text = str_of(text),
                             .url = STR("https://shop.example/p"),
                             .price = MONEY_NONE,
                             .regular_price = MONEY_NONE,
                             .sale_price = MONEY_NONE};
    sync_pack(rows, SYNC_UPSERT, wp_id, hash, 0, &d);
}

static void put(struct buf *rows)
{
    struct store_answer a = kit_apply(&kit, &(struct store_change){.kind = CHANGE_SYNC,
                                                                   .workspace = workspace,
                                                                   .agent = agent,
                                                                   .name = STR("shop.example"),
                                                                   .status = SYNCED_POST,
                                                                   .data = buf_view(rows)});
    ck_status(a.status, STORE_OK);
    buf_free(rows);
    kit_follow(&kit, UINT_MAX);
}

struct found {
    size_t count;
    uint64_t wp_ids[STORE_HITS_MAX];
    double scores[STORE_HITS_MAX], share;
    bool answers;
};

static void take_hits(void *arg, enum store_status status, const struct store_found *found)
{
    struct found *f = arg;
    ck_status(status, STORE_OK);
    f->count = found->count;
    f->share = found->count > 0 ? found->hits[0].share : 0;
    f->answers = found->count > 0 && found->hits[0].answers;
    for (size_t i = 0; i < found->count; i++) {
        f->wp_ids[i] = found->hits[i].document.wp_id;
        f->scores[i] = found->hits[i].score;
    }
}

static struct found find(const char *question)
{
    struct found f = {0};
    const struct store_question q = {.agent = agent,
                                     .text = str_of(question),
                                     .language = STR("en"),
                                     .limit = STORE_HITS_MAX,
                                     .excerpt_bytes = 60};
    store_find(kit.s, &q, take_hits, &f);
    store_read_end(kit.s);
    return f;
}

/* The page that answers, from 1; 0: none. */
static uint64_t answer_to(const char *question)
{
    struct found f = find(question);
    return f.answers ? f.wp_ids[0] : 0;
}

/* ---- sizes ---- */

/* Products, which share some words with the pages. */
static void pack_products(struct buf *rows, size_t count)
{
    static const char *const from[] = {"Kenya",    "Brazil",  "Sumatra", "Rwanda",
                                       "Colombia", "Burundi", "Laos"};
    static const char *const tastes[] = {"blackcurrant", "caramel", "tobacco", "apricot",
                                         "hazelnut"};
    char title[64], words[128];
    for (size_t i = 0; i < count; i++) {
        snprintf(title, sizeof(title), "%s number %zu", from[i % 7], i);
        snprintf(words, sizeof(words), "Coffee beans from %s that taste of %s. Roasted every week.",
                 from[i % 7], tastes[i % 5]);
        pack(rows, 1000 + i, title, words);
    }
}

/* ${count} pages from the ${first} on, and products up to ${size} documents. */
static void new_shop(size_t first, size_t count, size_t size)
{
    struct buf rows = {0};
    new_collection();
    for (size_t i = first; i < first + count; i++)
        pack(&rows, i % PAGES + 1, pages[i % PAGES].title, pages[i % PAGES].text);
    pack_products(&rows, size - count);
    put(&rows);
}

static const size_t sizes[] = {1, 2, 3, 5, 8, 16, 40, 100};

START_TEST(the_right_page_answers_among_few_pages)
{
    const size_t size = sizes[_i], count = size < PAGES ? size : PAGES;
    begin();
    for (size_t first = 0; first < PAGES; first++) {
        new_shop(first, count, size);
        for (size_t q = 0; q < 2 * count; q++) {
            const uint64_t page = (first + q / 2) % PAGES + 1;
            const char *question = pages[page - 1].questions[q % 2];
            uint64_t answer = answer_to(question);
            ck_assert_msg(answer == page, "\"%s\": page %d of %zu answers", question, (int)answer,
                          size);
        }
        for (size_t i = 0; i < sizeof(unanswered) / sizeof(*unanswered); i++) {
            uint64_t answer = answer_to(unanswered[i]);
            ck_assert_msg(answer == 0, "\"%s\": page %d of %zu answers", unanswered[i], (int)answer,
                          size);
        }
    }
    end();
}
END_TEST

START_TEST(pages_about_one_thing_answer_questions_about_it)
{
    static const char *const questions[] = {"How many days do refunds take?",
                                            "Which refunds do you give?",
                                            "Tell me about your refunds"};
    struct buf rows = {0};
    begin();
    new_collection();
    pack(&rows, 1, "Refund policy", "We give refunds within 30 days. Refunds go to your card.");
    pack(&rows, 2, "How refunds work", "Send the parcel back. We pay refunds five days later.");
    put(&rows);
    for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        ck_assert_msg(answer_to(questions[i]) != 0, "%s", questions[i]);
    ck_assert_uint_eq(answer_to("Are submarines blue?"), 0);
    end();
}
END_TEST

/* ---- synonyms ---- */

#define MEANINGS 60  /* different words of a collection */
#define QUESTIONS 48 /* of a question */
/*
 * each collection is written in that many ways: each has its own word, and so its own hash, for a
 * meaning
 */
#define LANGUAGES 4

static uint64_t seed;

static unsigned chance(unsigned of)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % of;
}

static void write_text(char *to, size_t size, unsigned language, const unsigned *meanings,
                       size_t count)
{
    size_t n = 0;
    to[0] = '\0';
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(to + n, size - n, "%sw%ux%u", i == 0 ? "" : " ",
                              language * 7919 + meanings[i], meanings[i]);
    ck_assert_uint_lt(n, size);
}

static void shuffle(unsigned *meanings, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = chance((unsigned)i);
        unsigned kept = meanings[i - 1];
        meanings[i - 1] = meanings[other];
        meanings[other] = kept;
    }
}

/* Few words are frequent, many are rare. */
static size_t random_meanings(unsigned *meanings, unsigned most)
{
    size_t count = 1 + chance(most);
    for (size_t i = 0; i < count; i++)
        meanings[i] = chance(1 + chance(MEANINGS));
    return count;
}

static void new_random_collection(unsigned language, size_t documents, uint64_t of)
{
    unsigned meanings[40];
    char title[64], words[1024];
    struct buf rows = {0};
    seed = of;
    new_collection();
    for (size_t i = 0; i < documents; i++) {
        write_text(title, sizeof(title), language, meanings, random_meanings(meanings, 3));
        write_text(words, sizeof(words), language, meanings, random_meanings(meanings, 40));
        pack(&rows, i + 1, title, words);
    }
    put(&rows);
}

/* Scores are sums in varying order: a smaller difference counts as equal. */
#define EQUAL 1e-4

static void expect_same(const struct found *one, const struct found *other, size_t documents)
{
    ck_assert_msg(one->count == other->count, "of %zu documents: %zu or %zu hits", documents,
                  one->count, other->count);
    for (size_t i = 0; i < one->count; i++)
        ck_assert_msg(fabs(one->scores[i] - other->scores[i]) < EQUAL,
                      "of %zu documents, hit %zu scores %f or %f", documents, i, one->scores[i],
                      other->scores[i]);
    if (one->count > 0 && (one->count == 1 || one->scores[0] - one->scores[1] > EQUAL)) {
        ck_assert_uint_eq(one->wp_ids[0], other->wp_ids[0]);
        ck_assert(fabs(one->share - other->share) < EQUAL);
    }
}

START_TEST(an_answer_depends_on_neither_hashes_nor_word_order)
{
    unsigned meanings[QUESTIONS];
    char question[1024];
    struct found first = {0}, found;
    begin();
    for (size_t documents = 1; documents <= 100; documents += documents < 12 ? 1 : 11) {
        seed = documents * 7 + 1;
        size_t count = random_meanings(meanings, QUESTIONS);
        for (unsigned language = 0; language < LANGUAGES; language++) {
            new_random_collection(language, documents, documents);
            for (unsigned order = 0; order < 4; order++) {
                write_text(question, sizeof(question), language, meanings, count);
                found = find(question);
                if (language == 0 && order == 0)
                    first = found;
                expect_same(&first, &found, documents);
                shuffle(meanings, count);
            }
        }
    }
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_answers");
    TCase *tcase = tcase_create("store_answers");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, the_right_page_answers_among_few_pages, 0,
                        sizeof(sizes) / sizeof(*sizes));
    tcase_add_test(tcase, pages_about_one_thing_answer_questions_about_it);
    tcase_add_test(tcase, an_answer_depends_on_neither_hashes_nor_word_order);
    return kit_run(suite);
}
