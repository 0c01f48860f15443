/*
 * All threads of one worker and of the writer under load at once: lists, searches, reads, visitors'
 * questions, batches of a shop, and creates and deletes in a workspace whose index is merged. Reads
 * get the same answers as from an idle server.
 *
 * ThreadSanitizer checks shared data. ASSAY_LOAD_S is the duration in seconds, 3 by default.
 */
#include "t/kit/index.h"
#include "t/kit/sync.h"

#include <pthread.h>
#include <stdatomic.h>

enum { REPORTS = 60, COUPONS = 100, PRODUCTS_OF_A_COUPON = 300 };

static struct origin *origin;
static char *key;
static atomic_bool load_ends;

/* One caller: it repeats its request on one connection. */
struct caller {
    const char *path;
    const char *body;  /* of a POST; NULL: a GET with the API key */
    const char *other; /* the body of every second POST; NULL: the same */
    const char *credential;
    const char *expected; /* the body of the answer; NULL: any */
    pthread_t thread;
    unsigned done;
    char *failure;
};

static void ask(struct raw *raw, const struct caller *c)
{
    const char *body = c->other != NULL && c->done % 2 == 1 ? c->other : c->body;
    if (c->body == NULL)
        raw_get(raw, c->credential != NULL ? c->credential : key, c->path);
    else
        raw_text(raw,
                 "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 c->path, c->credential, strlen(body), body);
}

static void compare(struct caller *c, const struct response *r)
{
    if (r->status != 200)
        c->failure = text("%s: %s", c->path, response_text(r));
    else if (c->expected != NULL && strcmp(r->body, c->expected) != 0)
        c->failure = text("%s: expected\n%s\nnot\n%s", c->path, c->expected, r->body);
}

static void *call_on(void *arg)
{
    struct caller *c = arg;
    struct raw *raw = raw_open(server);
    while (!load_ends && c->failure == NULL) {
        ask(raw, c);
        struct response *r = raw_response(raw, false, 20000);
        compare(c, r);
        c->done++;
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

/* ---- a workspace whose index merges ---- */

enum { BUSY_REPORTS = 4200, CREATES_A_DELETE = 400 };

static const char *busy_key;
static char *busy_failure;
static atomic_uint busy_creates;

static bool busy_send(struct raw *raw, const char *request)
{
    raw_text(raw, "%s", request);
    struct response *r = raw_response(raw, false, 20000);
    bool good = r->status / 100 == 2 || r->status == 404 || r->status == 503;
    if (!good)
        busy_failure = text("%s: %s", request, response_text(r));
    response_free(r);
    return good;
}

static const char *busy_create(unsigned number)
{
    const char *body = text("url=http://site-%u.invalid/%u", number % 40, number);
    return text("POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                "Prefer: respond-async\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                "Content-Length: %zu\r\n\r\n%s",
                busy_key, strlen(body), body);
}

static bool enough_creates(void *unused)
{
    (void)unused;
    return busy_creates >= 100 || busy_failure != NULL;
}

/* The tail grows until it is merged, repeatedly; sometimes a project is purged. */
static void *be_busy(void *arg)
{
    struct raw *raw = raw_open(server);
    unsigned deletes = 0;
    bool good = true;
    while (!load_ends && good) {
        good = busy_send(raw, busy_create(busy_creates++));
        if (good && busy_creates % CREATES_A_DELETE == 0)
            good = busy_send(raw, text("DELETE /api/v1/projects/%u HTTP/1.1\r\nHost: x\r\n"
                                       "Authorization: Bearer %s\r\n\r\n",
                                       1 + deletes++ % 60, busy_key));
    }
    raw_close(raw);
    return arg;
}

static const char *coupons(const char *zone, unsigned count, unsigned products)
{
    char *list = text("1"), *items = text("%s", "");
    for (unsigned i = 2; i <= products; i++)
        list = text("%s,%u", list, i);
    for (unsigned i = 0; i < count; i++)
        items = text("%s%s{\"code\":\"C%u\",\"discount\":\"5\",\"expires_at\":\"2027-05-0%u\","
                     "\"product_ids\":[%s]}",
                     items, i == 0 ? "" : ",", i, 1 + i % 9, list);
    return envelope(agent_new(), text(",\"timezone\":\"%s\"", zone), "coupons",
                    text("[%s]", items));
}

/* Documents whose texts change with every second batch, so that the indexer has work. */
static const char *products(const char *of, const char *word)
{
    char *items = text("%s", "");
    for (unsigned i = 1; i <= 100; i++)
        items = text("%s%s%s", items, i == 1 ? "" : ",", product(i, text("%s %u", word, i), ""));
    return envelope(of, "", "products", text("[%s]", items));
}

static const char *visitor_of(const char *of)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {"Content-Type: application/json"},
                              .body = text("{\"agent_id\":\"%s\"}", of));
    expect_status(r, 200);
    return str_at(r, "data.jwt");
}

static const char *const reads[] = {
    "/api/v1/reports?per_page=50&sort_by=score", "/api/v1/reports?search=a&sort_by=url&per_page=25",
    "/api/v1/reports?search=%C3%A9&per_page=10", "/api/v1/reports?search=%C3%9F&per_page=10&page=2",
    "/api/v1/projects?search=1&per_page=10",     "/api/v1/reports?include=results&per_page=10",
    "/api/v1/conversations?search=xylophone",    "/api/v1/reports/4201", /* after the busy ones */
};

static unsigned load_seconds(void)
{
    const char *seconds = getenv("ASSAY_LOAD_S");
    return seconds == NULL ? 3 : (unsigned)atoi(seconds);
}

START_TEST(a_worker_with_busy_threads_answers_correctly)
{
    enum { READS = COUNT(reads), OTHERS = 9, ALL = READS + OTHERS };
    static const char *const pages[] = {"/good", "/decent", "/bad"};
    struct caller callers[ALL] = {{0}};
    int64_t ids[REPORTS];
    for (int i = 0; i < REPORTS; i++)
        ids[i] =
            report_queued(server, origin_url(origin, text("%s?n=%d/%%C3%%A9", pages[i % 3], i)));
    for (int i = 0; i < REPORTS; i++)
        report_wait(server, ids[i]);
    for (size_t i = 0; i < READS; i++) {
        callers[i].path = reads[i];
        callers[i].expected = http(server, .path = reads[i], .key = key)->body;
    }
    const char *shop = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop",
                                "--origin", "*", NULL);
    const struct caller others[OTHERS] = {
        {.path = "/v1/wp/coupons/sync",
         .body = coupons("Asia/Tokyo", COUPONS, PRODUCTS_OF_A_COUPON),
         .credential = token},
        {.path = "/v1/wp/coupons/sync",
         .body = coupons("America/New_York", 3, 1),
         .credential = token},
        {.path = "/v1/wp/coupons/sync",
         .body = coupons("Europe/Berlin", 1, 1),
         .credential = token},
        {.path = "/v1/wp/products/sync",
         .body = products(shop, "kettle"),
         .other = products(shop, "teapot"),
         .credential = token},
        {.path = "/api/v1/widget/messages",
         .body = "{\"message\":\"Have you got kettle 77?\"}",
         .other = "{\"message\":\"the teapot 42\"}",
         .credential = visitor_of(shop)},
        {.path = "/api/v1/reports?sort_by=url&per_page=25", .credential = busy_key},
        {.path = "/api/v1/reports?search=page-4&per_page=25", .credential = busy_key},
        {.path = "/api/v1/conversations?per_page=100", .credential = key},
        {.path = "/v1/wp/status", .credential = token},
    };
    pthread_t busy;
    memcpy(&callers[READS], others, sizeof(others));
    for (size_t i = 0; i < ALL; i++)
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_on, &callers[i]), 0);
    ck_assert_int_eq(pthread_create(&busy, NULL, be_busy, NULL), 0);
    sleep(load_seconds());
    ck_assert(wait_until(enough_creates, NULL, 30000));
    load_ends = true;
    pthread_join(busy, NULL);
    ck_assert_msg(busy_failure == NULL, "%s", busy_failure);
    for (size_t i = 0; i < ALL; i++)
        pthread_join(callers[i].thread, NULL);
    for (size_t i = 0; i < ALL; i++)
        ck_assert_msg(callers[i].failure == NULL && callers[i].done >= 3, "%s: %u requests, %s",
                      callers[i].path, callers[i].done,
                      callers[i].failure != NULL ? callers[i].failure : "too few");
}
END_TEST

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){
        .workers = 1,
        .origin = origin,
        .yaml = "limits: { limiters: {"
                " bulk-sync: { windows: [ { limit: 100000, seconds: 60, key: token } ] },"
                " widget-session: { windows: [ { limit: 8000000, seconds: 60, key: jwt } ] } } }\n"
                "query_threads: 4\n"});
    server_start(server);
    assay_ok(server, "workspace", "create", "busy", NULL);
    server_stop(server);
    index_fill(server, "busy", 0, BUSY_REPORTS);
    server_start(server);
    busy_key = assay_ok(server, "key", "create", "--workspace", "busy", "--name", "busy", NULL);
    sync_make();
    key =
        assay_ok(server, "key", "create", "--workspace", "main", "--name", "reader", "--scope",
                 "reports:read", "--scope", "projects:read", "--scope", "conversations:read", NULL);
}

static void teardown(void)
{
    server_free(server);
}

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tcase = harness_case(suite, "threads");
    tcase_set_timeout(tcase, 60 + load_seconds());
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_worker_with_busy_threads_answers_correctly);
    return harness_main(suite);
}
