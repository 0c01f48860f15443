/*
 * Power loss. A writer that creates, grades, deletes, purges, merges, rebuilds, repairs, backs up
 * and restores is recorded (power_recorder.h), and the record is replayed up to a random point. Of
 * the writes that are not synced by then, a random part is lost: by sector of a write, and by
 * directory entry. In each state the store opens, the check finds no mistake, every acknowledged
 * change is there, and after maintenance every segment file has a name in the manifest.
 *
 * POWER_POINTS is the number of points, 1,000 by default; POWER_SEED the seed.
 */
#include "core/base/sanitizer.h"
#include "store/engine/cursor.h"
#include "store/engine/files.h"
#include "store/engine/snapshot.h"
#include "store/index/segment_file_internal.h"
#include "store/rows.h"
#include "t/kit/power_disk.h"
#include "t/kit/store.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What the writer appends to the file "acks": the change before a transaction, and the
 * acknowledgement after it.
 */
enum ack_kind {
    ACK_INTENT = 1,
    ACK_STORED,
    ACK_DELETED,
    ACK_BACKED_UP,
    ACK_RESTORES,
    ACK_RESTORED
};

struct ack {
    uint32_t kind;
    int32_t score; /* ACK_STORED; -1: not graded */
    uint64_t id;
};

enum { REPORTS_MAX = 4000 };

/* ---- the writer ---- */

static int acks_fd;

static void write_ack(enum ack_kind kind, uint64_t id, int score)
{
    struct ack a = {kind, score, id};
    kit_assert(write(acks_fd, &a, sizeof(a)) == sizeof(a));
}

static struct kit k;
static uint64_t w, seed, created, attempts[REPORTS_MAX];
static int scores[REPORTS_MAX]; /* -2: deleted */

/* A transaction that the log has may be lost until the next one is committed. */
static void create(uint64_t first, uint64_t count, bool in_log)
{
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (uint64_t id = first; id < first + count; id++) {
        char url[64];
        snprintf(url, sizeof(url), "https://host-%u.com/%u", (unsigned)(id % 7), (unsigned)id);
        struct store_change c = kit_create_change(w, url, id % 3 ? "a.com" : "b.com");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
        kit_assert(a.id == id);
        scores[id] = -1;
        attempts[id] = 1;
    }
    if (in_log)
        store_mark_in_log(t);
    ck_status(store_commit(t), STORE_OK);
    created += count;
}

static void create_some(void)
{
    uint64_t first = created + 1, count = 1 + kit_random(&seed) % 12, logged = 0;
    if (kit_random(&seed) % 4 == 0)
        logged = kit_random(&seed) % count;
    for (uint64_t id = first; id < first + count; id++)
        write_ack(ACK_INTENT, id, 0);
    if (logged > 0)
        create(first, logged, true);
    create(first + logged, count - logged, false);
    for (uint64_t id = first; id < first + count; id++)
        write_ack(ACK_STORED, id, -1);
}

static uint64_t some_report(void)
{
    for (int i = 0; created != 0 && i < 20; i++) {
        uint64_t id = 1 + kit_random(&seed) % created;
        if (scores[id] != -2)
            return id;
    }
    return 0;
}

static void grade_one(void)
{
    uint64_t id = some_report();
    if (id == 0)
        return;
    struct store_change again = {
        .kind = CHANGE_REPORT_UPDATE, .workspace = w, .id = id, .fields = CHANGE_REGENERATE};
    write_ack(ACK_INTENT, id, 0);
    if (scores[id] >= 0) {
        ck_status(kit_status(&k, &again), STORE_OK);
        attempts[id]++;
    }
    scores[id] = (int)(kit_random(&seed) % 101);
    kit_done(&k, id, (uint32_t)attempts[id], scores[id]);
    write_ack(ACK_STORED, id, scores[id]);
}

