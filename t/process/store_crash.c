/*
 * Kills the writer with SIGKILL at random moments. A change that was acknowledged after its commit
 * is stored. A change that was not is stored completely or not at all, as its channel's note says.
 * No repair is needed.
 */
#include "t/kit/store.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Columns: maximum rows of a segment, tail length that triggers a merge, rounds. */
static const struct {
    uint32_t rows, entries;
    int rounds;
} ways[] = {{0, 0, 20}, {64, 16, 40}};
#define CHANNEL 77

/* Shared with the writer: what it has acknowledged. */
struct promises {
    volatile uint64_t sequence; /* the last change acknowledged after its commit */
    volatile uint64_t created, finished;
};

static struct promises *promises;

struct writer {
    struct store *s;
    uint64_t sequence, created, finished;
    uint64_t seed;
};

/* The channel note carries the number of reports created and finished up to its sequence number. */
static void one_commit(struct writer *w)
{
    struct store_txn *t;
    struct store_answer a;
    char url[64];
    ck_status(store_begin(w->s, &t), STORE_OK);
    uint64_t changes = 1 + kit_random(&w->seed) % 8;
    for (uint64_t i = 0; i < changes; i++) {
        struct store_change c;
        if (w->finished < w->created && kit_random(&w->seed) % 3 == 0) {
            w->finished++;
            c = kit_done_change(w->finished, 1, (int)(w->finished % 101));
        } else {
            snprintf(url, sizeof(url), "https://a.com/%llu", (unsigned long long)++w->created);
            c = kit_create_change(1, url, w->created % 2 ? "a.com" : "b.com");
        }
        store_apply(t, &c, NOW + (int64_t)w->sequence, &a);
        ck_status(a.status, STORE_OK);
        w->sequence++;
    }
    uint64_t answers[2] = {w->created, w->finished};
    store_sender_note(t, CHANNEL, w->sequence, (struct str){(char *)answers, sizeof(answers)});
    ck_status(store_commit(t), STORE_OK);
    promises->sequence = w->sequence;
    promises->created = w->created;
    promises->finished = w->finished;
}

static void writer_run(const char *dir, uint64_t seed)
{
    struct writer w = {.s = kit_store(dir, STORE_WRITE, MAP_BYTES), .seed = seed};
    struct store_txn *t;
    struct str answers;
    ck_status(store_begin(w.s, &t), STORE_OK);
    if (store_sender_get(t, CHANNEL, &w.sequence, &answers) == STORE_OK) {
        memcpy(&w.created, answers.p, sizeof(w.created));
        memcpy(&w.finished, answers.p + sizeof(w.created), sizeof(w.finished));
    }
    store_abort(t);
    struct kit k = {.s = w.s, .now = NOW};
    for (;;) {
        one_commit(&w);
        if (kit_random(&w.seed) % 4 == 0)
            kit_maintain(&k, 10, 1 + (unsigned)(kit_random(&w.seed) % 8));
    }
}

