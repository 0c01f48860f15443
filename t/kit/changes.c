#include "t/kit/changes.h"

#include <poll.h>

enum {
    RECORDS_MAX = 4000,
    PATIENCE_MS = 40000,
    ANSWER_MS = 5000,
    STANDSTILL_MS = 20000,
    DELETED_ASKED = 20
};

/* What a client knows of a record it created. Only this client changes it. */
struct record {
    int64_t id;
    int privacy;      /* -1: deleted */
    unsigned project; /* of the client's own projects; 0: the project of all clients */
    bool settled;     /* an unanswered update may still be executed: do not send another one */
};

struct changes_client {
    struct changes *all;
    pthread_t thread;
    unsigned number, made, retries, unknown;
    unsigned project; /* the number of its present one */
    uint64_t random;
    struct record records[RECORDS_MAX];
    size_t count;
    char *failure;
};

uint64_t changes_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

unsigned changes_setting(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);
    return value && *value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

/* ---- one client ---- */

static struct response *ask_once(struct changes_client *t, const struct call *call, int timeout_ms)
{
    struct call patient = *call;
    patient.may_fail = true;
    patient.timeout_ms = timeout_ms;
    return t->all->ask(t->all->arg, t->number, &patient);
}

static bool is_certain(const struct response *r)
{
    return r->status > 0 && r->status < 500;
}

/* Retry until the answer is certain: no answer and 5xx prove nothing. */
static struct response *ask(struct changes_client *t, const struct call *call, bool *repeated)
{
    *repeated = false;
    for (int64_t deadline = now_ms() + PATIENCE_MS;;) {
        struct response *r = ask_once(t, call, ANSWER_MS);
        if (is_certain(r) || now_ms() > deadline)
            return r;
        response_free(r);
        *repeated = true;
        t->retries++;
        poll(NULL, 0, 5);
    }
}

static void note(struct changes_client *t, const char *what, const struct response *r)
{
    if (!t->failure)
        t->failure = text("client %u, %s\n%s", t->number, what, response_text(r));
}

static char *project_name(const struct changes_client *t)
{
    return text("127.%u.%u.%u", 10 + t->number, t->project / 256, t->project % 256);
}

/*
 * A report of a unique URL, so that a duplicate shows. With an Idempotency-Key the client retries
 * until answered; without one it sends one request, and no answer means that the result is unknown.
 */
static void create(struct changes_client *t)
{
    bool repeated = false, own = changes_random(&t->random) % 2,
         keyed = changes_random(&t->random) % 2;
    char *project = project_name(t);
    char *body = own ? text("url=http%%3A%%2F%%2F%s%%2F%u", project, t->made)
                     : text("url=http%%3A%%2F%%2F127.0.0.1%%3A%u%%2Fgood%%3Fc%%3D%u-%u",
                            origin_port(t->all->origin), t->number, t->made);
    char *key = text("Idempotency-Key: c-%u-%u", t->number, t->made++);
    struct call call = {.method = "POST",
                        .path = "/api/v1/reports",
                        .body = body,
                        .headers = {"Prefer: respond-async", keyed ? key : NULL}};
    struct response *r = keyed ? ask(t, &call, &repeated) : ask_once(t, &call, PATIENCE_MS);
    if (r->status == 202 && r->json)
        t->records[t->count++] =
            (struct record){.id = int_at(r, "data.id"), .project = own ? t->project : 0};
    else if (!keyed && !is_certain(r))
        t->unknown++;
    else
        note(t, "create", r);
    response_free(r);
    free(project);
    free(body);
    free(key);
}

static void update(struct changes_client *t, struct record *record)
{
    bool repeated;
    char *path = report_path(record->id);
    int privacy = (int)(changes_random(&t->random) % 2);
    struct response *r = ask(
        t,
        &(struct call){.method = "PUT", .path = path, .body = privacy ? "privacy=1" : "privacy=0"},
        &repeated);
    record->settled |= repeated && t->all->late;
    if (r->status == 200)
        record->privacy = privacy;
    else
        note(t, "update", r);
    response_free(r);
    free(path);
}

