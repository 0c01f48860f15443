#include "t/kit/store_widget.h"

struct kit kit;
uint64_t workspace;
struct ulid agent;

struct ulid agent_new(uint64_t of)
{
    return kit_agent(&kit, of, "{}");
}

void widget_begin(void)
{
    kit_open(&kit);
    workspace = kit_workspace(&kit, "acme");
    agent = agent_new(workspace);
}

void widget_end(void)
{
    kit_check_clean(kit.s);
    kit_close(&kit);
}

struct store_answer init_try(const struct ulid *of, const char *secret, char *next)
{
    memset(next, 0, 32);
    static unsigned made;
    snprintf(next, 32, "secret %u", ++made);
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_VISITOR_INIT,
                                                  .agent = *of,
                                                  .hash = {secret, secret == NULL ? 0 : 32},
                                                  .match = {next, 32},
                                                  .url = STR("https://shop.example/zebra"),
                                                  .data = STR("{\"locale\":\"zulu\"}"),
                                                  .expires_at = kit.now - DAY});
}

struct visitor visitor_of(const struct ulid *of)
{
    struct visitor v = {.agent = *of};
    struct store_answer a = init_try(of, NULL, v.secret);
    ck_status(a.status, STORE_OK);
    ck_assert_uint_eq(a.code, 1);
    v.conversation = a.first;
    v.id = a.second;
    return v;
}

struct visitor visitor_new(void)
{
    return visitor_of(&agent);
}

struct store_answer post(const struct visitor *v, const char *body)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_MESSAGE_POST,
                                                  OF(v),
                                                  .text = str_of(body),
                                                  .answer = STR("found nothing"),
                                                  .code = 200});
}

struct store_answer set(const struct visitor *v, uint32_t fields)
{
    return kit_apply(
        &kit, &(struct store_change){.kind = CHANGE_CONVERSATION_SET, OF(v), .fields = fields});
}

struct store_answer operate(uint64_t key, const struct ulid *conversation, uint32_t fields)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_CONVERSATION_SET,
                                                  .workspace = workspace,
                                                  .id = key,
                                                  .conversation = *conversation,
                                                  .fields = fields});
}

struct store_answer lead(const struct visitor *v, const char *email, const char *name)
{
    char hash[32] = "";
    snprintf(hash, sizeof(hash), "%s", email);
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_LEAD,
                                                  OF(v),
                                                  .hash = {hash, 32},
                                                  .text = str_of(email),
                                                  .name = str_of(name),
                                                  .url = STR("555-walrus"),
                                                  .data = STR("{\"x\":1}")});
}

/* ---- what is there ---- */

static void note(struct texts *t, const struct ulid *id, struct str s)
{
    ck_assert_uint_lt(t->count, 64);
    snprintf(t->text[t->count], sizeof(t->text[0]), "%.*s", (int)s.n, s.p);
    t->id[t->count++] = *id;
}

/* ---- records as plain texts ---- */

static void put_conversation(const struct store_conversation *c, struct buf *out)
{
    buf_printf(out, "conversation %d %llu ", (int)conversation_status(c),
               (unsigned long long)c->messages);
    buf_str(out, c->page_url);
}

static void put_message(const struct store_message *m, struct buf *out)
{
    buf_printf(out, "message %d ", (int)m->role);
    buf_str(out, m->text);
    buf_str(out, m->client_id);
    buf_str(out, m->page_url);
    buf_str(out, m->page_context);
}

