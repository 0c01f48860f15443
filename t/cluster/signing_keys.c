/* Signing keys: all nodes have the same file, also after rotations on several nodes. */
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* cluster.max_lag, and half a minute for clocks that differ */
enum { SETTLE_MS = 60000 + 30000, DAY_MS = 86400000 };

/* ---- the file ---- */

static char *keys_path(unsigned i)
{
    return text("%s/secrets", nodes->node[i].server->data);
}

/* "": the node has none. */
static char *keys_of(unsigned i)
{
    char *path = keys_path(i), *out = calloc(1, 8192);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(out);
    if (file != NULL) {
        ck_assert_uint_lt(fread(out, 1, 8191, file), 8191);
        fclose(file);
    }
    free(path);
    return out;
}

static unsigned lines_of(const char *of)
{
    unsigned lines = 0;
    for (; (of = strchr(of, '\n')) != NULL; of++)
        lines++;
    return lines;
}

/* ${arg}: how many keys each file has, after a comment. */
static bool have_equal_keys(void *arg)
{
    char *first = keys_of(0);
    bool equal = lines_of(first) == 1 + *(unsigned *)arg;
    for (unsigned i = 1; i < nodes->count; i++) {
        char *other = keys_of(i);
        equal = equal && strcmp(first, other) == 0;
        free(other);
    }
    free(first);
    return equal;
}

static void expect_keys(unsigned count)
{
    ck_assert_msg(wait_until(have_equal_keys, &count, SAYS_MS), "%u keys\n%s", count,
                  nodes_logs(nodes));
}

/* ---- tests ---- */

START_TEST(every_node_signs_with_the_same_keys)
{
    expect_keys(1);
    assay_ok(follower_server(0), "secret", "rotate", NULL);
    expect_keys(2);
    node_kill_writer(nodes, follower(1));
    ck_assert_int_eq(unlink(keys_path(follower(1))), 0);
    node_kill_writer(nodes, follower(1)); /* the next writer makes the file again */
    expect_keys(2);
}
END_TEST

static unsigned times_said(unsigned i, const char *words)
{
    unsigned times = 0;
    for (const char *at = server_log(nodes->node[i].server); (at = strstr(at, words)) != NULL; at++)
        times++;
    return times;
}

START_TEST(a_node_that_cannot_write_its_file_tries_again)
{
    static const char words[] = "its signing keys cannot be used";
    const unsigned late = follower(1);
    expect_keys(1);
    char *beside = text("%s.new", keys_path(late)); /* in the place of the file that is renamed */
    ck_assert_int_eq(mkdir(beside, 0700), 0);
    assay_ok(follower_server(0), "secret", "rotate", NULL);
    expect_says(late, words);
    created("1"); /* an entry later, and some tries */
    poll(NULL, 0, 2500);
    ck_assert_uint_eq(times_said(late, words), 1);
    ck_assert_uint_eq(lines_of(keys_of(late)), 2);
    ck_assert_int_eq(rmdir(beside), 0);
    expect_keys(2);
    expect_says(late, "its signing keys are used again");
}
END_TEST

enum { ROTATIONS = 2 }; /* of each node */

static void *rotate(void *arg)
{
    for (unsigned i = 0; i < ROTATIONS; i++) {
        struct run run = assay(((struct node *)arg)->server, "secret", "rotate", NULL);
        ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    }
    return NULL;
}

START_TEST(rotations_on_all_nodes_at_once_lose_no_key)
{
    pthread_t threads[NODES_MAX];
    expect_keys(1);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, rotate, &nodes->node[i]), 0);
    for (unsigned i = 0; i < nodes->count; i++)
        pthread_join(threads[i], NULL);
    expect_keys(1 + nodes->count * ROTATIONS);
}
END_TEST

/* When the last key of a file signs. */
static int64_t signs_ms(const char *keys)
{
    long long ms = 0;
    char last[8192], *line, *rest = NULL;
    snprintf(last, sizeof(last), "%s", keys);
    for (line = strtok_r(last, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        sscanf(line, "%*s %lld", &ms);
    return ms;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static const int64_t steps_ms[] = {DAY_MS, -(int64_t)DAY_MS};

START_TEST(when_a_key_signs_does_not_depend_on_the_clock_of_the_node_that_rotates)
{
    expect_keys(1);
    struct wall_clock *clock = wall_clock_new();
    wall_clock_step(clock, steps_ms[_i]);
    wall_clock_use(clock);
    const int64_t before_ms = clock_ms();
    assay_ok(follower_server(0), "secret", "rotate", NULL);
    wall_clock_leave();
    wall_clock_free(clock);
    expect_keys(2);
    const int64_t settle_ms = signs_ms(keys_of(0)) - before_ms;
    ck_assert_int_ge(settle_ms, SETTLE_MS - 1);
    ck_assert_int_le(settle_ms, SETTLE_MS + 20000);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_node_signs_with_the_same_keys);
    tcase_add_test(tcase, a_node_that_cannot_write_its_file_tries_again);
    tcase_add_test(tcase, rotations_on_all_nodes_at_once_lose_no_key);
    tcase_add_loop_test(tcase,
                        when_a_key_signs_does_not_depend_on_the_clock_of_the_node_that_rotates, 0,
                        COUNT(steps_ms));
}

int main(void)
{
    return three_nodes_main("signing_keys", add_tests);
}
