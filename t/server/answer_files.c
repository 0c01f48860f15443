/*
 * Answer files of a running server: after damage to the files, or crashes of the processes that
 * read and write them, answers return by themselves, and other requests are not affected.
 */
#include "t/kit/file_damage.h"
#include "t/kit/sync.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRODUCTS 1500
#define SOON_MS 20000

static char *jwt, *shop;

static bool is_indexed(void *arg)
{
    struct response *r =
        http(server, .method = "GET", .path = text("/v1/wp/status?agent_id=%s", (char *)arg),
             .key = token, .may_fail = true);
    return r->status == 200 && bool_at(r, "data.indexed");
}

static void sync_products(const char *of, unsigned from, unsigned to, const char *word)
{
    for (unsigned at = from; at <= to; at += 100) {
        char *items = "[";
        for (unsigned i = at; i < at + 100 && i <= to; i++)
            items =
                text("%s%s%s", items, i == at ? "" : ",", product(i, text("%s%u", word, i), ""));
        expect_status(post("products/sync", envelope(of, "", "products", text("%s]", items))), 200);
    }
}

static void begin(void)
{
    sync_setup();
    shop = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                    "*", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {"Content-Type: application/json"},
                              .body = text("{\"agent_id\":\"%s\"}", shop));
    expect_status(r, 200);
    jwt = text("%s", str_at(r, "data.jwt"));
    sync_products(shop, 1, PRODUCTS, "kettle");
    ck_assert(wait_until(is_indexed, shop, SOON_MS));
}

/* The product that the question names; 0: none. */
static int64_t answer_to(const char *question)
{
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/widget/messages", .key = jwt,
             .may_fail = true, .headers = {"Content-Type: application/json"},
             .body = text("{\"message\":\"%s\"}", question));
    if (r->status != 200 || bool_at(r, "data.low_confidence"))
        return 0;
    return int_at(r, "data.citations.0.wp_id");
}

static bool answers_again(void *arg)
{
    const unsigned *id = arg;
    return answer_to(text("kettle%u", *id)) == *id;
}

static void expect_answers(void)
{
    static const unsigned ids[] = {1, 7, 750, PRODUCTS};
    for (size_t i = 0; i < COUNT(ids); i++)
        ck_assert_msg(wait_until(answers_again, (void *)(uintptr_t)&ids[i], SOON_MS), "kettle%u",
                      ids[i]);
}

static size_t answer_files(char **last)
{
    char *path = text("%s/answers", server->data);
    size_t count = 0;
    struct dirent *e;
    DIR *dir = opendir(path);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".db") == 0) {
            *last = text("%s/%s", path, e->d_name);
            count++;
        }
    if (dir != NULL)
        closedir(dir);
    return count;
}

static char *answer_file(void)
{
    char *path = NULL;
    ck_assert_uint_eq(answer_files(&path), 1);
    return path;
}

/* ---- the file ---- */

static void overwrite_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t at = 0; at < st.st_size; at += 700)
        ck_assert_int_eq(pwrite(fd, "\xa5\x5a", 2, at), 2);
    close(fd);
}

/*
 * Columns: what happens to the file; whether the server is stopped, so that no process has it open.
 */
static const struct {
    void (*happen)(const char *path);
    bool stopped;
} damages[] = {{truncate_file, false},
               {overwrite_file, false},
               {delete_file, true},
               {truncate_file, true},
               {overwrite_file, true}};

START_TEST(answers_return_after_file_damage)
{
    begin();
    expect_answers();
    char *path = answer_file();
    if (damages[_i].stopped)
        server_stop(server);
    damages[_i].happen(path);
    if (damages[_i].stopped)
        server_start(server);
    sync_products(shop, PRODUCTS + 1, PRODUCTS + 1,
                  "pot"); /* the thread that writes the file detects it */
    expect_answers();
    ck_assert(wait_until(is_indexed, shop, SOON_MS));
    ck_assert_int_eq(answer_to(text("pot%d", PRODUCTS + 1)), PRODUCTS + 1);
    if (damages[_i].stopped) {
        ck_assert_str_ne(answer_file(), path);
    } else { /* cached pages can hide the damage until then */
        server_stop(server);
        server_start(server);
        expect_answers();
    }
    sync_teardown();
}
END_TEST

START_TEST(a_question_detects_a_missing_file)
{
    begin();
    server_stop(server);
    ck_assert_int_eq(unlink(answer_file()), 0);
    server_start(server);
    expect_answers();
    sync_teardown();
}
END_TEST

/* Threads that have the file open answer from it; the next one that opens it finds it missing. */
START_TEST(a_file_deleted_while_it_is_open_is_rebuilt)
{
    begin();
    expect_answers();
    char *path = answer_file();
    size_t from = strlen(server_log(server));
    ck_assert_int_eq(unlink(path), 0);
    for (int i = 0; i < 2; i++) {
        char *title = text("assayd: worker %d", i);
        pid_t worker = server_process(server, title);
        kill(worker, SIGKILL);
        ck_assert(server_replaces(server, title, worker, SOON_MS));
    }
    sync_products(shop, PRODUCTS + 1, PRODUCTS + 1, "pot");
    expect_answers();
    ck_assert_int_eq(answer_to(text("pot%d", PRODUCTS + 1)), PRODUCTS + 1);
    ck_assert_str_ne(answer_file(), path);
    ck_assert(server_says(server, text("requesting the rebuild of an answer file: %s", path), from,
                          SOON_MS));
    sync_teardown();
}
END_TEST