static void delete_one(void)
{
    uint64_t id = some_report();
    if (id == 0)
        return;
    write_ack(ACK_INTENT, id, 0);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id}),
        STORE_OK);
    scores[id] = -2;
    write_ack(ACK_DELETED, id, 0);
}

static void delete_project(void)
{
    struct store_project p;
    if (kit_project(k.s, w, "b.com", &p) != STORE_OK)
        return;
    store_read_end(k.s);
    for (uint64_t id = 1; id <= created; id++)
        if (id % 3 == 0 && scores[id] != -2)
            write_ack(ACK_INTENT, id, 0);
    ck_status(
        kit_status(
            &k, &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = p.id}),
        STORE_OK);
    for (uint64_t id = 1; id <= created; id++)
        if (id % 3 == 0 && scores[id] != -2) {
            scores[id] = -2;
            write_ack(ACK_DELETED, id, 0);
        }
}

/* Nothing is checked about its reports. Its segment files are deleted after lazy commits. */
static void other_workspace(void)
{
    enum { REPORTS = 60 };
    struct store_txn *t;
    struct store_answer a;
    static unsigned number;
    char name[16];
    snprintf(name, sizeof(name), "other%u", number++);
    uint64_t other = kit_workspace(&k, name);
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < REPORTS; i++) {
        struct store_change c = kit_create_change(other, "https://a.com/", "a.com");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
        scores[++created] = -2;
    }
    ck_status(store_commit(t), STORE_OK);
    kit_maintain(&k, 100, 10);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .id = other}),
              STORE_OK);
    kit_maintain(&k, 100, 40);
}

static void work(unsigned rounds)
{
    for (unsigned i = 0; i < rounds && created < REPORTS_MAX - 100; i++) {
        unsigned dice = (unsigned)(kit_random(&seed) % 100);
        if (dice < 45)
            create_some();
        else if (dice < 75)
            grade_one();
        else if (dice < 84)
            delete_one();
        else if (dice < 85)
            delete_project();
        else if (dice < 87)
            other_workspace();
        else if (dice < 88) /* as after segment damage: the index is rebuilt from the reports */
            ck_status(
                kit_status(&k, &(struct store_change){.kind = CHANGE_INDEX_LOST, .workspace = w}),
                STORE_OK);
        else
            kit_maintain(&k, 1 + kit_random(&seed) % 20, 1 + (unsigned)(kit_random(&seed) % 8));
    }
}

static void run(const char *dir)
{
    char data[128], copy[128], acks[128], why[512];
    snprintf(data, sizeof(data), "%s/data", dir);
    snprintf(copy, sizeof(copy), "%s/copy", dir);
    snprintf(acks, sizeof(acks), "%s/acks", dir);
    kit_child();
    kit_assert(mkdir(data, 0700) == 0 && mkdir(copy, 0700) == 0);
    kit_assert(store_sync_dir(dir) == 0);
    acks_fd = open(acks, O_WRONLY | O_CREAT | O_APPEND, 0600);
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 16;
    kit_small_rows = 40;
    k = (struct kit){.s = kit_store(data, STORE_WRITE, MAP_BYTES), .now = NOW};
    w = kit_workspace(&k, "acme");
    work(350);
    ck_status(store_backup(k.s, copy, NULL, NULL), STORE_OK);
    write_ack(ACK_BACKED_UP, 0, 0);
    work(60);
    ck_status(store_rebuild(k.s, true, NULL, NULL), STORE_OK);
    work(10);
    store_close(k.s);
    write_ack(ACK_RESTORES, 0, 0);
    kit_assert(store_restore(copy, data, NULL, NULL, why, sizeof(why)) == STORE_OK);
    write_ack(ACK_RESTORED, 0, 0);
    k.s = kit_store(data, STORE_WRITE, MAP_BYTES);
    kit_purge(&k, 50);
    store_close(k.s);
}

/* ---- what was acknowledged ---- */