static void put_lead(const struct store_lead *l, struct buf *out)
{
    for (const struct store_sender *s = l->senders; s < l->senders + l->senders_n; s++) {
        const struct str parts[] = {STR(", "), s->email, STR(" "), s->name,
                                    STR(" "),  s->phone, STR(" "), s->fields};
        for (size_t i = s == l->senders ? 1 : 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            buf_str(out, parts[i]);
    }
}

static void put_event(const struct store_event_row *e, struct buf *out)
{
    buf_str(out, e->kind);
    buf_str(out, e->payload);
}

static void put_rating(const struct store_rating *r, struct buf *out)
{
    buf_printf(out, "%u ", r->rating);
    buf_str(out, r->comment);
}

void note_message(void *arg, enum store_status status, const struct store_message *m)
{
    struct texts *t = arg;
    if (m == NULL)
        t->end = status;
    else {
        struct buf text = {0};
        put_message(m, &text);
        note(t, &m->id, buf_view(&text));
        buf_free(&text);
    }
}

struct texts messages(const struct ulid *conversation, const struct ulid *after,
                      const struct ulid *before, bool newest, unsigned limit)
{
    struct texts t = {.count = 0};
    struct store_messages_query q = {
        .conversation = *conversation, .newest = newest, .limit = limit};
    q.after = after == NULL ? q.after : *after;
    q.before = before == NULL ? q.before : *before;
    store_message_each(kit.s, &q, note_message, &t);
    store_read_end(kit.s);
    return t;
}

size_t rows_most = SIZE_MAX;

static bool note_row(void *arg, enum store_status status, const struct store_row *row)
{
    struct texts *t = arg;
    struct buf text = {0};
    if (row == NULL) {
        t->end = status;
        return true;
    }
    if (t->count == rows_most)
        return false;
    if (row->conversation != NULL)
        put_conversation(row->conversation, &text);
    else if (row->lead != NULL)
        put_lead(row->lead, &text);
    else if (row->event != NULL)
        put_event(row->event, &text);
    else if (row->rating != NULL)
        put_rating(row->rating, &text);
    note(t, &row->id, buf_view(&text));
    buf_free(&text);
    return true;
}

struct texts rows(enum store_rows kind, struct store_rows_query q)
{
    struct texts t = {.count = 0};
    q.workspace = q.workspace == 0 ? workspace : q.workspace;
    q.limit = q.limit == 0 ? 50 : q.limit;
    store_rows_each(kit.s, kind, &q, note_row, &t);
    store_read_end(kit.s);
    return t;
}

void note_conversation(void *arg, enum store_status status, const struct store_conversation *c)
{
    if (status == STORE_OK)
        *(struct store_conversation *)arg = *c;
    else
        *(struct store_conversation *)arg = (struct store_conversation){.version = 0};
}

struct store_conversation conversation(const struct ulid *id)
{
    struct store_conversation c;
    store_conversation_get(kit.s, workspace, id, note_conversation, &c);
    store_read_end(kit.s);
    return c;
}

static void note_status(void *arg, enum store_status status, const struct store_agent *a,
                        const struct store_conversation *c)
{
    ck_assert((status == STORE_OK) == (a != NULL && c != NULL));
    *(enum store_status *)arg = status;
}

enum store_status session(const struct ulid *a, const struct ulid *v, const struct ulid *c)
{
    enum store_status status = STORE_INVALID;
    store_session_get(kit.s, a, v, c, note_status, &status);
    store_read_end(kit.s);
    return status;
}

struct store_answer events(const struct visitor *v, const char *const *kinds)
{
    struct buf data = {0};
    for (; *kinds != NULL; kinds++)
        event_pack(&data, str_of(*kinds), STR("{\"p\":1}"), 5);
    struct store_answer a = kit_apply(
        &kit, &(struct store_change){.kind = CHANGE_EVENTS, OF(v), .data = buf_view(&data)});
    buf_free(&data);
    return a;
}

struct store_answer rate(const struct visitor *v, int32_t score, const char *comment)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_RATING,
                                                  OF(v),
                                                  .score = score,
                                                  .text = str_of(comment == NULL ? "" : comment),
                                                  .fields = comment != NULL});
}

struct store_answer claim(uint64_t key, const struct visitor *v, struct str name)
{
    return kit_apply(&kit, &(struct store_change){.kind = CHANGE_CONVERSATION_SET,
                                                  .workspace = workspace,
                                                  .id = key,
                                                  .conversation = v->conversation,
                                                  .name = name,
                                                  .fields = CONVERSATION_SET_CLAIMED});
}