static void delete (struct changes_client *t, struct record *record)
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

static void forget_project(struct changes_client *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->records[i].project == t->project)
            t->records[i].privacy = -1;
}

/* The whole project of the client, if there is one. */
static void delete_project(struct changes_client *t)
{
    bool repeated, any = false;
    char *name = project_name(t), *path = text("/api/v1/projects/%s", name);
    for (size_t i = 0; i < t->count; i++)
        any |= t->records[i].project == t->project && t->records[i].privacy >= 0;
    struct response *r = ask(t, &(struct call){.method = "DELETE", .path = path}, &repeated);
    if (r->status != 200 && !(r->status == 404 && (repeated || !any)))
        note(t, "delete project", r);
    forget_project(t);
    if (repeated && t->all->late)
        t->project++;
    response_free(r);
    free(path);
    free(name);
}

static void *client_run(void *arg)
{
    struct changes_client *t = arg;
    while (!t->all->ends && !t->failure && t->count < RECORDS_MAX) {
        uint64_t choice = changes_random(&t->random);
        struct record *record = t->count ? &t->records[(choice >> 8) % t->count] : NULL;
        if (choice % 64 == 63)
            delete_project(t);
        else if (choice % 4 < 2 || !record || record->privacy < 0)
            create(t);
        else if (choice % 4 == 3)
            delete (t, record);
        else if (!record->settled)
            update(t, record);
        t->all->acknowledged++;
        poll(NULL, 0, (int)t->all->pause_ms);
    }
    return NULL;
}

/* ---- all clients ---- */

void changes_start(struct changes *c, uint64_t random)
{
    c->clients = calloc(CHANGES_CLIENTS, sizeof(*c->clients));
    ck_assert_ptr_nonnull(c->clients);
    for (unsigned i = 0; i < CHANGES_CLIENTS; i++) {
        struct changes_client *t = &c->clients[i];
        t->all = c;
        t->number = i;
        t->project = 1;
        t->random = random + 7919 * (i + 1);
        ck_assert_int_eq(pthread_create(&t->thread, NULL, client_run, t), 0);
    }
}

void changes_end(struct changes *c, const char *what)
{
    unsigned retries = 0, unknown = 0;
    c->ends = true;
    for (unsigned i = 0; i < CHANGES_CLIENTS; i++)
        pthread_join(c->clients[i].thread, NULL);
    for (unsigned i = 0; i < CHANGES_CLIENTS; i++) {
        struct changes_client *t = &c->clients[i];
        ck_assert_msg(!t->failure, "%s: %s", what, t->failure);
        retries += t->retries;
        unknown += t->unknown;
    }
    fprintf(stderr, "%s: %u answers, %u retries, %u unknown\n", what, (unsigned)c->acknowledged,
            retries, unknown);
}

void changes_let_work(struct changes *c, uint64_t *random)
{
    unsigned goal = c->acknowledged + 1 + (unsigned)(changes_random(random) % 60);
    for (int64_t deadline = now_ms() + 1500; c->acknowledged < goal && now_ms() < deadline;)
        poll(NULL, 0, 1);
}

/* ---- what must be stored ---- */

/* A graded report has the row of its grading. */
static void expect_history(const struct server *s, const struct response *report)
{
    struct response *r = http_get(s, text("%s/history", report_path(int_at(report, "data.id"))));
    expect_status(r, 200);
    expect_int(r, "data.0.score", int_at(report, "data.score"));
    expect_str(r, "data.0.generated_at", str_at(report, "data.generated_at"));
    expect_int(r, "data.0.http_status", 200);
    response_free(r);
}

static void expect_record(const struct server *s, const struct record *record)
{
    struct response *r = http_get(s, report_path(record->id));
    expect_status(r, record->privacy < 0 ? 404 : 200);
    if (r->status == 200) {
        expect_int(r, "data.privacy", record->privacy);
        if (strcmp(str_at(r, "data.status"), "done") == 0)
            expect_history(s, r);
    }
    response_free(r);
}