/* Every acknowledged change is stored, and nothing that the note does not cover. */
static void look(const char *dir)
{
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES);
    struct store_txn *t;
    struct str answers;
    uint64_t sequence = 0, noted[2] = {0};
    ck_status(store_begin(s, &t), STORE_OK);
    if (store_sender_get(t, CHANNEL, &sequence, &answers) == STORE_OK)
        memcpy(noted, answers.p, sizeof(noted));
    store_abort(t);
    ck_assert_uint_ge(sequence, promises->sequence);
    ck_assert_uint_ge(noted[0], promises->created);
    ck_assert_uint_ge(noted[1], promises->finished);
    struct store_workspace w;
    ck_status(kit_get_workspace(s, 1, &w), STORE_OK);
    ck_assert_uint_eq(w.reports, noted[0]);
    ck_assert_uint_eq(kit_jobs(s), noted[0] - noted[1]);
    for (uint64_t id = 1; id <= noted[0]; id++) {
        struct store_report r;
        char url[64];
        ck_status(kit_report(s, 1, id, &r), STORE_OK);
        snprintf(url, sizeof(url), "https://a.com/%llu", (unsigned long long)id);
        ck_assert(str_eq(r.url, str_of(url)));
        ck_assert_int_eq(r.status, id <= noted[1] ? REPORT_DONE : REPORT_PENDING);
    }
    ck_status(kit_report(s, 1, noted[0] + 1, NULL), STORE_NOT_FOUND);
    for (uint64_t id = 1; id <= noted[0]; id++) {
        struct kit_gradings g = kit_gradings(s, 1, id, 0, 2);
        ck_assert_uint_eq(g.count, id <= noted[1]);
        ck_assert(g.count == 0 || g.items[0].facts.http_status == 200);
    }
    struct store_list_query q = {
        .workspace = 1, .search = STR("A.com/"), .sort = REPORT_BY_SCORE, .page = 1, .per_page = 1};
    ck_assert_uint_eq(kit_reports(s, &q).total, noted[0]);
    kit_check_clean(s);
    store_close(s);
}

START_TEST(a_killed_writer_loses_no_answered_change_and_needs_no_repair)
{
    struct kit k;
    kit_segment_rows = ways[_i].rows;
    kit_ngram_block_shift = 6;
    kit_log_entries = ways[_i].entries;
    promises = kit_shared(sizeof(*promises));
    kit_open(&k);
    ck_assert_uint_eq(kit_workspace(&k, "acme"), 1);
    kit_kill(&k, ways[_i].rounds, 4711, writer_run, look, &promises->sequence);
    kit_close(&k);
}
END_TEST

/*
 * The kill hits purges of large projects. The purge resumes each time, and lists never show a part.
 */
START_TEST(a_killed_purge_resumes)
{
    struct kit k;
    uint64_t seed = 99;
    kit_segment_rows = ways[_i].rows;
    kit_ngram_block_shift = 6;
    kit_log_entries = ways[_i].entries;
    kit_open(&k);
    uint64_t w = kit_workspace(&k, "acme");
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < 3000; i++) {
        struct store_change c = kit_create_change(w, "https://a.com/some/page", "a.com");
        store_apply(t, &c, NOW, &a);
        c = kit_done_change(a.id, 1, i % 101);
        store_apply(t, &c, NOW, &a);
    }
    ck_status(store_commit(t), STORE_OK);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = 1}),
        STORE_OK);
    store_close(k.s);
    struct store_usage u = {.reports = 3000};
    uint64_t before = u.reports;
    unsigned idle = 0; /* rounds since some reports were purged: a busy machine takes longer */
    for (int rounds = 0; u.reports > 0; rounds++) {
        ck_assert_int_lt(rounds, 500);
        pid_t pid = fork();
        if (pid == 0) {
            kit_child();
            k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
            kit_purge(&k, 20);
            _exit(0);
        }
        const struct timespec more = {
            .tv_nsec = (long)(2000000 + kit_random(&seed) % 6000000 + idle * 1000000)};
        nanosleep(&more, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
        ck_status(store_usage(k.s, &u), STORE_OK);
        idle = u.reports < before ? 0 : idle + 1;
        before = u.reports;
        struct kit_list l =
            kit_reports(k.s, &(struct store_list_query){.workspace = w, .page = 1, .per_page = 10});
        ck_assert_uint_eq(l.total + l.count, 0);
        if (rounds % 5 == 0)
            kit_check_clean(k.s);
        store_close(k.s);
    }
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    kit_purge(&k, 0);
    kit_check_clean(k.s);
    kit_close(&k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_crash");
    TCase *tc = tcase_create("crash");
    kit_segment_rows = 300; /* frequent large merges */
    kit_ngram_block_shift = 6;
    kit_log_entries = 60;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_killed_writer_loses_no_answered_change_and_needs_no_repair, 0, 2);
    tcase_add_loop_test(tc, a_killed_purge_resumes, 0, 2);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