/* A text of the file, which a checkpoint may move to it from the WAL at that moment. */
static bool is_changed(void *path)
{
    return change_text(path, "kettle750") + change_text(text("%s-wal", (char *)path), "kettle750") >
           0;
}

static bool is_gone(void *path)
{
    return access(path, F_OK) != 0;
}

/*
 * A changed bit that no question meets. The second time it is a verification that found the file
 * sound before.
 */
START_TEST(damage_is_found_without_a_question)
{
    static const unsigned last = PRODUCTS;
    ck_assert_int_eq(setenv("ASSAYD", "./t/kit/small_assayd", 1), 0);
    begin();
    for (int i = 0; i < 2; i++) {
        size_t from = strlen(server_log(server));
        char *path = answer_file();
        ck_assert(wait_until(is_changed, path, SOON_MS));
        ck_assert(server_says(server, "rebuilding an answer file", from, SOON_MS));
        ck_assert(wait_until(is_gone, path, SOON_MS));
        ck_assert(wait_until(answers_again, (void *)(uintptr_t)&last, SOON_MS));
    }
    sync_teardown();
}
END_TEST

START_TEST(deleting_an_agent_deletes_its_file)
{
    char *path;
    begin();
    assay_ok(server, "agent", "delete", shop, NULL);
    for (int64_t until = now_ms() + SOON_MS; answer_files(&path) > 0 && now_ms() < until;)
        usleep(20000);
    ck_assert_uint_eq(answer_files(&path), 0);
    sync_teardown();
}
END_TEST

/* A disk that refuses answer files breaks nothing else. */
START_TEST(a_sync_works_when_answer_files_cannot_be_written)
{
    begin();
    char *dir = text("%s/answers", server->data), *away = text("%s/away", server->data);
    server_stop(server);
    ck_assert_int_eq(rename(dir, away), 0);
    close(open(dir, O_CREAT | O_WRONLY, 0600));
    server_start(server);
    sync_products(shop, 1, 100, "cup");
    ck_assert(server_says(server, "answers from synced content are not up to date", 0, SOON_MS));
    ck_assert(!is_indexed(shop));
    ck_assert_int_eq(answer_to("cup7"), 0);
    ck_assert_int_eq(unlink(dir), 0); /* mended */
    ck_assert_int_eq(rename(away, dir), 0);
    ck_assert(wait_until(is_indexed, shop, SOON_MS));
    ck_assert_int_eq(answer_to("cup7"), 7);
    sync_teardown();
}
END_TEST

/* ---- the processes ---- */

START_TEST(answers_are_complete_after_a_writer_killed_while_indexing)
{
    begin();
    for (int i = 0; i < 6; i++) {
        sync_products(shop, 1, 300, i % 2 ? "kettle" : "cup");
        usleep((useconds_t)i * 7000);
        pid_t writer = server_process(server, "assayd: writer");
        kill(writer, SIGKILL);
        ck_assert(server_replaces(server, "assayd: writer", writer, SOON_MS));
    }
    ck_assert(wait_until(is_indexed, shop, SOON_MS));
    expect_answers();
    ck_assert_int_eq(answer_to("cup7"), 0);
    sync_teardown();
}
END_TEST

START_TEST(answers_are_complete_after_all_processes_killed_while_indexing)
{
    pid_t children[16];
    begin();
    for (int i = 0; i < 3; i++) {
        sync_products(shop, 1, 300, i % 2 ? "cup" : "kettle");
        kill(server->pid, SIGSTOP);
        size_t count = server_children(server, children, 16);
        for (size_t j = 0; j < count; j++)
            kill(children[j], SIGKILL);
        server_signal(server, SIGKILL);
        ck_assert_int_eq(server_wait(server, SOON_MS), 128 + SIGKILL);
        server_start(server);
    }
    ck_assert(wait_until(is_indexed, shop, SOON_MS));
    expect_answers();
    ck_assert_int_eq(answer_to("cup7"), 0);
    assay_ok(server, "check", NULL);
    sync_teardown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("answer_files");
    tcase_add_loop_test(harness_case(suite, "damage"), answers_return_after_file_damage, 0,
                        COUNT(damages));
    tcase_add_test(harness_case(suite, "missing"), a_question_detects_a_missing_file);
    tcase_add_test(harness_case(suite, "open"), a_file_deleted_while_it_is_open_is_rebuilt);
    tcase_add_test(harness_case(suite, "verified"), damage_is_found_without_a_question);
    tcase_add_test(harness_case(suite, "agent"), deleting_an_agent_deletes_its_file);
    tcase_add_test(harness_case(suite, "disk"), a_sync_works_when_answer_files_cannot_be_written);
    tcase_add_test(harness_case(suite, "writer"),
                   answers_are_complete_after_a_writer_killed_while_indexing);
    tcase_add_test(harness_case(suite, "all"),
                   answers_are_complete_after_all_processes_killed_while_indexing);
    return harness_main_at_once(suite);
}
