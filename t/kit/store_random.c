#include "t/kit/store_random.h"

uint64_t random_seed;
static struct visitor visitors[40];
static size_t visitor_count;
static struct ulid agents[6];
static size_t agent_count;
static uint64_t report_count, operator;

unsigned random_below(unsigned n)
{
    return (unsigned)(kit_random(&random_seed) % n);
}

static uint64_t some_workspace(void)
{
    return 1 + random_below(4);
}

static void new_report(void)
{
    static const char *const names[] = {"a.com", "b.com", "c.com", "a name with spaces"};
    char url[64], idem[32], body[32] = {0};
    snprintf(url, sizeof(url), "https://host-%u.com/%u", random_below(9), random_below(1000));
    struct store_change c = kit_create_change(some_workspace(), url, names[random_below(4)]);
    memset(idem, (int)random_below(100), sizeof(idem));
    if (random_below(3) == 0) {
        c.idem_key = (struct str){idem, sizeof(idem)};
        c.idem_body = (struct str){body, sizeof(body)};
    }
    report_count += kit_apply(&kit, &c).status == STORE_OK;
}

static void grade_report(void)
{
    if (report_count == 0)
        return;
    uint64_t id = 1 + random_below((unsigned)report_count);
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                           .workspace = some_workspace(),
                                           .id = id,
                                           .fields = CHANGE_REGENERATE});
    struct store_change c = kit_done_change(id, 1 + random_below(2), (int)random_below(101));
    kit_apply(&kit, &c);
}

static void change_report(void)
{
    if (report_count == 0)
        return;
    uint64_t id = 1 + random_below((unsigned)report_count);
    struct store_change died = {.kind = CHANGE_REPORT_DIED, .id = id, .attempt = 1};
    struct store_change failed = kit_failed_change(id, 1);
    struct store_change hidden = {.kind = CHANGE_REPORT_UPDATE,
                                  .workspace = some_workspace(),
                                  .id = id,
                                  .fields = CHANGE_HAS_PRIVACY,
                                  .privacy = random_below(2)};
    const struct store_change *const changes[] = {&died, &failed, &hidden, &hidden};
    kit_apply(&kit, changes[random_below(4)]);
}

static void delete_report(void)
{
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_REPORT_DELETE,
                                           .workspace = some_workspace(),
                                           .id = 1 + random_below(200)});
}

static void delete_project(void)
{
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_PROJECT_DELETE,
                                           .workspace = some_workspace(),
                                           .id = 1 + random_below(12)});
}

static void rotate(uint64_t id)
{
    static unsigned made;
    char hash[32] = "rotated";
    snprintf(hash + 8, sizeof(hash) - 8, "%u", ++made);
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_KEY_ROTATE,
                                           .id = id,
                                           .hash = {hash, sizeof(hash)},
                                           .expires_at = kit.now + HOUR});
}

/* The operator's key is kept. */
static void keys(void)
{
    static uint8_t number;
    uint64_t id = operator+ 1 + random_below(9);
    unsigned dice = random_below(8);
    if (dice == 6)
        kit_apply(&kit,
                  &(struct store_change){.kind = CHANGE_SIGNING_KEYS,
                                         .text = random_below(2) ? STR("some") : STR(""),
                                         .data = random_below(2) ? STR("some") : STR("others")});
    else if (dice < 2)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id});
    else if (dice == 2)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_KEY_TOUCH, .id = id});
    else if (dice == 3 || dice == 7)
        rotate(id);
    else if (number < 200)
        kit_key(&kit, 1, ++number);
}

static void change_agent(void)
{
    static const char *const settings[] = {"{\"language_default\":\"en\"}",
                                           "{\"language_default\":\"de\"}", "{}"};
    if (agent_count != 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_AGENT_UPDATE,
                                               .agent = agents[random_below((unsigned)agent_count)],
                                               .fields = AGENT_HAS_SETTINGS,
                                               .data = str_of(settings[random_below(3)])});
}

/* Half of them of the first agent, whose workspace has the operator. */
static void new_visitor(void)
{
    unsigned of = random_below(2) == 0 ? 0 : random_below(4);
    if (visitor_count < 40 && of < agent_count)
        visitors[visitor_count++] = visitor_of(&agents[of]);
}

static struct visitor *some_visitor(void)
{
    return visitor_count == 0 ? NULL : &visitors[random_below((unsigned)visitor_count)];
}

/* An operator writes to a conversation; a visitor enters a coupon. */
static void write_to(const struct visitor *v)
{
    char key[32] = "", body[32] = "";
    snprintf(key, sizeof(key), "write %u", random_below(50));
    struct store_change reply = {.kind = CHANGE_MESSAGE_REPLY,
                                 .workspace = 1,
                                 .id = operator,
                                 .conversation = v->conversation,
                                 .text = STR("we look into it"),
                                 .idem_key = {key, sizeof(key)},
                                 .idem_body = {body, sizeof(body)},
                                 .code = 201};
    struct store_change note = reply;
    note.kind = CHANGE_NOTE;
    note.name = STR("Otto");
    note.idem_key.n = note.idem_body.n = 0;
    struct store_change coupon = {.kind = CHANGE_COUPON_PENDING,
                                  OF(v),
                                  .text = STR("walrus20"),
                                  .expires_at = kit.now + HOUR};
    const struct store_change *const changes[] = {&reply, &note, &coupon};
    kit_apply(&kit, changes[random_below(3)]);
}

