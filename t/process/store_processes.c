/*
 * Several processes on one LMDB environment: readers during writes, exhausted reader slots and
 * space, a map that grows, backups during writes.
 */
#include "t/kit/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kit k;

static void setup(void)
{
    kit_dir(k.dir);
    k.s = NULL;
    k.now = NOW;
}

static void teardown(void)
{
    kit_close(&k);
}

static struct store *store_of(enum store_mode mode, uint64_t map_size, unsigned max_readers)
{
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = k.dir,
                                    .map_size = map_size,
                                    .max_readers = max_readers,
                                    .mode = mode,
                                    .segment_rows = kit_segment_rows,
                                    .ngram_block_shift = kit_ngram_block_shift,
                                    .log_entries = kit_log_entries,
                                    .small_rows = kit_segment_rows != 0};
    enum store_status status = store_open(&o, &s, why, sizeof(why));
    if (status != STORE_OK)
        kit_fail(__FILE__, __LINE__, "store_open", why);
    return s;
}

/* A child that sends one byte when ready, and continues when it receives one. */
struct child {
    pid_t pid;
    int from, to; /* the parent's ends */
};

static bool child_start(struct child *c, int *from, int *to)
{
    int up[2], down[2];
    ck_assert_int_eq(pipe(up) | pipe(down), 0);
    c->pid = fork();
    ck_assert_int_ge(c->pid, 0);
    bool inside = c->pid == 0;
    *from = inside ? down[0] : up[0];
    *to = inside ? up[1] : down[1];
    close(inside ? down[1] : up[1]);
    close(inside ? up[0] : down[0]);
    c->from = *from;
    c->to = *to;
    if (inside)
        kit_child();
    return inside;
}

static char receive(int fd)
{
    char c = 0;
    return read(fd, &c, 1) == 1 ? c : 0;
}

static void send_byte(int fd, char c)
{
    kit_assert(write(fd, &c, 1) == 1);
}

static void child_ends_well(const struct child *c)
{
    int status;
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    ck_assert_int_eq(status, 0);
    close(c->from);
    close(c->to);
}

/* ---- readers during writes ---- */

#define READERS 4
#define COMMITS 400

/*
 * Every snapshot of a reader must be consistent (totals, counters, newest report) and never older
 * than the one before.
 */
static void reader_run(int from, volatile uint64_t *stop)
{
    struct store *s = store_of(STORE_READ, 0, 0);
    uint64_t last = 0;
    (void)from;
    while (*stop == 0) {
        struct store_workspace w;
        struct store_project p;
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        struct store_list_query q = {.workspace = 1, .page = 1, .per_page = 5};
        struct kit_list l = kit_reports(s, &q);
        kit_assert(l.total == w.reports);
        kit_assert(w.reports >= last);
        if (w.reports > 0) {
            kit_assert(l.reports[0].id == w.reports);
            ck_status(kit_report(s, 1, w.reports, NULL), STORE_OK);
            ck_status(kit_report(s, 1, w.reports + 1, NULL), STORE_NOT_FOUND);
            ck_status(kit_project(s, 1, "a.com", &p), STORE_OK);
            kit_assert(p.reports == w.reports);
            q = (struct store_list_query){.workspace = 1,
                                          .sort = REPORT_BY_URL,
                                          .ascending = true,
                                          .search = STR("/Page/"),
                                          .page = w.reports,
                                          .per_page = 1};
            l = kit_reports(s, &q);
            kit_assert(l.total == w.reports && l.count == 1);
            kit_assert(l.reports[0].id == w.reports); /* URLs are in id order */
        }
        last = w.reports;
        store_read_end(s);
    }
    store_close(s);
}

