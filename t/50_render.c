/*
 * What brings every record up to date in the background while the writer is killed over it, and is seen in the log and in `assay stats`. An
 * update that renders records anew, by a server whose renderer is the next version's (t/newer_render.c): every answer is the new one's from
 * the first moment. New bounds of results, by a reload: each report has its result by the old or by the new ones, and its list knows.
 */
#include "harness.h"

#include "core/api/render.h"
#include "store/change.h"

#include <signal.h>

enum { REPORTS = 20000, SLICE = 1000, KILLS = 3 };

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){0});
}

static void teardown(void)
{
    server_discard(server);
}

static void stop(void)
{
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}

static void add_done(struct store_txn *t, unsigned number)
{
    struct store_answer answer;
    const struct store_change create = {.kind = CHANGE_REPORT_CREATE,
                                        .workspace = 1,
                                        .url = str_of(text("https://site-%u.test/%u", number % 50, number)),
                                        .name = str_of(text("site-%u.test", number % 50)),
                                        .code = 201};
    store_apply(t, &create, 1000 + number, &answer);
    int score = (int)(number % 101);
    const struct store_change done = {.kind = CHANGE_REPORT_FINISH,
                                      .id = answer.id,
                                      .attempt = 1,
                                      .status = REPORT_DONE,
                                      .score = score,
                                      .result = score >= 80   ? RESULT_GOOD
                                                : score >= 50 ? RESULT_DECENT
                                                              : RESULT_BAD,
                                      .results = STR("{}")};
    store_apply(t, &done, 1000 + number, &answer);
    ck_assert_uint_eq(answer.status, STORE_OK);
}

/* as a server of this version left them */
static void fill(void)
{
    char why[512];
    struct store *s;
    const struct store_options options = {
        .dir = server->data, .map_size = (uint64_t)64 << 30, .max_readers = 64, .mode = STORE_WRITE, .renderer = &render_records};
    ck_assert_msg(store_open(&options, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    for (unsigned i = 0; i < REPORTS; i += SLICE) {
        struct store_txn *t;
        ck_assert_int_eq(store_begin(s, &t), STORE_OK);
        for (unsigned k = i; k < i + SLICE; k++)
            add_done(t, k);
        ck_assert_int_eq(store_commit(t), STORE_OK);
    }
    store_close(s);
}

static unsigned times(const char *body, const char *words)
{
    unsigned n = 0;
    for (const char *at = strstr(body, words); at != NULL; at = strstr(at + 1, words))
        n++;
    return n;
}

static void expect_all_by(const char *name, const char *other, const char *tag_ends, unsigned turn)
{
    unsigned id = turn * 997 % REPORTS + 1;
    struct response *r = http_get(server, text("/api/v1/reports/%u", id));
    expect_status(r, 200);
    expect(r, times(r->body, name) == 1 && times(r->body, other) == 0);
    expect(r, strstr(header(r, "ETag"), tag_ends) != NULL);
    response_free(r);
    r = http_get(server, text("/api/v1/reports?per_page=100&sort_by=%s&page=%u", turn % 2 ? "score" : "url", turn % 200 + 1));
    expect_status(r, 200);
    expect_int(r, "meta.total", REPORTS);
    expect(r, times(r->body, name) == 100 && times(r->body, other) == 0);
    response_free(r);
}

/* ---- a visitor's conversation ---- */

#define JSON "Content-Type: application/json"

static char *operators;
static const char *jwt, *conversation;

static void talk(void)
{
    operators = key_new(server, "main", "conversations:read", NULL);
    char *agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin", "*", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .headers = {JSON},
                              .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    jwt = str_at(r, "data.jwt");
    conversation = str_at(r, "data.conversation_id");
    for (int i = 0; i < 10; i++)
        expect_status(http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = jwt, .headers = {JSON},
                           .body = text("{\"message\":\"m%d\",\"page_context\":{\"content\":1}}", i)),
                      200);
}

/* to both sides */
static void expect_talk_anew(void)
{
    struct response *both[] = {
        http(server, .path = "/api/v1/widget/conversation/messages?limit=100", .key = jwt),
        http(server, .path = text("/api/v1/conversations/%s?limit=100", conversation), .key = operators),
    };
    for (size_t i = 0; i < COUNT(both); i++) {
        struct response *r = both[i];
        expect_status(r, 200);
        expect(r, times(r->body, "\"CONTENT\":") == 20 && times(r->body, "\"page_context\":{\"content\":1}") == 10);
        expect(r, times(r->body, "\"content\":") == 10 && strstr(header(r, "ETag"), "-2\"") != NULL);
        response_free(r);
    }
}

/* What the writer has left to do, as `assay stats` tells; 0 while it is being replaced. */
static uint64_t upkeep_left(void)
{
    uint64_t left = 0;
    struct json_object *all = assay_list(server, "stats", NULL);
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        struct json_object *row = json_object_array_get_idx(all, i);
        if (strcmp(json_object_get_string(json_object_object_get(row, "process")), "writer") == 0)
            left = json_object_get_uint64(json_object_object_get(row, "upkeep"));
    }
    return left;
}

