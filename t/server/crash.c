/*
 * kill -9 of any process at any moment under load, many times: acknowledged changes are stored,
 * each requested change is applied once, and no repair is needed. ASSAY_CRASH_SECONDS sets the
 * duration, ASSAY_CRASH_SEED the order.
 */
#include "t/kit/harness.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum {
    CLIENTS = 6,
    RECORDS_MAX = 4000,
    SECONDS = 18, /* of load, and until there were so many kills and answers */
    KILLS_MIN = 11,
    ANSWERS_MIN = 101,
    PATIENCE_MS = 30000,
    STANDSTILL_MS = 20000, /* without a report graded: a job was lost */
};

/* What a client knows of a record it created. Only this client changes it. */
struct record {
    int64_t id;
    int privacy; /* -1: deleted */
    bool own;    /* in the client's own project */
};

struct tester {
    pthread_t thread;
    unsigned number, made, retries, unknown;
    uint64_t random;
    struct record records[RECORDS_MAX];
    size_t count;
    char *failure;
};

static struct origin *origin;
static struct server *server;
static struct tester testers[CLIENTS];
static atomic_bool load_ends;
static atomic_uint acknowledged;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);
    return value && *value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

/*
 * Retry until the answer is certain: no answer and 5xx prove nothing. Status 0 when the time is
 * over.
 */
static struct response *ask(struct tester *t, const struct call *call, bool *repeated)
{
    struct call patient = *call;
    patient.may_fail = true;
    patient.timeout_ms = 5000;
    *repeated = false;
    for (int64_t deadline = now_ms() + PATIENCE_MS;;) {
        struct response *r = http_call(server, &patient);
        if ((r->status > 0 && r->status < 500) || now_ms() > deadline)
            return r;
        response_free(r);
        *repeated = true;
        t->retries++;
        poll(NULL, 0, 5);
    }
}

static void note(struct tester *t, const char *what, const struct response *r)
{
    if (!t->failure)
        t->failure = text("client %u, %s\n%s", t->number, what, response_text(r));
}

/*
 * A report of a unique URL, so that a duplicate shows. With an Idempotency-Key the client retries
 * until answered; without one it sends one request, and no answer means that the result is unknown.
 */
static void create(struct tester *t)
{
    bool repeated = false, own = next_random(&t->random) % 2, keyed = next_random(&t->random) % 2;
    char *body = own ? text("url=http%%3A%%2F%%2F127.0.0.%u%%2F%u", 10 + t->number, t->made)
                     : text("url=http%%3A%%2F%%2F127.0.0.1%%3A%u%%2Fgood%%3Fc%%3D%u-%u",
                            origin_port(origin), t->number, t->made);
    char *key = text("Idempotency-Key: c-%u-%u", t->number, t->made++);
    struct call call = {.method = "POST",
                        .path = "/api/v1/reports",
                        .body = body,
                        .headers = {"Prefer: respond-async", keyed ? key : NULL},
                        .may_fail = true,
                        .timeout_ms = PATIENCE_MS};
    struct response *r = keyed ? ask(t, &call, &repeated) : http_call(server, &call);
    if (r->status == 202 && r->json)
        t->records[t->count++] = (struct record){int_at(r, "data.id"), 0, own};
    else if (!keyed && (r->status == 0 || r->status >= 500))
        t->unknown++;
    else
        note(t, "create", r);
    response_free(r);
    free(body);
    free(key);
}

static void update(struct tester *t, struct record *record)
{
    bool repeated;
    char *path = report_path(record->id);
    int privacy = (int)(next_random(&t->random) % 2);
    struct response *r = ask(
        t,
        &(struct call){.method = "PUT", .path = path, .body = privacy ? "privacy=1" : "privacy=0"},
        &repeated);
    if (r->status == 200)
        record->privacy = privacy;
    else
        note(t, "update", r);
    response_free(r);
    free(path);
}

static void delete (struct tester *t, struct record *record)
{
    bool repeated;
    char *path = report_path(record->id);
    struct response *r = ask(t, &(struct call){.method = "DELETE", .path = path}, &repeated);
    if (r->status == 200 || (r->status == 404 && repeated))
        record->privacy = -1;
    else
        note(t, "delete", r);
    response_free(r);
    free(path);
}