/* All reports that the list shows. */
struct listed {
    char **urls;
    int64_t *ids;
    size_t count;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_number(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Whether there are more pages. */
static bool add_page(const struct server *s, int page, struct listed *l)
{
    struct response *r = http_get(s, text("/api/v1/reports?per_page=100&sort=asc&page=%d", page));
    size_t shown = len_at(r, "data");
    int64_t total = int_at(r, "meta.total");
    expect(r, shown > 0 || total == 0);
    l->urls = realloc(l->urls, (l->count + shown + 1) * sizeof(*l->urls));
    l->ids = realloc(l->ids, (l->count + shown + 1) * sizeof(*l->ids));
    ck_assert(l->urls && l->ids);
    for (size_t i = 0; i < shown; i++, l->count++) {
        l->urls[l->count] = text("%s", str_at(r, text("data.%zu.url", i)));
        l->ids[l->count] = int_at(r, text("data.%zu.id", i));
    }
    response_free(r);
    ck_assert_int_le((int64_t)l->count, total);
    return (int64_t)l->count < total;
}

/* Every URL is unique. */
static struct listed list_all(const struct server *s)
{
    struct listed l = {0};
    for (int page = 1; add_page(s, page, &l);)
        page++;
    qsort(l.urls, l.count, sizeof(*l.urls), by_text);
    qsort(l.ids, l.count, sizeof(*l.ids), by_number);
    for (size_t i = 1; i < l.count; i++)
        ck_assert_msg(strcmp(l.urls[i - 1], l.urls[i]) != 0, "%s was created twice", l.urls[i]);
    return l;
}

/* How many must be there: in all, and of those in the project of all clients. */
struct expected {
    int64_t alive, in_common, unknown;
};

/* In a cluster "not found" takes up to 50 ms: most deleted records are looked up in the list. */
static void expect_client(const struct changes_client *t, const struct server *s,
                          const struct listed *l, struct expected *e)
{
    unsigned deleted = 0;
    e->unknown += t->unknown;
    for (size_t i = 0; i < t->count; i++) {
        const struct record *record = &t->records[i];
        bool listed = bsearch(&record->id, l->ids, l->count, sizeof(*l->ids), by_number) != NULL;
        ck_assert_msg(listed == (record->privacy >= 0), "report %lld %s", (long long)record->id,
                      listed ? "was deleted, and is listed" : "is missing in the list");
        if (listed || deleted++ < DELETED_ASKED)
            expect_record(s, record);
        e->alive += listed;
        e->in_common += listed && record->project == 0;
    }
}

void changes_expect(const struct changes *c, const struct server *s)
{
    struct expected e = {0};
    struct listed l = list_all(s);
    int64_t total = (int64_t)l.count;
    for (unsigned i = 0; i < CHANGES_CLIENTS; i++)
        expect_client(&c->clients[i], s, &l, &e);
    ck_assert_msg(e.alive <= total && total <= e.alive + e.unknown,
                  "%lld records expected, %lld listed", (long long)e.alive, (long long)total);
    struct response *project = http_get(s, "/api/v1/projects/127.0.0.1");
    expect(project, e.in_common <= int_at(project, "data.reports_count") &&
                        int_at(project, "data.reports_count") <= e.in_common + e.unknown);
    expect_int(http_get(s, "/api/v1/reports?project=127.0.0.1"), "meta.total",
               int_at(project, "data.reports_count"));
}

static int64_t pending(const struct server *s)
{
    struct response *r = http_get(s, "/api/v1/reports?status=pending&per_page=10");
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

/* How long the queue takes depends on the machine. A lost job shows as a standstill. */
void changes_expect_graded(const struct server *s)
{
    int64_t left = pending(s), deadline = now_ms() + STANDSTILL_MS;
    while (left > 0) {
        poll(NULL, 0, 50);
        int64_t found = pending(s);
        if (found < left)
            deadline = now_ms() + STANDSTILL_MS;
        left = found < left ? found : left;
        ck_assert_msg(now_ms() < deadline, "jobs were lost: %lld reports stay pending\n%s",
                      (long long)left, server_log(s));
    }
}