START_TEST(readers_see_only_whole_transactions)
{
    struct child children[READERS];
    int from, to;
    volatile uint64_t *stop =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert((void *)(uintptr_t)stop != MAP_FAILED);
    kit_segment_rows = 200; /* merged repeatedly while readers read */
    kit_ngram_block_shift = 6;
    kit_log_entries = 20;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    store_close(k.s);
    k.s = NULL;
    for (int i = 0; i < READERS; i++) {
        if (child_start(&children[i], &from, &to)) {
            reader_run(from, stop);
            _exit(0);
        }
    }
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    for (int i = 0; i < COMMITS; i++) {
        struct store_txn *t;
        struct store_answer a;
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (int j = 0; j <= i % 7; j++) {
            char url[64];
            snprintf(url, sizeof(url), "https://a.com/page/%08d", i * 8 + j);
            struct store_change c = kit_create_change(1, url, "a.com");
            store_apply(t, &c, NOW, &a);
            ck_status(a.status, STORE_OK);
        }
        ck_status(store_commit(t), STORE_OK);
        kit_maintain(&k, 5, 1);
    }
    kit_check_clean(k.s);
    *stop = 1;
    for (int i = 0; i < READERS; i++)
        child_ends_well(&children[i]);
    munmap((void *)(uintptr_t)stop, 4096);
}
END_TEST

START_TEST(a_store_check_during_writes_finds_no_error)
{
    struct child c;
    int from, to;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        struct store_change done = {0};
        k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
        send_byte(to, 'r');
        fcntl(from, F_SETFL, O_NONBLOCK);
        for (uint64_t id = 1; receive(from) == 0; id++) {
            kit_create(&k, 1, "https://a.com/page", id % 50 ? "a.com" : "b.com");
            done = kit_done_change(id, 1, (int)(id % 101));
            if (id % 2)
                kit_apply(&k, &done);
            if (id % 3 == 0)
                kit_apply(&k, &(struct store_change){
                                  .kind = CHANGE_REPORT_DELETE, .workspace = 1, .id = id / 2 + 1});
        }
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    struct store *s = store_of(STORE_READ, 0, 0);
    for (int i = 0; i < 20; i++)
        kit_check_clean(s);
    send_byte(c.to, 's');
    child_ends_well(&c);
    kit_check_clean(s);
    store_close(s);
}
END_TEST

/* ---- exhaustion ---- */

START_TEST(a_read_without_a_reader_slot_is_busy_and_a_dead_readers_slot_is_reused)
{
    struct child children[2];
    int from, to;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 2);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = NULL;
    for (int i = 0; i < 2; i++) {
        if (child_start(&children[i], &from, &to)) {
            struct store *s = store_of(STORE_READ, 0, 2);
            ck_status(kit_get_workspace(s, 1, NULL), STORE_OK);
            send_byte(to, 'r');
            receive(from);
            _exit(0);
        }
        ck_assert_int_eq(receive(children[i].from), 'r');
    }
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = k.dir, .max_readers = 2, .mode = STORE_READ};
    ck_status(store_open(&o, &s, why, sizeof(why)), STORE_BUSY);
    ck_assert_ptr_nonnull(strstr(why, "slot"));
    kill(children[0].pid, SIGKILL);
    waitpid(children[0].pid, NULL, 0);
    ck_status(store_open(&o, &s, why, sizeof(why)), STORE_OK);
    ck_status(kit_get_workspace(s, 1, NULL), STORE_OK);
    ck_assert_uint_eq(store_reader_check(s), 0);
    store_close(s);
    send_byte(children[1].to, 's');
    child_ends_well(&children[1]);
}
END_TEST

static char results[6000];

/* incompressible bytes */
static void fill_results(void)
{
    for (size_t i = 0; i < sizeof(results); i++)
        results[i] = i == 0 ? '{' : (char)((i + 1) * 0x9e3779b97f4a7c15 >> 29);
}

/* Create and finish until the store is full. Returns the last status. */
static struct store_answer fill(uint64_t w, unsigned *made)
{
    struct store_answer a = {0};
    fill_results();
    for (*made = 0; *made < 100000; ++*made) {
        struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
        a = kit_apply(&k, &c);
        if (a.status != STORE_OK)
            break;
        c = kit_done_change(a.id, 1, 50);
        c.results = (struct str){results, sizeof(results)};
        struct store_answer done = kit_apply(&k, &c);
        ck_status(done.status, STORE_OK);
    }
    return a;
}