struct expected {
    int score[REPORTS_MAX]; /* -3: unknown */
    bool uncertain[REPORTS_MAX];
    bool restores, any;
};

static struct expected now, backed_up;

static void read_acks(const struct ack *a)
{
    kit_assert(a->id < REPORTS_MAX);
    now.any = true;
    switch (a->kind) {
    case ACK_INTENT:
        now.uncertain[a->id] = true;
        break;
    case ACK_STORED:
    case ACK_DELETED:
        now.uncertain[a->id] = false;
        now.score[a->id] = a->kind == ACK_DELETED ? -2 : a->score;
        break;
    case ACK_BACKED_UP:
        backed_up = now;
        break;
    case ACK_RESTORES:
        now.restores = true;
        break;
    default:
        now = backed_up;
    }
}

static void apply_record(const struct power_record *r, const char *a, const char *b,
                         const uint8_t *bytes)
{
    if (strcmp(a, "acks") == 0) {
        struct ack ack;
        if (r->kind == POWER_WRITE) {
            memcpy(&ack, bytes, sizeof(ack));
            read_acks(&ack);
        }
        return;
    }
    disk_apply(r, a, b, bytes);
}

/* ---- what must hold afterwards ---- */

/* Every attempt ended with a score. */
static void expect_history(struct store *s, const struct store_report *r)
{
    struct kit_gradings g = kit_gradings(s, 1, r->id, 0, STORE_GRADINGS_MAX);
    ck_status(g.status, STORE_OK);
    ck_assert_uint_eq(g.count, r->attempt);
    for (uint32_t i = 0; i < g.count; i++) {
        ck_assert_uint_eq(g.items[i].number, r->attempt - i);
        ck_assert_uint_eq(g.items[i].facts.http_status, 200);
    }
}

static void expect_acknowledged(struct store *s)
{
    for (uint64_t id = 1; id < REPORTS_MAX; id++) {
        struct store_report r;
        if (now.restores || now.uncertain[id] || now.score[id] == -3)
            continue;
        enum store_status status = kit_report(s, 1, id, &r);
        if (now.score[id] == -2)
            ck_status(status, STORE_NOT_FOUND);
        else
            ck_status(status, STORE_OK);
        ck_assert(status != STORE_OK || r.score == now.score[id]);
        if (now.score[id] >= 0)
            expect_history(s, &r);
        store_read_end(s);
    }
}

static bool count_file(void *arg, uint64_t workspace, uint64_t number)
{
    (void)workspace;
    (void)number;
    ++*(size_t *)arg;
    return true;
}

static size_t named_files(struct store *s)
{
    MDB_txn *txn;
    struct cursor walk;
    size_t count = 0;
    ck_status(store_snapshot(s, &txn), STORE_OK);
    enum store_status status = cursor_begin(s, txn, &walk, SPACE_SEGMENT);
    for (; status == STORE_OK; status = cursor_next(&walk))
        count++;
    cursor_end(&walk);
    store_read_end(s);
    return count;
}

static void expect_well(const char data[64])
{
    char why[512];
    struct store *s;
    const struct store_options look = {.dir = data, .mode = STORE_READ};
    enum store_status status = store_open(&look, &s, why, sizeof(why));
    if (status != STORE_OK && !now.any)
        return; /* it is being created, and nothing was acknowledged */
    ck_assert_msg(status == STORE_OK, "%s", why);
    kit_check_clean(s);
    expect_acknowledged(s);
    store_close(s);
    struct kit after = {.now = NOW};
    size_t files = 0;
    memcpy(after.dir, data, sizeof(after.dir));
    after.s = kit_store(data, STORE_WRITE, MAP_BYTES);
    kit_purge(&after, 100);
    kit_check_clean(after.s);
    expect_acknowledged(after.s);
    ck_assert_int_eq(segment_file_each(data, count_file, &files), 0);
    ck_assert_uint_eq(files, named_files(after.s));
    store_close(after.s);
}

