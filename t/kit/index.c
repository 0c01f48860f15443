#include "t/kit/index.h"

struct store *index_store(const struct server *server, enum store_mode mode)
{
    struct store *s;
    char why[512];
    const struct store_options options = {.dir = server->data, .mode = mode};
    ck_assert_msg(store_open(&options, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    return s;
}

static void found_workspace(void *arg, enum store_status status, const struct store_workspace *w)
{
    *(uint64_t *)arg = status == STORE_OK ? w->id : 0;
}

static void apply(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    store_apply(t, c, 1777986000000, answer);
    ck_assert_uint_eq(answer->status, STORE_OK);
}

void index_fill(const struct server *server, const char *name, unsigned from, unsigned count)
{
    struct store_txn *t;
    struct store_answer answer;
    uint64_t workspace = 0;
    struct store *s = index_store(server, STORE_WRITE);
    store_workspace_find(s, str_of(name), found_workspace, &workspace);
    store_read_end(s);
    ck_assert_int_eq(store_begin(s, &t), STORE_OK);
    for (unsigned i = from; i < from + count; i++) {
        struct store_change c = {.kind = CHANGE_REPORT_CREATE,
                                 .workspace = workspace,
                                 .url = str_of(text("https://page-%u.example/%u", i, i % 97)),
                                 .name = str_of(i % 2 ? "odd" : "even"),
                                 .code = 201};
        apply(t, &c, &answer);
        c = (struct store_change){.kind = CHANGE_REPORT_FINISH,
                                  .id = answer.id,
                                  .attempt = 1,
                                  .status = i % 3 == 0 ? REPORT_DONE : REPORT_FAILED,
                                  .score = (int)(i % 101),
                                  .result = RESULT_GOOD,
                                  .results = STR("{}"),
                                  .error_code = i % 3 == 0 ? STR("") : STR("dns_failed"),
                                  .error_message = i % 3 == 0 ? STR("") : STR("No such host.")};
        apply(t, &c, &answer);
    }
    ck_assert_int_eq(store_commit(t), STORE_OK);
    store_close(s);
}