static void add_conversation(void)
{
    static const char *const kinds[] = {"opened", "clicked", NULL};
    static const char *const emails[] = {"a@b", "c@d", "e@f"};
    static const uint32_t sets[] = {CONVERSATION_SET_CLOSED, CONVERSATION_SET_HUMAN,
                                    CONVERSATION_SET_CLEARED, CONVERSATION_SET_CLAIMED};
    struct visitor *v = some_visitor();
    if (v == NULL)
        return;
    switch (random_below(8)) {
    case 0:
        post(v, "walrus");
        break;
    case 1:
        lead(v, emails[random_below(3)], "Ann");
        break;
    case 2:
        events(v, kinds);
        break;
    case 3:
        rate(v, 1 + (int32_t)random_below(5), "good");
        break;
    case 4:
        set(v, sets[random_below(3)]);
        break;
    case 5:
    case 6:
        write_to(v);
        break;
    default:
        operate(operator, & v->conversation, sets[random_below(4)]);
    }
}

static void erase(void)
{
    struct visitor *v = some_visitor();
    if (v != NULL && random_below(4) == 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_ERASE, OF(v)});
    else if (agent_count > 1 && random_below(9) == 0)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_AGENT_DELETE,
                                               .agent = agents[--agent_count]});
}

static void pack_pages(struct buf *out)
{
    static const char *const texts[] = {"of some words", "about returns of a walrus",
                                        "and a heron"};
    const struct store_synced d = {.title = STR("A page"),
                                   .text = str_of(texts[random_below(3)]),
                                   .url = STR("https://a.com/"),
                                   .price = MONEY_NONE};
    uint64_t wp_id = 1 + random_below(6);
    for (unsigned n = 1 + random_below(4); n > 0; n--, wp_id += 1 + random_below(4)) {
        uint8_t hash[16] = {(uint8_t)random_below(200)};
        enum sync_action action = random_below(5) == 0 ? SYNC_DELETE : SYNC_UPSERT;
        sync_pack(out, action, wp_id, hash, 0, action == SYNC_DELETE ? NULL : &d);
    }
}

/* Of the first agent, or of the second in workspace 2. */
static void sync_batch(void)
{
    static const char *const sites[] = {"a.com", "b.com"};
    unsigned of = random_below(2);
    struct buf items = {0};
    char key[32] = "", body[32] = "", sync_id[16] = "";
    if (agent_count <= of)
        return;
    pack_pages(&items);
    snprintf(key, sizeof(key), "sync %u", random_below(1000));
    snprintf(sync_id, sizeof(sync_id), "%u", random_below(20));
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_SYNC,
                                           .workspace = 1 + of,
                                           .agent = agents[of],
                                           .name = str_of(sites[random_below(2)]),
                                           .status = SYNCED_POST,
                                           .fields = random_below(4) == 0 ? SYNC_COMPLETE : 0,
                                           .text = str_of(sync_id),
                                           .data = buf_view(&items),
                                           .idem_key = {key, sizeof(key)},
                                           .idem_body = {body, sizeof(body)},
                                           .code = 200});
    buf_free(&items);
}

static void sync_coupons(void)
{
    static const char *const codes[] = {"walrus", "heron", "otter", "crab"};
    struct buf data = {0};
    if (agent_count == 0)
        return;
    for (unsigned i = random_below(4); i < 4; i++)
        coupon_pack(&data, &(struct store_coupon){.code = str_of(codes[i]),
                                                  .type = COUPON_PERCENT,
                                                  .amount = 1 + random_below(50),
                                                  .minimum = MONEY_NONE,
                                                  .maximum = MONEY_NONE,
                                                  .usage_limit = UINT64_MAX});
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_COUPONS,
                                           .workspace = 1,
                                           .agent = agents[0],
                                           .data = buf_view(&data),
                                           .code = 200});
    buf_free(&data);
}

static void retain(void)
{
    kit_apply(&kit, &(struct store_change){.kind = CHANGE_RETAIN,
                                           .fields = 1 + random_below(2),
                                           .expires_at = kit.now - HOUR,
                                           .limit = 1 + random_below(9)});
}

/* The idempotency keys may have expired then. */
static void let_time_pass(void)
{
    kit.now += random_below(4) == 0 ? 26 * HOUR : random_below(1000);
}

void random_background(void)
{
    for (unsigned i = random_below(6); i > 0; i--)
        kit_apply(&kit, &(struct store_change){.kind = CHANGE_PURGE, .limit = 1 + random_below(5)});
    kit_maintain(&kit, 1 + random_below(9), random_below(12));
}

/* Columns: the action, its frequency in percent. */
static const struct {
    void (*act)(void);
    unsigned often;
} acts[] = {{new_report, 26},   {grade_report, 14},  {change_report, 4},
            {delete_report, 5}, {delete_project, 3}, {keys, 4},
            {new_visitor, 6},   {change_agent, 2},   {add_conversation, 22},
            {erase, 3},         {sync_batch, 6},     {sync_coupons, 2},
            {retain, 1},        {let_time_pass, 2}};

void random_act(void)
{
    unsigned dice = random_below(100), at = 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
        at += acts[i].often;
        if (dice < at) {
            acts[i].act();
            return;
        }
    }
}

const struct ulid *random_agent(unsigned i)
{
    return &agents[i];
}

void random_begin(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 10;
    widget_begin(); /* workspace 1 and an agent */
    random_seed = 7;
    visitor_count = agent_count = 0;
    report_count = 0;
    agents[agent_count++] = agent;
    for (int i = 2; i <= 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "w%d", i);
        ck_assert_uint_eq(kit_workspace(&kit, name), (uint64_t)i);
        agents[agent_count++] = agent_new((uint64_t)i);
    }
    operator= kit_key(&kit, 1, 250);
}

void random_end(void)
{
    widget_end();
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = 0;
}