START_TEST(a_full_store_refuses_only_creates)
{
    unsigned made, again;
    k.s = store_of(STORE_WRITE, 8 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_key(&k, w, 1);
    uint64_t waiting = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_answer a = fill(w, &made);
    ck_status(a.status, STORE_FULL);
    ck_assert_uint_gt(made, 100);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "map"));
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_ge(u.space.used_bytes * 100, u.space.map_bytes * 94);
    store_read_end(k.s);
    char hash[32] = {9};
    ck_status(
        kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = STR("b")}),
        STORE_FULL);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_CREATE,
                                                    .workspace = w,
                                                    .hash = {hash, 32}}),
              STORE_FULL);
    struct store_change c = {.kind = CHANGE_REPORT_UPDATE,
                             .workspace = w,
                             .id = waiting + 1,
                             .fields = CHANGE_REGENERATE};
    ck_status(kit_status(&k, &c), STORE_FULL);
    c = kit_done_change(waiting, 1, 77);
    ck_status(kit_status(&k, &c), STORE_OK);
    c = (struct store_change){.kind = CHANGE_REPORT_UPDATE,
                              .workspace = w,
                              .id = waiting,
                              .fields = CHANGE_HAS_PRIVACY,
                              .privacy = 1};
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = 1}), STORE_OK);
    ck_status(kit_report(k.s, w, waiting, NULL), STORE_OK);
    store_read_end(k.s);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = 1}),
        STORE_OK);
    kit_purge(&k, 20);
    kit_check_clean(k.s);
    a = fill(w, &again);
    ck_status(a.status, STORE_FULL);
    ck_assert_uint_gt(again, made / 2);
    kit_check_clean(k.s);
}
END_TEST

/*
 * Finish every report with large results, several per transaction. Returns how many found the store
 * full.
 */
static unsigned finish_all(const uint64_t *ids, unsigned count, unsigned at_once)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < count;) {
        struct store_txn *t;
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (unsigned end = i + at_once; i < end && i < count; i++) {
            struct store_answer answer = {0};
            struct store_change c = kit_done_change(ids[i], 1, 50);
            c.results = (struct str){results, sizeof(results)};
            store_apply(t, &c, k.now, &answer);
            refused += answer.status == STORE_FULL;
        }
        /* none filled the map within the transaction */
        ck_status(store_commit(t), STORE_OK);
    }
    return refused;
}

/* changes per transaction */
static const unsigned bursts[] = {1, 7, 400};

START_TEST(a_burst_of_results_leaves_space_for_deletes)
{
    enum { WAITING = 400 };
    uint64_t waiting[WAITING];
    unsigned made;
    k.s = store_of(STORE_WRITE, 8 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_key(&k, w, 1);
    for (unsigned i = 0; i < WAITING; i++)
        waiting[i] = kit_create(&k, w, "https://a.com/", "a.com");
    ck_status(fill(w, &made).status, STORE_FULL);
    unsigned refused = finish_all(waiting, WAITING, bursts[_i]);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_lt(refused, WAITING);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = 1}), STORE_OK);
    for (uint64_t id = waiting[WAITING - 1] + 1; id <= waiting[WAITING - 1] + made; id++)
        ck_status(
            kit_status(
                &k, &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id}),
            STORE_OK);
    ck_assert_uint_eq(finish_all(waiting, WAITING, 1), 0);
    kit_check_clean(k.s);
}
END_TEST

static const char *long_url(unsigned seed)
{
    static char url[1400];
    memset(url, 'u', sizeof(url) - 1);
    url[snprintf(url, sizeof(url), "https://a.com/%u/", seed)] = 'u';
    return url;
}

/* Create ${count} reports in one transaction; returns how many are stored. */
static unsigned create_burst(uint64_t w, unsigned count)
{
    struct store_txn *t;
    struct store_answer a;
    unsigned made = 0;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < count && store_txn_error(t) == STORE_OK; i++) {
        struct store_change c = kit_create_change(w, long_url(i), "a.com");
        store_apply(t, &c, k.now, &a);
        made += a.status == STORE_OK;
    }
    return store_commit(t) == STORE_OK ? made : 0;
}

