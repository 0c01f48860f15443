/*
 * A reload changes the bounds of results while the writer is killed: each report has its result by
 * the old or the new bounds, and its list agrees. The log and `assay stats` show the progress.
 */
#include "t/kit/harness.h"

#include "store/store.h"

#include <signal.h>

enum { REPORTS = 80000, BATCH = 1000, KILLS = 3 };

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
    const struct store_change create = {
        .kind = CHANGE_REPORT_CREATE,
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
    const struct store_options options = {.dir = server->data,
                                          .map_size = (uint64_t)64 << 30,
                                          .max_readers = 64,
                                          .mode = STORE_WRITE};
    ck_assert_msg(store_open(&options, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    for (unsigned i = 0; i < REPORTS; i += BATCH) {
        struct store_txn *t;
        ck_assert_int_eq(store_begin(s, &t), STORE_OK);
        for (unsigned k = i; k < i + BATCH; k++)
            add_done(t, k);
        ck_assert_int_eq(store_commit(t), STORE_OK);
    }
    store_close(s);
}

/* The writer's remaining work, as `assay stats` reports; 0 while it is being replaced. */
static uint64_t maintenance_left(void)
{
    uint64_t left = 0;
    struct json_object *all = assay_list(server, "stats", NULL);
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        struct json_object *row = json_object_array_get_idx(all, i);
        if (strcmp(json_object_get_string(json_object_object_get(row, "process")), "writer") == 0)
            left = json_object_get_uint64(json_object_object_get(row, "maintenance"));
    }
    return left;
}

static size_t logged_before; /* bytes of the log that are ignored */

static int64_t total_of(const char *result)
{
    struct response *r = http_get(server, text("/api/v1/reports?result=%s", result));
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

/*
 * Columns: result; how many reports have it with the old bounds (80, 50) and with the new ones (90,
 * 10).
 */
static const struct {
    const char *result;
    unsigned from, to; /* scores 0 to 100 that are in both, equally often */
} bounds[] = {{"good", 80, 90}, {"decent", 50, 10}, {"bad", 0, 0}};

static unsigned by_bounds(size_t i, bool now)
{
    unsigned low = now ? bounds[i].to : bounds[i].from,
             high = i == 0 ? 101
                    : now  ? bounds[i - 1].to
                           : bounds[i - 1].from,
             n = 0;
    for (unsigned number = 0; number < REPORTS; number++)
        n += number % 101 >= low && number % 101 < high;
    return n;
}

START_TEST(new_bounds_reclassify_every_report_across_writer_crashes)
{
    unsigned kills = 0;
    uint64_t most_left = 0;
    server_start(server);
    server_stop(server);
    fill();
    server_start(server);
    for (size_t i = 0; i < COUNT(bounds); i++)
        ck_assert_int_eq(total_of(bounds[i].result), by_bounds(i, false));
    logged_before = strlen(server_log(server));
    server_configure(server, "reports: { good: 90, decent: 10 }");
    server_signal(server, SIGHUP);
    for (int64_t deadline = now_ms() + 60000;
         !server_says(server, "rating reports: done", logged_before, 0) && now_ms() < deadline;) {
        uint64_t left = maintenance_left();
        most_left = left > most_left ? left : most_left;
        pid_t writer = server_process(server, "assayd: writer");
        if (writer != 0 && kills < KILLS && left > 0)
            kills += kill(writer, SIGKILL) == 0;
        int64_t good = total_of("good");
        ck_assert_int_le(good, by_bounds(0, false));
        ck_assert_int_ge(good, by_bounds(0, true));
    }
    ck_assert_msg(server_says(server, "rating reports: done", logged_before, 0) &&
                      server_says(server, text(" of %d\"", REPORTS), logged_before, 0),
                  "%s", server_log(server));
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
    Suite *suite = suite_create("results_bounds");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, new_bounds_reclassify_every_report_across_writer_crashes);
    return harness_main(suite);
}