static size_t said_before; /* bytes of the log that do not count */

START_TEST(a_new_renderer_answers_at_once_and_the_store_follows_through_kills_of_the_writer)
{
    unsigned turn = 0, kills = 0;
    uint64_t most_left = 0;
    server_start(server);
    talk();
    server_stop(server);
    fill();
    ck_assert_int_eq(setenv("ASSAYD", "./t/newer_assayd", 1), 0);
    server_spawn(server, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    for (int64_t deadline = now_ms() + 60000; !server_says(server, "rendering reports: done", said_before, 0) && now_ms() < deadline; turn++) {
        pid_t writer = server_process(server, "assayd: writer");
        uint64_t left = upkeep_left();
        most_left = left > most_left ? left : most_left;
        if (writer != 0 && kills < KILLS && left > 0) /* one that was killed after the last record had nothing to say of its end */
            kills += kill(writer, SIGKILL) == 0;
        expect_all_by("\"URL\":", "\"url\":", "-2\"", turn);
        expect_talk_anew();
    }
    ck_assert_uint_gt(most_left, 0);
    ck_assert_uint_le(most_left, REPORTS);
    ck_assert_msg(server_says(server, "rendering reports: done", said_before, 0) && server_says(server, text(" of %d\"", REPORTS), said_before, 0), "%s", server_log(server));
    ck_assert_uint_ge(kills, 1);
    for (unsigned i = 0; i < 20; i++)
        expect_all_by("\"URL\":", "\"url\":", "-2\"", i * 31);
    expect_talk_anew();
    assay_ok(server, "check", NULL);
    stop();
    ck_assert_int_eq(unsetenv("ASSAYD"), 0); /* the version before comes back */
    server_spawn(server, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    for (unsigned i = 0; i < 20; i++)
        expect_all_by("\"url\":", "\"URL\":", "-1\"", i * 31);
    stop();
}
END_TEST

static int64_t total_of(const char *result)
{
    struct response *r = http_get(server, text("/api/v1/reports?result=%s", result));
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

/* Columns: result, how many of the reports have it by the bounds of before (80, 50) and by the new ones (90, 10). */
static const struct {
    const char *result;
    unsigned from, to; /* scores of 0…100 that are in both, as many of each */
} bounds[] = {{"good", 80, 90}, {"decent", 50, 10}, {"bad", 0, 0}};

static unsigned by_bounds(size_t i, bool now)
{
    unsigned low = now ? bounds[i].to : bounds[i].from, high = i == 0 ? 101 : now ? bounds[i - 1].to : bounds[i - 1].from, n = 0;
    for (unsigned number = 0; number < REPORTS; number++)
        n += number % 101 >= low && number % 101 < high;
    return n;
}

START_TEST(new_bounds_reach_every_report_in_the_background_through_kills_of_the_writer)
{
    unsigned kills = 0;
    uint64_t most_left = 0;
    server_start(server);
    server_stop(server);
    fill();
    server_start(server);
    for (size_t i = 0; i < COUNT(bounds); i++)
        ck_assert_int_eq(total_of(bounds[i].result), by_bounds(i, false));
    said_before = strlen(server_log(server));
    server_configure(server, "reports: { good: 90, decent: 10 }");
    server_signal(server, SIGHUP);
    for (int64_t deadline = now_ms() + 60000; !server_says(server, "rating reports: done", said_before, 0) && now_ms() < deadline;) {
        uint64_t left = upkeep_left();
        most_left = left > most_left ? left : most_left;
        pid_t writer = server_process(server, "assayd: writer");
        if (writer != 0 && kills < KILLS && left > 0)
            kills += kill(writer, SIGKILL) == 0;
        int64_t good = total_of("good");
        ck_assert_int_le(good, by_bounds(0, false));
        ck_assert_int_ge(good, by_bounds(0, true));
    }
    ck_assert_msg(server_says(server, "rating reports: done", said_before, 0) && server_says(server, text(" of %d\"", REPORTS), said_before, 0), "%s", server_log(server));
    ck_assert_uint_ge(kills, 1);
    ck_assert_uint_gt(most_left, 0);
    ck_assert_uint_le(most_left, REPORTS);
    for (size_t i = 0; i < COUNT(bounds); i++)
        ck_assert_int_eq(total_of(bounds[i].result), by_bounds(i, true));
    assay_ok(server, "check", NULL);
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("render");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_new_renderer_answers_at_once_and_the_store_follows_through_kills_of_the_writer);
    tcase_add_test(tcase, new_bounds_reach_every_report_in_the_background_through_kills_of_the_writer);
    return harness_main(suite);
}