static enum store_status delete_report(uint64_t w, uint64_t id)
{
    return kit_status(
        &k, &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id});
}

/* creates per transaction */
static const unsigned create_bursts[] = {1, 30, 60, 100};

START_TEST(a_burst_of_creates_leaves_space_for_deletes)
{
    uint64_t last = 0;
    unsigned made;
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    for (unsigned count = create_bursts[_i]; count > 0; count -= made == 0) {
        made = create_burst(w, count);
        last += made;
    }
    ck_assert_uint_gt(last, 400);
    for (uint64_t id = 1; id <= last; id++)
        ck_status(delete_report(w, id), STORE_OK);
    kit_check_clean(k.s);
}
END_TEST

static void read_until_told(int from, int to)
{
    struct store *s = store_of(STORE_READ, 0, 0);
    ck_status(kit_get_workspace(s, 1, NULL), STORE_OK); /* its snapshot stays open */
    send_byte(to, 'r');
    receive(from);
    store_read_end(s);
    send_byte(to, 'e');
    receive(from);
    _exit(0);
}

START_TEST(deletes_on_a_full_store_continue_after_the_end_of_a_snapshot)
{
    struct child c;
    int from, to;
    unsigned made;
    uint64_t id = 1;
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    ck_status(fill(w, &made).status, STORE_FULL);
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to))
        read_until_told(from, to);
    ck_assert_int_eq(receive(c.from), 'r');
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    while (id < made && delete_report(w, id) == STORE_OK)
        id++;
    ck_assert_uint_lt(id, made);
    ck_assert(store_release_pages(k.s));
    ck_status(delete_report(w, id), STORE_FULL);
    send_byte(c.to, 'e');
    ck_assert_int_eq(receive(c.from), 'e');
    while (delete_report(w, id) != STORE_OK)
        ck_assert(store_release_pages(k.s));
    for (id++; id <= made; id++)
        ck_status(delete_report(w, id), STORE_OK);
    send_byte(c.to, 's');
    child_ends_well(&c);
    kit_check_clean(k.s);
}
END_TEST

/* An error makes a report's record longer: these records then need a page of their own. */
START_TEST(failed_results_on_a_full_store_leave_space_for_deletes)
{
    char url[1900], message[300];
    uint64_t last = 0;
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    memset(url, 'u', sizeof(url));
    memcpy(url, "https://a.com/", 14);
    url[sizeof(url) - 1] = '\0';
    memset(message, 'm', sizeof(message));
    struct store_change c = kit_create_change(w, url, "a.com");
    for (struct store_answer a; (a = kit_apply(&k, &c)).status == STORE_OK;)
        last = a.id;
    ck_assert_uint_gt(last, 1000);
    c = kit_failed_change(1, 1);
    c.error_message = (struct str){message, sizeof(message)};
    while (c.id <= last && kit_status(&k, &c) == STORE_OK)
        c.id++;
    ck_assert_uint_gt(c.id, 1);
    for (uint64_t id = 1; id <= last; id++) {
        const struct store_change gone = {.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id};
        ck_status(kit_status(&k, &gone), STORE_OK);
    }
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_transaction_larger_than_the_map_stays_full_and_leaves_nothing)
{
    struct store_txn *t;
    struct store_answer a = {0};
    char hash[2048];
    k.s = store_of(STORE_WRITE, 2 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    fill_results();
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < 5000 && store_txn_error(t) == STORE_OK; i++) {
        struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
        store_apply(t, &c, NOW, &a);
        if (a.status == STORE_FULL)
            continue;
        c = kit_done_change(a.id, 1, 50);
        c.results = (struct str){results, sizeof(results)};
        store_apply(t, &c, NOW, &a);
    }
    ck_status(a.status, STORE_FULL);
    /* A change of existing records is allowed, and longer hashes grow it beyond the map. */
    memset(hash, 'h', sizeof(hash));
    for (uint64_t id = 1; id <= 5000 && store_txn_error(t) == STORE_OK; id++)
        store_apply(t,
                    &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                           .workspace = w,
                                           .id = id,
                                           .fields = CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD,
                                           .privacy = PRIVACY_PASSWORD,
                                           .hash = {hash, sizeof(hash)}},
                    NOW, &a);
    ck_status(store_txn_error(t), STORE_FULL);
    struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
    store_apply(t, &c, NOW, &a);
    ck_status(a.status, STORE_FULL);
    ck_status(store_commit(t), STORE_FULL);
    size_t count;
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    struct store_workspace got;
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 0);
    ck_assert_uint_eq(kit_create(&k, w, "https://a.com/", "a.com"), 1);
    kit_check_clean(k.s);
}
END_TEST

