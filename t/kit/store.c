#include "t/kit/store.h"
#include "t/kit/suite.h"

#include "store/answers/follower.h"
#include "store/maintenance.h"
#include "store/rows.h"

#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char kit_problem[512];
static bool in_child;

void kit_child(void)
{
    in_child = true;
}

void kit_fail(const char *file, int line, const char *what, const char *got)
{
    if (!in_child)
        ck_abort_msg("%s:%d: %s: %s", file, line, what, got);
    fprintf(stderr, "child: %s:%d: %s: %s\n", file, line, what, got);
    _exit(9);
}

/*
 * All directories of a run lie in one, which the parent removes: a test that failed cleans nothing
 * up.
 */
static char base[48];

static void base_make(void)
{
    snprintf(base, sizeof(base), "%s/assay-store-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(base) == NULL) {
        perror(base);
        exit(1);
    }
    chmod(base, 0755); /* for the test that becomes somebody else */
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void kit_dir(char dir[64])
{
    snprintf(dir, 64, "%s/XXXXXX", base);
    kit_assert(mkdtemp(dir) != NULL);
}

void kit_remove(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

uint32_t kit_segment_rows, kit_ngram_block_shift, kit_log_entries, kit_small_rows;
unsigned kit_good, kit_decent;

struct store *kit_store(const char *dir, enum store_mode mode, uint64_t map_size)
{
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = dir,
                                    .map_size = map_size,
                                    .max_readers = 64,
                                    .mode = mode,
                                    .segment_rows = kit_segment_rows,
                                    .ngram_block_shift = kit_ngram_block_shift,
                                    .log_entries = kit_log_entries,
                                    .small_rows = kit_small_rows != 0 ? kit_small_rows
                                                                      : kit_segment_rows != 0,
                                    .rates = kit_good != 0 || kit_decent != 0,
                                    .good = kit_good,
                                    .decent = kit_decent};
    enum store_status status = store_open(&o, &s, why, sizeof(why));
    if (status != STORE_OK)
        kit_fail(__FILE__, __LINE__, "store_open", why);
    if (mode == STORE_WRITE)
        store_rows_collect(s, kit_collects);
    return s;
}

void kit_open(struct kit *k)
{
    kit_dir(k->dir);
    k->s = kit_store(k->dir, STORE_WRITE, MAP_BYTES);
    k->now = NOW;
    k->batch = NULL;
}

void kit_reopen(struct kit *k)
{
    store_close(k->s);
    k->s = kit_store(k->dir, STORE_WRITE, MAP_BYTES);
}

void kit_close(struct kit *k)
{
    store_close(k->s);
    kit_remove(k->dir);
}

void (*kit_committing)(struct kit *k, struct store_txn *t);
void (*kit_committed)(struct kit *k);
bool kit_collects;
unsigned kit_carried_out[CHANGE_KINDS];

static enum store_status commit(struct kit *k, struct store_txn *t)
{
    if (kit_committing != NULL)
        kit_committing(k, t);
    enum store_status status = store_commit(t);
    if (kit_committed != NULL)
        kit_committed(k);
    return status;
}

void kit_batch_begin(struct kit *k)
{
    store_read_end(k->s);
    ck_status(store_begin(k->s, &k->batch), STORE_OK);
}

void kit_batch_end(struct kit *k)
{
    struct store_txn *t = k->batch;
    k->batch = NULL;
    ck_status(commit(k, t), STORE_OK);
}

/* Tests also apply kinds that do not exist. */
static void count_carried_out(const struct store_change *c, const struct store_answer *answer)
{
    if (answer->status == STORE_OK)
        kit_carried_out[c->kind]++;
}

struct store_answer kit_apply(struct kit *k, const struct store_change *c)
{
    struct store_txn *t;
    struct store_answer answer;
    if (k->batch != NULL) {
        store_apply(k->batch, c, k->now, &answer);
        count_carried_out(c, &answer);
        ck_status(store_txn_error(k->batch), STORE_OK);
        return answer;
    }
    store_read_end(k->s);
    ck_status(store_begin(k->s, &t), STORE_OK);
    store_apply(t, c, k->now, &answer);
    count_carried_out(c, &answer);
    if (store_txn_error(t) != STORE_OK) {
        store_abort(t);
        return answer;
    }
    enum store_status status = commit(k, t);
    if (status == STORE_FULL)
        answer.status = status;
    else
        ck_status(status, STORE_OK);
    return answer;
}

enum store_status kit_status(struct kit *k, const struct store_change *c)
{
    return kit_apply(k, c).status;
}

static enum store_status note_answers(void *arg, const struct store_change *change)
{
    return kit_apply(arg, change).status;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

unsigned kit_follow(struct kit *k, unsigned most)
{
    char why[512] = "";
    struct store *reader;
    unsigned steps = 0;
    enum follower_result result = FOLLOWER_MORE;
    ck_assert_msg(store_share(k->s, &reader, why, sizeof(why)) == STORE_OK, "%s", why);
    struct follower *f = follower_new(reader, note_answers, never, k);
    ck_assert_ptr_nonnull(f);
    while (steps < most && result == FOLLOWER_MORE) {
        result = follower_step(f);
        ck_assert_msg(result != FOLLOWER_FAILED && result != FOLLOWER_WAIT, "%s", follower_why(f));
        steps += result == FOLLOWER_MORE;
    }
    follower_free(f);
    store_close(reader);
    return steps;
}

uint64_t kit_workspace(struct kit *k, const char *name)
{
    struct store_answer a =
        kit_apply(k, &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = str_of(name)});
    ck_status(a.status, STORE_OK);
    return a.id;
}

uint64_t kit_key(struct kit *k, uint64_t workspace, uint8_t seed)
{
    char hash[32];
    memset(hash, seed, sizeof(hash));
    struct store_answer a = kit_apply(k, &(struct store_change){.kind = CHANGE_KEY_CREATE,
                                                                .workspace = workspace,
                                                                .name = STR("a key"),
                                                                .scopes = SCOPE_REPORTS_READ,
                                                                .hash = {hash, sizeof(hash)}});
    ck_status(a.status, STORE_OK);
    return a.id;
}

struct ulid kit_agent(struct kit *k, uint64_t workspace, const char *data)
{
    struct store_answer a = kit_apply(k, &(struct store_change){.kind = CHANGE_AGENT_CREATE,
                                                                .workspace = workspace,
                                                                .name = STR("Shop"),
                                                                .data = str_of(data),
                                                                .fields = AGENT_PUBLISHED});
    ck_status(a.status, STORE_OK);
    return a.first;
}

struct store_change kit_create_change(uint64_t workspace, const char *url, const char *project)
{
    return (struct store_change){.kind = CHANGE_REPORT_CREATE,
                                 .workspace = workspace,
                                 .url = str_of(url),
                                 .name = str_of(project),
                                 .code = 201};
}

uint64_t kit_create(struct kit *k, uint64_t workspace, const char *url, const char *project)
{
    struct store_change c = kit_create_change(workspace, url, project);
    struct store_answer a = kit_apply(k, &c);
    ck_status(a.status, STORE_OK);
    return a.id;
}

enum report_result kit_result(int score)
{
    return score >= 80 ? RESULT_GOOD : score >= 50 ? RESULT_DECENT : RESULT_BAD;
}

struct store_change kit_update_change(uint64_t workspace, uint64_t id, uint32_t fields)
{
    return (struct store_change){
        .kind = CHANGE_REPORT_UPDATE, .workspace = workspace, .id = id, .fields = fields};
}

struct store_change kit_done_change(uint64_t id, uint32_t attempt, int score)
{
    return (struct store_change){.kind = CHANGE_REPORT_FINISH,
                                 .id = id,
                                 .attempt = attempt,
                                 .status = REPORT_DONE,
                                 .score = score,
                                 .result = kit_result(score),
                                 .results = STR("{\"title\":{}}"),
                                 .issues_high = 1,
                                 .issues_passed = 3,
                                 .failed = STR("title"),
                                 .facts = {.http_status = 200,
                                           .ttfb_ms = 30,
                                           .load_ms = 80,
                                           .page_bytes = 5000,
                                           .protocol = STR("HTTP/1.1"),
                                           .version = STR("1.0.0")}};
}

struct store_change kit_failed_change(uint64_t id, uint32_t attempt)
{
    return (struct store_change){.kind = CHANGE_REPORT_FINISH,
                                 .id = id,
                                 .attempt = attempt,
                                 .status = REPORT_FAILED,
                                 .error_code = STR("dns_failed"),
                                 .error_message = STR("No such host.")};
}

void kit_done(struct kit *k, uint64_t id, uint32_t attempt, int score)
{
    struct store_change c = kit_done_change(id, attempt, score);
    ck_status(kit_status(k, &c), STORE_OK);
}

void kit_regrade(struct kit *k, uint64_t workspace, uint64_t id, uint32_t attempt, int score)
{
    const struct store_change c = {.kind = CHANGE_REPORT_UPDATE,
                                   .workspace = workspace,
                                   .id = id,
                                   .fields = CHANGE_REGENERATE};
    ck_status(kit_status(k, &c), STORE_OK);
    kit_done(k, id, attempt, score);
}

struct maintained {
    struct kit *k;
    uint64_t limit;
    unsigned changes;
};

static struct store_answer carry_out(void *arg, const struct store_change *change)
{
    struct maintained *m = arg;
    struct store_change limited = *change;
    limited.limit = m->limit;
    m->changes++;
    return kit_apply(m->k, &limited);
}

unsigned kit_maintain(struct kit *k, uint64_t limit, unsigned most)
{
    char why[512] = "";
    struct store *reader;
    struct maintained maintained = {k, limit, 0};
    enum maintenance_result result = MAINTENANCE_MORE;
    store_read_end(k->s);
    ck_status(store_share(k->s, &reader, why, sizeof(why)), STORE_OK);
    struct maintenance *m = maintenance_new(reader, carry_out, never, &maintained);
    kit_assert(m != NULL);
    for (unsigned steps = 0; steps < most && result == MAINTENANCE_MORE; steps++) {
        result = maintenance_step(m, false);
        if (result == MAINTENANCE_FAILED)
            kit_fail(__FILE__, __LINE__, "maintenance_step", maintenance_why(m));
    }
    maintenance_free(m);
    store_close(reader);
    return maintained.changes;
}

unsigned kit_purge(struct kit *k, uint64_t limit)
{
    const struct store_change c = {.kind = CHANGE_PURGE, .limit = limit};
    unsigned slices = 0;
    enum store_status status;
    while ((status = kit_status(k, &c)) == STORE_OK)
        slices++;
    ck_status(status, STORE_NOT_FOUND);
    return slices + kit_maintain(k, limit, UINT_MAX);
}

static void got_problem(void *arg, const char *sentence)
{
    snprintf(kit_problem, sizeof(kit_problem), "%s", sentence);
    ++*(size_t *)arg;
}

size_t kit_problems(struct store *s)
{
    size_t problems = 0;
    uint64_t records;
    store_read_end(s);
    enum store_status status = store_check(s, NULL, got_problem, &problems, &records);
    kit_assert(problems == 0 ? status == STORE_OK : status == STORE_CORRUPT);
    return problems;
}

void kit_check_clean(struct store *s)
{
    size_t problems = kit_problems(s);
    if (problems != 0)
        kit_fail(__FILE__, __LINE__, "store_check finds nothing wrong", kit_problem);
}

int kit_run(Suite *suite)
{
    base_make();
    int failed = suite_run(suite);
    kit_remove(base);
    return failed;
}

uint64_t kit_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 33;
}

void *kit_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED);
    return p;
}

static void kill_somewhere(pid_t pid, uint64_t *seed, const volatile uint64_t *progress)
{
    const struct timespec tick = {.tv_nsec = 20000};
    uint64_t before = *progress;
    for (int i = 0; i < 200000 && *progress == before; i++)
        nanosleep(&tick, NULL);
    ck_assert_uint_gt(*progress, before);
    const struct timespec more = {.tv_nsec = (long)(kit_random(seed) % 15000000)};
    nanosleep(&more, NULL);
    kill(pid, SIGKILL);
}

void kit_kill(struct kit *k, int rounds, uint64_t seed, void (*run)(const char *dir, uint64_t seed),
              void (*look)(const char *dir), const volatile uint64_t *progress)
{
    store_close(k->s);
    k->s = NULL;
    for (int round = 0; round < rounds; round++) {
        int status;
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            kit_child();
            run(k->dir, seed + (uint64_t)round);
        }
        kill_somewhere(pid, &seed, progress);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                      "the writer ended by itself");
        look(k->dir);
    }
}