/* The whole project of the client, if there is one. */
static void delete_project(struct tester *t)
{
    bool repeated, any = false;
    char *path = text("/api/v1/projects/127.0.0.%u", 10 + t->number);
    for (size_t i = 0; i < t->count; i++)
        any |= t->records[i].own && t->records[i].privacy >= 0;
    struct response *r = ask(t, &(struct call){.method = "DELETE", .path = path}, &repeated);
    if (r->status != 200 && !(r->status == 404 && (repeated || !any)))
        note(t, "delete project", r);
    for (size_t i = 0; i < t->count; i++)
        if (t->records[i].own)
            t->records[i].privacy = -1;
    response_free(r);
    free(path);
}

static void *tester_run(void *arg)
{
    struct tester *t = arg;
    while (!load_ends && !t->failure && t->count < RECORDS_MAX) {
        uint64_t choice = next_random(&t->random);
        struct record *record = t->count ? &t->records[(choice >> 8) % t->count] : NULL;
        if (choice % 64 == 63)
            delete_project(t);
        else if (choice % 4 < 2 || !record || record->privacy < 0)
            create(t);
        else if (choice % 4 == 2)
            update(t, record);
        else
            delete (t, record);
        acknowledged++;
    }
    return NULL;
}

/* ---- the killer ---- */

static void restart(void)
{
    pid_t pids[32];
    size_t count = server_children(server, pids, COUNT(pids));
    char *address = text("listen.0.address=%s", server->address);
    server_signal(server, SIGKILL);
    ck_assert_int_eq(server_wait(server, PATIENCE_MS), 128 + SIGKILL);
    for (size_t i = 0; i < count; i++)
        for (int64_t deadline = now_ms() + PATIENCE_MS; process_alive(pids[i]);) {
            ck_assert_msg(now_ms() < deadline, "a process survives its master");
            poll(NULL, 0, 1);
        }
    for (int tries = 0; tries < 50; tries++) {
        server_spawn(server, "--set", address, NULL);
        if (server_ready(server, PATIENCE_MS))
            break;
        /* the kernel gave this port to a client's own end for a moment */
        ck_assert_msg(server_wait(server, 5000) == 2 &&
                          strstr(server_log(server), "the address is in use by "),
                      "not ready after a kill -9 of everything\n%s", server_log(server));
        poll(NULL, 0, 100);
    }
    ck_assert_msg(server->pid > 0, "its port stays in use\n%s", server_log(server));
    free(address);
}

static void kill_one(uint64_t *random)
{
    pid_t pids[32];
    size_t count = server_children(server, pids, COUNT(pids));
    pid_t writer = server_process(server, "assayd: writer");
    uint64_t choice = next_random(random) % 10;
    if (choice == 0)
        restart();
    else if (choice < 5 && writer) /* the most important process is killed most often */
        kill(writer, SIGKILL);
    else if (count)
        kill(pids[next_random(random) % (count < COUNT(pids) ? count : COUNT(pids))], SIGKILL);
}

/* Between two kills: some answers, or some time without any. */
static void let_work(uint64_t *random)
{
    unsigned goal = acknowledged + 1 + (unsigned)(next_random(random) % 60);
    for (int64_t deadline = now_ms() + 1500; acknowledged < goal && now_ms() < deadline;)
        poll(NULL, 0, 1);
}

/* ---- the check ---- */

/* A graded report has the row of its grading. */
static void expect_history(const struct response *report)
{
    struct response *r =
        http_get(server, text("%s/history", report_path(int_at(report, "data.id"))));
    expect_status(r, 200);
    expect_int(r, "data.0.score", int_at(report, "data.score"));
    expect_str(r, "data.0.generated_at", str_at(report, "data.generated_at"));
    expect_int(r, "data.0.http_status", 200);
    response_free(r);
}

