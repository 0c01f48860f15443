/*
 * Files that each node has for itself: a node that finds its own damaged builds it again, and the
 * other nodes keep theirs.
 */
#include "t/kit/nodes.h"
#include "t/kit/sync.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum { PRODUCTS = 200, SOON_MS = 20000 };

static struct nodes *nodes;
static unsigned leader, other;
static char *shop, *jwt;

static void setup(void)
{
    nodes = nodes_new(&(struct nodes_options){.yaml = SYNC_MANY});
    leader = nodes_await_leader(nodes, NODES_AWAY);
    other = (leader + 1) % nodes->count;
    server = nodes->node[leader].server;
    sync_make();
}

static void teardown(void)
{
    nodes_free(nodes);
}

/* ---- questions ---- */

static void sync_shop(void)
{
    shop = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                    "*", NULL);
    for (unsigned from = 1; from <= PRODUCTS; from += 100) {
        char *items = text("[");
        for (unsigned i = from; i < from + 100; i++)
            items =
                text("%s%s%s", items, i == from ? "" : ",", product(i, text("kettle%u", i), ""));
        expect_status(post("products/sync", envelope(shop, "", "products", text("%s]", items))),
                      200);
    }
}

static void begin_chat(unsigned i)
{
    struct response *r = http(
        nodes->node[i].server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
        .headers = {"Content-Type: application/json"}, .body = text("{\"agent_id\":\"%s\"}", shop));
    expect_status(r, 200);
    jwt = text("%s", str_at(r, "data.jwt"));
}

/* ${arg}: the index of a node. */
static bool answers(void *arg)
{
    struct response *r = http(nodes->node[*(unsigned *)arg].server, .method = "POST",
                              .path = "/api/v1/widget/messages", .key = jwt, .may_fail = true,
                              .headers = {"Content-Type: application/json"},
                              .body = text("{\"message\":\"kettle7\"}"));
    return r->status == 200 && !bool_at(r, "data.low_confidence") &&
           int_at(r, "data.citations.0.wp_id") == 7;
}

/* ---- answer files ---- */

/* NULL: none */
static char *answer_file(unsigned i)
{
    char *dir = text("%s/answers", nodes->node[i].server->data), *found = NULL;
    struct dirent *e;
    DIR *open = opendir(dir);
    ck_assert_ptr_nonnull(open);
    while ((e = readdir(open)) != NULL)
        if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".db") == 0)
            found = text("%s/%s", dir, e->d_name);
    closedir(open);
    return found;
}

/* ${arg}: the file that ${other} had before. Not at once, since questions have a limit. */
static bool has_another_file(void *arg)
{
    const char *now = answer_file(other);
    poll(NULL, 0, 200);
    return answers(&other) && now != NULL && strcmp(now, arg) != 0;
}

static void kill_workers(struct server *s)
{
    for (unsigned i = 0; i < 8; i++) {
        pid_t worker = server_process(s, text("assayd: worker %u", i));
        if (worker != 0)
            ck_assert_int_eq(kill(worker, SIGKILL), 0);
    }
}

START_TEST(a_deleted_answer_file_is_built_again_on_its_node_alone)
{
    sync_shop();
    nodes_catch_up(nodes);
    begin_chat(other);
    ck_assert(wait_until(answers, &other, SOON_MS));
    ck_assert(wait_until(answers, &leader, SOON_MS));
    char *kept = answer_file(leader), *deleted = answer_file(other);
    ck_assert_int_eq(unlink(deleted), 0);
    kill_workers(nodes->node[other].server); /* those who come cannot open it */
    ck_assert_msg(wait_until(has_another_file, deleted, SOON_MS), "%s", nodes_logs(nodes));
    ck_assert_str_eq(answer_file(leader), kept);
    ck_assert(wait_until(answers, &leader, SOON_MS));
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_deleted_answer_file_is_built_again_on_its_node_alone);
}

int main(void)
{
    return nodes_main("local_files", 1, setup, teardown, add_tests);
}
