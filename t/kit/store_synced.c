#include "t/kit/store_synced.h"

struct kit kit;
uint64_t workspace;
struct ulid agent;

static struct ulid agent_new(void)
{
    return kit_agent(&kit, workspace, "\"theme\":{}");
}

void begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = agent_new();
}

void end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

static void hash_of(int content, uint8_t out[16])
{
    memset(out, 0, 16);
    memcpy(out, &content, sizeof(content));
}

void row(struct rows *r, enum sync_action action, uint64_t wp_id, int content, int64_t modified_at)
{
    char title[32], url[64];
    uint8_t hash[16];
    snprintf(title, sizeof(title), "Item %d", content);
    snprintf(url, sizeof(url), "https://shop.example/%llu", (unsigned long long)wp_id);
    const struct store_synced d = {.title = str_of(title),
                                   .url = str_of(url),
                                   .text = STR("text"),
                                   .price = 125000,
                                   .regular_price = MONEY_NONE,
                                   .sale_price = MONEY_NONE,
                                   .modified_at = modified_at};
    hash_of(content, hash);
    sync_pack(&r->data, action, wp_id, hash, modified_at, action == SYNC_UPSERT ? &d : NULL);
}

struct store_answer send_kind(struct rows *r, enum synced_kind kind, const char *sync_id,
                              bool complete)
{
    const struct store_change c = {.kind = CHANGE_SYNC,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .name = SITE,
                                   .status = kind,
                                   .text = str_of(sync_id),
                                   .fields = complete ? SYNC_COMPLETE : 0,
                                   .data = buf_view(&r->data),
                                   .code = 200};
    struct store_answer answer = kit_apply(&kit, &c);
    buf_free(&r->data);
    return answer;
}

struct store_answer send_products(struct rows *r, const char *sync_id, bool complete)
{
    struct store_answer answer = send_kind(r, SYNCED_PRODUCT, sync_id, complete);
    ck_status(answer.status, STORE_OK);
    return answer;
}

enum synced_mark one(enum sync_action action, uint64_t wp_id, int content, int64_t modified_at,
                     const char *sync_id)
{
    struct rows r = {0};
    row(&r, action, wp_id, content, modified_at);
    struct store_answer answer = send_products(&r, sync_id, false);
    return synced_mark(&answer, 0);
}

uint64_t complete(const char *sync_id)
{
    struct rows r = {0};
    return send_products(&r, sync_id, true).id;
}

static void see(void *arg, enum store_status status, const struct store_synced *d)
{
    struct there *t = arg;
    t->status = status;
    if (d == NULL)
        return;
    t->ids[t->count] = d->wp_id;
    t->documents[t->count] = d->id;
    snprintf(t->titles[t->count++], sizeof(t->titles[0]), "%.*s", (int)d->title.n, d->title.p);
}

struct there *there(enum synced_kind kind)
{
    static struct there t;
    t = (struct there){0};
    store_synced_each(kit.s, &agent, kind, see, &t);
    store_read_end(kit.s);
    ck_status(t.status, STORE_NOT_FOUND);
    return &t;
}

const char *shown(void)
{
    static char text[1024];
    const struct there *t = there(SYNCED_PRODUCT);
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < t->count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu:%s", i == 0 ? "" : " ",
                              (unsigned long long)t->ids[i], t->titles[i] + 5);
    return text;
}

static void see_count(void *arg, enum store_status status, const struct store_collection *c)
{
    uint64_t *count = arg;
    (void)status;
    if (c != NULL && c->kind == SYNCED_PRODUCT)
        *count = c->count;
}

uint64_t counted(void)
{
    uint64_t count = 0;
    store_collection_each(kit.s, &agent, see_count, &count);
    store_read_end(kit.s);
    return count;
}

struct store_answer coupons(const char *const *codes, size_t count, int64_t amount)
{
    struct buf data = {0};
    for (size_t i = 0; i < count; i++) {
        const struct store_coupon coupon = {.code = str_of(codes[i]),
                                            .type = COUPON_PERCENT,
                                            .amount = amount,
                                            .minimum = MONEY_NONE,
                                            .maximum = MONEY_NONE,
                                            .usage_limit = UINT64_MAX,
                                            .products = {"\1\0\0\0\0\0\0\0", 8}};
        if (codes[i][0] == '!')
            coupon_pack_seen(&data, str_of(codes[i] + 1));
        else
            coupon_pack(&data, &coupon);
    }
    const struct store_change c = {.kind = CHANGE_COUPONS,
                                   .workspace = workspace,
                                   .agent = agent,
                                   .data = buf_view(&data),
                                   .code = 200};
    struct store_answer answer = kit_apply(&kit, &c);
    ck_status(answer.status, STORE_OK);
    buf_free(&data);
    return answer;
}
