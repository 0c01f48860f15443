#include "t/kit/store_lookup.h"

#include <dirent.h>

struct kit kit;
uint64_t workspace;
struct ulid agent;
int64_t shop_price;

struct ulid new_agent(void)
{
    return kit_agent(&kit, workspace, "\"language_default\":\"en\"");
}

void begin(void)
{
    shop_price = 0;
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = new_agent();
}

void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

void pack_page(struct buf *rows, uint64_t wp_id, const char *title, const char *text)
{
    uint8_t hash[16] = {(uint8_t)shop_price};
    struct store_synced d = {.title = str_of(title),
                             .text = str_of(text),
                             .taxonomy = STR("Help\nShop"),
                             .sku = STR("SKU-77"),
                             .url = STR("https://shop.example/p"),
                             .price = shop_price,
                             .regular_price = MONEY_NONE,
                             .sale_price = MONEY_NONE};
    for (size_t i = 0; text[i] != '\0'; i++)
        hash[i % 16] = (uint8_t)(hash[i % 16] * 31 + (uint8_t)text[i]);
    sync_pack(rows, text[0] == '\0' ? SYNC_DELETE : SYNC_UPSERT, wp_id, hash, 0,
              text[0] == '\0' ? NULL : &d);
}

void sync_rows(const struct ulid *to, struct buf *rows, const char *sync_id, bool complete)
{
    struct store_answer a =
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_SYNC,
                                               .workspace = workspace,
                                               .agent = *to,
                                               .name = STR("shop.example"),
                                               .status = SYNCED_POST,
                                               .fields = complete ? SYNC_COMPLETE : 0,
                                               .text = str_of(sync_id),
                                               .data = buf_view(rows)});
    ck_status(a.status, STORE_OK);
    buf_free(rows);
}

void sync_one(uint64_t wp_id, const char *title, const char *text)
{
    struct buf rows = {0};
    pack_page(&rows, wp_id, title, text);
    sync_rows(&agent, &rows, "", false);
}

void follow(void)
{
    ck_assert_uint_lt(kit_follow(&kit, STEPS), STEPS);
}

static void take_hits(void *arg, enum store_status status, const struct store_found *found)
{
    struct looked *l = arg;
    l->status = status;
    if (status != STORE_OK)
        return;
    l->lost = found->lost;
    l->count = found->count;
    for (size_t i = 0; i < found->count; i++)
        l->wp_ids[i] = found->hits[i].document.wp_id;
    if (found->count == 0)
        return;
    const struct store_hit *first = &found->hits[0];
    snprintf(l->excerpt, sizeof(l->excerpt), "%.*s", (int)first->excerpt.n, first->excerpt.p);
    snprintf(l->title, sizeof(l->title), "%.*s", (int)first->document.title.n,
             first->document.title.p);
    l->share = first->share;
}

struct looked look_with(const struct ulid *of, const char *question, store_stop_fn *stop)
{
    struct looked l = {0};
    const struct store_question q = {.agent = *of,
                                     .text = str_of(question),
                                     .language = STR("en"),
                                     .limit = 4,
                                     .excerpt_bytes = 60,
                                     .stop = stop};
    store_find(kit.s, &q, take_hits, &l);
    store_read_end(kit.s);
    return l;
}

struct looked look(const struct ulid *of, const char *question)
{
    struct looked l = look_with(of, question, NULL);
    ck_status(l.status, STORE_OK);
    return l;
}

struct store_answers state(void)
{
    struct store_answers a;
    ck_status(store_answers_get(kit.s, &agent, &a), STORE_OK);
    store_read_end(kit.s);
    return a;
}

uint64_t unindexed(void)
{
    uint64_t count;
    ck_status(store_answers_unindexed(kit.s, &count), STORE_OK);
    store_read_end(kit.s);
    return count;
}

void file_path(char path[ANSWERS_PATH_BYTES])
{
    struct answers_name name = {.agent = agent, .generation = state().generation};
    ck_status(format_id(kit.s, name.store_id), STORE_OK);
    store_read_end(kit.s);
    answers_path(path, kit.dir, &name);
}

size_t files(void)
{
    char path[128];
    size_t count = 0;
    struct dirent *e;
    snprintf(path, sizeof(path), "%s/answers", kit.dir);
    DIR *dir = opendir(path);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        count += e->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* Every document that should be found is, by a word of its own. */
void expect_words(uint64_t from, uint64_t to, const char *prefix, size_t count)
{
    char word[32];
    for (uint64_t i = from; i <= to; i++) {
        snprintf(word, sizeof(word), "%s%u", prefix, (unsigned)i);
        ck_assert_msg(look(&agent, word).count == count, "%s", word);
    }
}

void sync_words(uint64_t from, uint64_t to, const char *prefix)
{
    struct buf rows = {0};
    char word[32];
    for (uint64_t i = from; i <= to; i++) {
        snprintf(word, sizeof(word), "%s%u", prefix, (unsigned)i);
        pack_page(&rows, i, "Page", prefix[0] == '-' ? "" : word);
        if (i % 100 == 0 || i == to)
            sync_rows(&agent, &rows, "", false);
    }
}