static int64_t expect_records(const struct tester *t, int64_t *in_common)
{
    int64_t alive = 0;
    for (size_t i = 0; i < t->count; i++) {
        struct response *r = http_get(server, report_path(t->records[i].id));
        expect_status(r, t->records[i].privacy < 0 ? 404 : 200);
        if (r->status == 200) {
            expect_int(r, "data.privacy", t->records[i].privacy);
            alive++;
            *in_common += !t->records[i].own;
            if (strcmp(str_at(r, "data.status"), "done") == 0)
                expect_history(r);
        }
        response_free(r);
    }
    return alive;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Walk the whole list: every URL is unique, and the total equals the number of items. */
static int64_t expect_unique_urls(void)
{
    char **urls = NULL;
    size_t count = 0;
    int64_t total = 0;
    for (int page = 1; page == 1 || (int64_t)count < total; page++) {
        struct response *r =
            http_get(server, text("/api/v1/reports?per_page=100&sort=asc&page=%d", page));
        size_t shown = len_at(r, "data");
        total = int_at(r, "meta.total");
        expect(r, shown > 0 || total == 0);
        urls = realloc(urls, (count + shown + 1) * sizeof(*urls));
        ck_assert_ptr_nonnull(urls);
        for (size_t i = 0; i < shown; i++)
            urls[count++] = text("%s", str_at(r, text("data.%zu.url", i)));
        response_free(r);
    }
    ck_assert_int_eq((int64_t)count, total);
    qsort(urls, count, sizeof(*urls), by_text);
    for (size_t i = 1; i < count; i++)
        ck_assert_msg(strcmp(urls[i - 1], urls[i]) != 0, "%s was created twice", urls[i]);
    return total;
}

static int64_t pending(void)
{
    struct response *r = http_get(server, "/api/v1/reports?status=pending&per_page=10");
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

/* How long the queue takes depends on the machine. A lost job shows as a standstill. */
static void expect_all_graded(unsigned seed)
{
    int64_t left = pending(), deadline = now_ms() + STANDSTILL_MS;
    while (left > 0) {
        poll(NULL, 0, 50);
        int64_t found = pending();
        if (found < left)
            deadline = now_ms() + STANDSTILL_MS;
        left = found < left ? found : left;
        ck_assert_msg(now_ms() < deadline, "seed %u: jobs were lost: %lld reports stay pending\n%s",
                      seed, (long long)left, server_log(server));
    }
}

static bool killed_enough(unsigned kills)
{
    return kills >= KILLS_MIN && acknowledged >= ANSWERS_MIN;
}

/* A slow machine gets up to ${PATIENCE_MS} more for enough kills and answers. */
static unsigned kill_under_load(uint64_t *random)
{
    int64_t deadline = now_ms() + 1000 * (int64_t)setting("ASSAY_CRASH_SECONDS", SECONDS);
    unsigned kills = 0;
    while (now_ms() < deadline + (killed_enough(kills) ? 0 : PATIENCE_MS)) {
        let_work(random);
        kill_one(random);
        kills++;
    }
    return kills;
}

START_TEST(no_acknowledged_change_is_lost_or_applied_twice)
{
    unsigned seed = setting("ASSAY_CRASH_SEED", (unsigned)getpid()), retries = 0, unknown = 0;
    uint64_t random = 88172645463325252u ^ ((uint64_t)seed << 20);
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .workers = 3});
    server_start(server);
    for (unsigned i = 0; i < CLIENTS; i++) {
        testers[i] = (struct tester){.number = i, .random = random + 7919 * (i + 1)};
        ck_assert_int_eq(pthread_create(&testers[i].thread, NULL, tester_run, &testers[i]), 0);
    }
    unsigned kills = kill_under_load(&random);
    load_ends = true;
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(testers[i].thread, NULL);
        ck_assert_msg(!testers[i].failure, "seed %u, after %u kills: %s\n%s", seed, kills,
                      testers[i].failure, server_log(server));
        retries += testers[i].retries;
        unknown += testers[i].unknown;
    }
    fprintf(stderr, "seed %u: %u kills, %u answers, %u retries, %u unknown\n", seed, kills,
            (unsigned)acknowledged, retries, unknown);
    ck_assert_msg(killed_enough(kills), "seed %u: too few kills or answers", seed);
    expect_all_graded(seed);

    int64_t alive = 0, in_common = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        alive += expect_records(&testers[i], &in_common);
    int64_t total = expect_unique_urls();
    ck_assert_msg(alive <= total && total <= alive + unknown, "%lld records expected, %lld listed",
                  (long long)alive, (long long)total);
    struct response *project = http_get(server, "/api/v1/projects/127.0.0.1");
    expect(project, in_common <= int_at(project, "data.reports_count") &&
                        int_at(project, "data.reports_count") <= in_common + unknown);
    expect_int(http_get(server, "/api/v1/reports?project=127.0.0.1"), "meta.total",
               int_at(project, "data.reports_count"));
    struct run online = assay(server, "check", NULL);
    ck_assert_msg(online.status == 0, "seed %u: check, online: %s%s", seed, online.out, online.err);
    server_stop(server);
    struct run offline = assay(server, "check", NULL);
    ck_assert_msg(offline.status == 0, "seed %u: check, at rest: %s%s", seed, offline.out,
                  offline.err);
    server_free(server);
    origin_stop(origin);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crash");
    TCase *tcase = harness_case(suite, "a server");
    tcase_set_timeout(tcase, 300 + setting("ASSAY_CRASH_SECONDS", SECONDS));
    tcase_add_test(tcase, no_acknowledged_change_is_lost_or_applied_twice);
    return harness_main(suite);
}