/* ---- a map that grows ---- */

START_TEST(a_reader_follows_a_map_enlarged_by_another_process)
{
    struct child c;
    int from, to;
    unsigned made;
    k.s = store_of(STORE_WRITE, 1 << 20, 16);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        struct store *s = store_of(STORE_READ, 0, 0);
        struct store_workspace w;
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        kit_assert(w.reports == 0);
        store_read_end(s);
        send_byte(to, 'r');
        kit_assert(receive(from) == 'g');
        ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
        kit_assert(w.reports > 100);
        for (uint64_t id = 1; id <= w.reports; id++)
            ck_status(kit_report(s, 1, id, NULL), STORE_OK);
        kit_check_clean(s);
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    ck_status(fill(1, &made).status, STORE_FULL);
    ck_assert_uint_gt(made, 300);
    send_byte(c.to, 'g');
    child_ends_well(&c);
}
END_TEST

START_TEST(a_smaller_configured_map_does_not_shrink_the_stored_one)
{
    struct store_usage u;
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    kit_workspace(&k, "acme");
    store_close(k.s);
    k.s = store_of(STORE_WRITE, 1 << 20, 16);
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq(u.space.map_bytes, 16 << 20);
}
END_TEST

/* ---- backup and restore ---- */

static bool no_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return false;
}

struct seen {
    uint64_t calls, done, total;
};

static bool progress(void *arg, uint64_t done, uint64_t total)
{
    struct seen *s = arg;
    ck_assert_uint_ge(done, s->done);
    ck_assert_uint_ge(total, done);
    *s = (struct seen){s->calls + 1, done, total};
    return true;
}

START_TEST(a_backup_during_writes_is_one_snapshot_and_restores)
{
    struct child c;
    int from, to;
    char backup[64], fresh[64], why[512] = "";
    k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
    kit_workspace(&k, "acme");
    for (int i = 0; i < 500; i++)
        kit_create(&k, 1, "https://a.com/page", "a.com");
    store_close(k.s);
    k.s = NULL;
    kit_dir(backup);
    kit_dir(fresh);
    if (child_start(&c, &from, &to)) {
        k.s = store_of(STORE_WRITE, MAP_BYTES, 64);
        send_byte(to, 'r');
        fcntl(from, F_SETFL, O_NONBLOCK);
        while (receive(from) == 0)
            kit_create(&k, 1, "https://a.com/page", "a.com");
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    struct store *s = store_of(STORE_READ, 0, 0);
    struct seen seen = {0};
    ck_status(store_backup(s, backup, progress, &seen), STORE_OK);
    ck_assert_uint_gt(seen.calls, 0);
    ck_status(store_backup(s, backup, NULL, NULL), STORE_INVALID);
    ck_assert_ptr_nonnull(strstr(store_why(s), "empty"));
    send_byte(c.to, 's');
    child_ends_well(&c);
    store_close(s);
    seen = (struct seen){0};
    ck_assert_msg(store_restore(backup, fresh, progress, &seen, why, sizeof(why)) == STORE_OK, "%s",
                  why);
    ck_assert_uint_gt(seen.calls, 0);
    s = kit_store(fresh, STORE_WRITE, MAP_BYTES);
    kit_check_clean(s);
    struct store_workspace w;
    ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
    ck_assert_uint_ge(w.reports, 500);
    store_close(s);
    kit_remove(backup);
    kit_remove(fresh);
}
END_TEST

static bool fill_between(void *arg, uint64_t done, uint64_t total)
{
    unsigned made;
    (void)done;
    (void)total;
    if (*(int *)arg == 0)
        ck_status(fill(1, &made).status, STORE_FULL);
    *(int *)arg = 1;
    return true;
}

START_TEST(a_backup_stops_before_the_writer_runs_out_of_pages)
{
    char backup[64], path[128];
    int filled = 0;
    kit_dir(backup);
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    ck_status(store_backup(k.s, backup, fill_between, &filled), STORE_FULL);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "cancelled"));
    snprintf(path, sizeof(path), "%s/data.mdb", backup);
    ck_assert_int_ne(access(path, F_OK), 0);
    kit_remove(backup);
}
END_TEST