static void lose_power(void)
{
    char dir[64], data[64];
    kit_dir(dir);
    disk_lay_out(dir, &seed);
    kit_assert(snprintf(data, sizeof(data), "%s/data", dir) < (int)sizeof(data));
    mkdir(data, 0700);
    expect_well(data);
    kit_remove(dir);
}

/* ---- the test ---- */

static uint8_t *record;
static size_t record_n;

static void read_record(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    ck_assert(fd >= 0 && fstat(fd, &st) == 0);
    record = malloc((size_t)st.st_size);
    for (record_n = 0; record_n < (size_t)st.st_size;) {
        ssize_t got = read(fd, record + record_n, (size_t)st.st_size - record_n);
        ck_assert_int_gt(got, 0);
        record_n += (size_t)got;
    }
    close(fd);
}

static void record_a_writer(const char *program, const char *dir, const char *log)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        char recorder[PATH_MAX];
        kit_assert(realpath("t/kit/power_recorder.so", recorder) != NULL);
        setenv("LD_PRELOAD", recorder, 1);
        setenv("POWER_DIR", dir, 1);
        setenv("POWER_LOG", log, 1);
        execl(program, program, "run", dir, (char *)NULL);
        _exit(9);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static size_t next_record(size_t at, struct power_record *r, char a[96], char b[96])
{
    memcpy(r, record + at, sizeof(*r));
    kit_assert(r->a_n < 96 && r->b_n < 96);
    snprintf(a, 96, "%.*s", (int)r->a_n, (const char *)record + at + sizeof(*r));
    snprintf(b, 96, "%.*s", (int)r->b_n, (const char *)record + at + sizeof(*r) + r->a_n);
    return at + sizeof(*r) + r->a_n + r->b_n;
}

static size_t count_records(void)
{
    size_t count = 0;
    for (size_t at = 0; at < record_n; count++) {
        struct power_record r;
        char a[96], b[96];
        at = next_record(at, &r, a, b) + r.bytes;
    }
    return count;
}

static const char *program;

START_TEST(a_power_loss_at_any_point_loses_nothing_and_needs_no_repair)
{
    char dir[64], log[80];
    const char *points_text = getenv("POWER_POINTS"), *seed_text = getenv("POWER_SEED");
    uint64_t points = points_text == NULL ? 1000 : strtoull(points_text, NULL, 10), losses = 0;
    kit_dir(dir);
    snprintf(log, sizeof(log), "%s.log", dir);
    record_a_writer(program, dir, log);
    read_record(log);
    uint64_t records = count_records(), number = 0;
    seed = seed_text == NULL ? 17 : strtoull(seed_text, NULL, 10);
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 16;
    kit_small_rows = 40;
    for (size_t i = 0; i < REPORTS_MAX; i++)
        now.score[i] = -3;
    for (size_t at = 0; at < record_n; number++) {
        struct power_record r;
        char a[96], b[96];
        size_t bytes = next_record(at, &r, a, b);
        apply_record(&r, a, b, record + bytes);
        at = bytes + r.bytes;
        if (kit_random(&seed) % records >= points)
            continue;
        lose_power();
        losses++;
    }
    ck_assert_uint_gt(records, 1000);
    ck_assert_uint_gt(losses, points / 2);
    printf("%llu power losses in %llu records\n", (unsigned long long)losses,
           (unsigned long long)records);
}
END_TEST

int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    if (SANITIZED) /* its runtime must be the first library of a process */
        return SKIPPED;
    if (argc == 3 && strcmp(argv[1], "run") == 0) {
        seed = 5;
        run(argv[2]);
        return 0;
    }
    program = argv[0];
    Suite *suite = suite_create("power_loss");
    TCase *tc = tcase_create("power loss");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, a_power_loss_at_any_point_loses_nothing_and_needs_no_repair);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
