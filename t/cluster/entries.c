/*
 * Entries of the log: those of several changes hold at most 1 MiB, a larger change has one of its
 * own, and the metric counts them.
 */
#include "t/kit/nodes.h"
#include "t/kit/supervisor.h"
#include "t/kit/sync.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

enum { MIB = 1 << 20, CALLERS = 24, POST_BYTES = 60000, FEW = 12, MANY = 60, PROCESSES = 2 };

static struct nodes *nodes;
static unsigned leader;
static struct server internals[NODES_MAX];
static char *shop;

static void setup(void)
{
    nodes = nodes_new(&(struct nodes_options){.yaml = SYNC_MANY "internal_listen: 127.0.0.1:0\n"});
    leader = nodes_await_leader(nodes, NODES_AWAY);
    server = nodes->node[leader].server;
    sync_make();
    shop = agent_new();
    for (unsigned i = 0; i < nodes->count; i++)
        internals[i] = server_internal(nodes->node[i].server);
    nodes_catch_up(nodes);
}

static void teardown(void)
{
    nodes_free(nodes);
}

/* Text that no compression makes much smaller. */
static void add_noise(char *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = i % 12 == 11 ? ' ' : (char)('a' + arc4random_uniform(26));
    to[size] = '\0';
}

/* A sync of posts, which is one change. */
static char *large_sync(unsigned first, unsigned count)
{
    char *noise = malloc(POST_BYTES + 1), *items = text("[");
    ck_assert_ptr_nonnull(noise);
    for (unsigned i = first; i < first + count; i++) {
        add_noise(noise, POST_BYTES);
        char *longer =
            text("%s%s{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://shop.example/%u"
                 "\",\"title\":\"%u\",\"content_html\":\"<p>%s</p>\"}",
                 items, i == first ? "" : ",", i, i, i, noise);
        free(items);
        items = longer;
    }
    free(noise);
    return envelope(shop, "", "posts", text("%s]", items));
}

struct caller {
    pthread_t thread;
    const struct server *server;
    char *body;
    struct response *response;
};

static void *sync_few(void *arg)
{
    struct caller *c = arg;
    c->response = http(c->server, .method = "POST", .path = "/v1/wp/posts/sync", .key = token,
                       .headers = {"Content-Type: application/json"}, .body = c->body);
    return NULL;
}

/* On all nodes, while the leader's writer sleeps: a batch of it has changes of several senders. */
static void sync_much(void)
{
    struct caller callers[CALLERS];
    pid_t writer = node_writer(nodes, leader);
    for (unsigned i = 0; i < CALLERS; i++)
        callers[i] = (struct caller){.server = nodes->node[i % nodes->count].server,
                                     .body = large_sync(1 + i * FEW, FEW)};
    process_stop(writer);
    for (unsigned i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, sync_few, &callers[i]), 0);
    poll(NULL, 0, 1000);
    kill(writer, SIGCONT);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        expect_status(callers[i].response, 200);
    }
}

/* Of the entries behind ${since}. */
static unsigned long asked(const char *what, uint64_t since)
{
    char *said = postgres_query(nodes->log, "SELECT %s FROM assay_log WHERE seq > %llu", what,
                                (unsigned long long)since);
    unsigned long number = said ? strtoul(said, NULL, 10) : 0;
    free(said);
    return number;
}

START_TEST(an_entry_of_several_changes_has_at_most_one_mib)
{
    uint64_t since = nodes_entries(nodes);
    sync_much();
    unsigned long largest = asked("max(octet_length(rows))", since),
                  all = asked("sum(octet_length(rows))", since);
    fprintf(stderr, "%lu bytes in %lu entries, the largest has %lu\n", all,
            asked("count(*)", since), largest);
    ck_assert_uint_le(largest, MIB);
    ck_assert_uint_gt(all, MIB + MIB / 4);
    ck_assert_uint_gt(largest, all / CALLERS * 3 / 2); /* it has several changes */
    ck_assert_int_eq(counted(shop, "posts"), CALLERS * FEW);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_change_larger_than_one_mib_is_one_entry)
{
    uint64_t since = nodes_entries(nodes);
    expect_status(post("posts/sync", large_sync(1, MANY)), 200);
    ck_assert_uint_gt(asked("max(octet_length(rows))", since), MIB);
    ck_assert_int_eq(counted(shop, "posts"), MANY);
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++) {
        server = nodes->node[i].server;
        ck_assert_int_eq(counted(shop, "posts"), MANY);
    }
    nodes_expect_equal(nodes);
}
END_TEST

static long appends(void)
{
    long sum = 0;
    for (unsigned i = 0; i < nodes->count; i++) {
        sum += metric(&internals[i], "assay_cluster_appends_total");
    }
    return sum;
}

static bool all_are_counted(void *unused)
{
    (void)unused;
    return (uint64_t)appends() == nodes_entries(nodes);
}

/* Also when another node has appended some of them. */
START_TEST(the_metric_of_appends_counts_the_entries_of_the_log)
{
    for (int i = 0; i < 20; i++)
        nodes_create(nodes, text("one%d", i));
    ck_assert(wait_until(all_are_counted, NULL, 5000));
    ck_assert_uint_ge(nodes_entries(nodes), 20);
    node_pause(nodes, leader);
    unsigned next = nodes_await_leader(nodes, (int)leader);
    node_resume(nodes, leader);
    nodes->asked[NODES_WRITE] = next;
    for (int i = 0; i < 20; i++)
        nodes_create(nodes, text("two%d", i));
    ck_assert_msg(wait_until(all_are_counted, NULL, 5000), "%ld appends of %llu", appends(),
                  (unsigned long long)nodes_entries(nodes));
    ck_assert_int_ge(metric(&internals[next], "assay_cluster_appends_total"), 20);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_entry_of_several_changes_has_at_most_one_mib);
    tcase_add_test(tcase, a_change_larger_than_one_mib_is_one_entry);
    tcase_add_test(tcase, the_metric_of_appends_counts_the_entries_of_the_log);
}

int main(void)
{
    return nodes_main("entries", PROCESSES, setup, teardown, add_tests);
}