START_TEST(a_restore_keeps_the_old_store_and_refuses_one_in_use_or_a_damaged_backup)
{
    char backup[64], path[128], why[512] = "";
    struct child c;
    int from, to;
    struct stat st;
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_create(&k, w, "https://a.com/1", "a.com");
    kit_dir(backup);
    ck_status(store_backup(k.s, backup, no_progress, NULL), STORE_IO);
    ck_status(store_backup(k.s, backup, NULL, NULL), STORE_OK);
    kit_create(&k, w, "https://a.com/2", "a.com");
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to)) {
        k.s = store_of(STORE_READ, 0, 0);
        send_byte(to, 'r');
        receive(from);
        _exit(0);
    }
    ck_assert_int_eq(receive(c.from), 'r');
    ck_status(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)), STORE_BUSY);
    ck_assert_ptr_nonnull(strstr(why, "in use"));
    send_byte(c.to, 's');
    child_ends_well(&c);
    ck_assert_msg(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)) == STORE_OK, "%s",
                  why);
    snprintf(path, sizeof(path), "%s/data.mdb.before-restore", k.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    struct store_workspace got;
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 1);
    store_close(k.s);
    k.s = NULL;
    snprintf(path, sizeof(path), "%s/data.mdb", backup);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, "damaged", 7, 3 * 4096 + 16), 7);
    close(fd);
    ck_status(store_restore(backup, k.dir, NULL, NULL, why, sizeof(why)), STORE_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why, "damaged"));
    ck_status(store_restore(k.dir, "/nonexistent", NULL, NULL, why, sizeof(why)), STORE_NOT_FOUND);
    ck_status(store_restore("/nonexistent", k.dir, NULL, NULL, why, sizeof(why)), STORE_NOT_FOUND);
    k.s = store_of(STORE_WRITE, MAP_BYTES, 16);
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 1);
    kit_remove(backup);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_processes");
    TCase *tc = tcase_create("processes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, readers_see_only_whole_transactions, 0, 2);
    tcase_add_test(tc, a_store_check_during_writes_finds_no_error);
    tcase_add_test(tc, a_read_without_a_reader_slot_is_busy_and_a_dead_readers_slot_is_reused);
    tcase_add_test(tc, a_full_store_refuses_only_creates);
    tcase_add_loop_test(tc, a_burst_of_results_leaves_space_for_deletes, 0,
                        sizeof(bursts) / sizeof(bursts[0]));
    tcase_add_loop_test(tc, a_burst_of_creates_leaves_space_for_deletes, 0,
                        sizeof(create_bursts) / sizeof(create_bursts[0]));
    tcase_add_test(tc, deletes_on_a_full_store_continue_after_the_end_of_a_snapshot);
    tcase_add_test(tc, failed_results_on_a_full_store_leave_space_for_deletes);
    tcase_add_test(tc, a_transaction_larger_than_the_map_stays_full_and_leaves_nothing);
    tcase_add_test(tc, a_reader_follows_a_map_enlarged_by_another_process);
    tcase_add_test(tc, a_smaller_configured_map_does_not_shrink_the_stored_one);
    tcase_add_test(tc, a_backup_during_writes_is_one_snapshot_and_restores);
    tcase_add_test(tc, a_backup_stops_before_the_writer_runs_out_of_pages);
    tcase_add_test(tc, a_restore_keeps_the_old_store_and_refuses_one_in_use_or_a_damaged_backup);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
