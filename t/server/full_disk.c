/*
 * A full or read-only disk under a server that runs or starts: requests are refused with a message,
 * acknowledged changes are kept, and the server works again when there is space. The test mounts
 * its own disk, which needs root; without root it is skipped.
 */
#include "t/kit/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { SKIPPED = 77 };

static struct server *server;
static struct client *client;

static bool mount_disk(const char *at, const char *size)
{
    return mount("tmpfs", at, "tmpfs", 0, text("size=%s,mode=0700", size)) == 0;
}

static void remount(const char *size, unsigned long flags)
{
    ck_assert_msg(
        mount("tmpfs", server->data, "tmpfs", MS_REMOUNT | flags, text("size=%s", size)) == 0, "%s",
        strerror(errno));
}

/* Mounts are private to this test. */
static void setup(void)
{
    server = server_new(&(struct server_options){0});
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert(mount_disk(server->data, "24m"));
    client = client_new(server);
}

static void teardown(void)
{
    if (server->pid > 0)
        server_stop(server);
    client_free(client);
    umount2(server->data, MNT_DETACH);
    server_free(server);
}

static struct response *create(int number)
{
    static char filler[1901];
    memset(filler, 'f', sizeof(filler) - 1);
    return http_kept(client, .method = "POST", .path = "/api/v1/reports",
                     .headers = {"Prefer: respond-async"},
                     .body = form("url", text("http://127.0.0.1:80/%d/%s", number, filler), NULL));
}

/* Until one is refused; the id of the last accepted one. */
static int64_t fill_up(void)
{
    int64_t last = 0;
    for (int i = 0; i < 20000; i++) {
        struct response *r = create(i);
        if (r->status != 202) {
            expect_error(r, 507, "storage_full");
            return last;
        }
        last = int_at(r, "data.id");
        response_free(r);
    }
    ck_abort_msg("the disk is never full");
    return 0;
}

static void *create_until_full(void *arg)
{
    struct response *r;
    int status;
    do {
        r = http(server, .method = "POST", .path = "/api/v1/reports",
                 .headers = {"Prefer: respond-async"}, .body = arg, .may_fail = true);
        status = r->status;
        response_free(r);
    } while (status == 202);
    return NULL;
}

/* By several clients at once, while pages are graded. Returns the number of reports. */
static int64_t fill_up_together(void)
{
    pthread_t threads[6];
    static char body[2000] = "url=http%3A%2F%2F127.0.0.1%3A80%2F";
    memset(body + strlen(body), 'f', sizeof(body) - 1 - strlen(body));
    for (size_t i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, create_until_full, body), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    return int_at(http_get(server, "/api/v1/reports"), "meta.total");
}

static bool takes_creates(void *arg)
{
    return create(*(int *)arg)->status == 202;
}

START_TEST(a_full_disk_refuses_creates_and_loses_nothing)
{
    server_start(server);
    int64_t last = fill_up();
    ck_assert_int_gt(last, 100);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last);
    expect_status(http_get(server, report_path(last)), 200);
    expect_status(http_get(server, "/readyz"), 200);
    for (int i = 0; i < 50; i++) { /* maintenance can free a page for one more */
        struct response *r = create(i);
        if (r->status == 202)
            last++;
        else
            expect_error(r, 507, "storage_full");
    }
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last);
    ck_assert_msg(strstr(server_log(server), "free disk space") != NULL, "%s", server_log(server));
    assay_ok(server, "check", NULL);

    remount("64m", 0); /* space is freed */
    int number = -1;
    ck_assert_msg(wait_until(takes_creates, &number, 10000), "%s", server_log(server));
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last + 1);
    assay_ok(server, "check", NULL);
    server_stop(server);
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last + 1);
}
END_TEST

static void limit_files_of_writer(rlim_t bytes)
{
    struct rlimit was;
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, NULL, &was), 0);
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, &(struct rlimit){bytes, was.rlim_max}, NULL), 0);
}

START_TEST(a_file_size_limit_acts_as_a_full_disk)
{
    struct stat st;
    remount("64m", 0);
    server_start(server);
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_eq(stat(text("%s/data.mdb", server->data), &st), 0);
    limit_files_of_writer((rlim_t)st.st_size + (20 << 20) + 1000); /* not even a whole page */
    int64_t last = fill_up_together();
    ck_assert_int_gt(last, 300);
    for (int64_t id = last; id > last - 300; id--)
        expect_status(http_delete(server, report_path(id)), 200);
    ck_assert_msg(strstr(server_log(server), "nearly reached the file size limit") != NULL, "%s",
                  server_log(server));
    /* it does not free space */
    ck_assert_msg(strstr(server_log(server), "free disk space") == NULL, "%s", server_log(server));
    limit_files_of_writer(RLIM_INFINITY);
    int number = -1;
    ck_assert_msg(wait_until(takes_creates, &number, 10000), "%s", server_log(server));
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last - 300 + 1);
    ck_assert_int_eq(server_process(server, "assayd: writer"), writer);
    assay_ok(server, "check", NULL);
}
END_TEST

static void fill_by_others(void)
{
    run_program("/bin/sh", "-c", text("cat /dev/zero >'%s/filler' 2>/dev/null", server->data),
                NULL);
}

START_TEST(a_completely_full_disk_still_serves_reads)
{
    int64_t made = 0;
    server_start(server);
    for (int i = 0; i < 100; i++)
        expect_status(create(i), 202);
    fill_by_others();
    for (int i = 0; i < 100;
         i++) { /* a commit fails in one case, and the space check in the other */
        struct response *r = create(i);
        made += r->status == 202;
        if (r->status != 202)
            expect_error(r, 507, "storage_full");
    }
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 100 + made);
    expect_status(http_get(server, report_path(100)), 200);
    expect_status(http_get(server, "/readyz"), 200);
    struct run run = run_program("/bin/rm", text("%s/filler", server->data), NULL);
    ck_assert_int_eq(run.status, 0);
    int number = -1;
    ck_assert_msg(wait_until(takes_creates, &number, 10000), "%s", server_log(server));
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 100 + made + 1);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_full_disk_allows_deletes_and_revocations)
{
    server_start(server);
    struct json_object *made = json_tokener_parse(assay_ok(server, "key", "create", "--workspace",
                                                           "main", "--json", NULL)),
                       *id, *secret;
    ck_assert(json_object_object_get_ex(made, "id", &id));
    ck_assert(json_object_object_get_ex(made, "key", &secret) ||
              json_object_object_get_ex(made, "secret", &secret));
    int64_t last = fill_up();
    expect_status(http(server, .path = "/api/v1/reports", .key = json_object_get_string(secret)),
                  200);
    assay_ok(server, "key", "revoke", json_object_get_string(id), NULL);
    expect_error(http(server, .path = "/api/v1/reports", .key = json_object_get_string(secret)),
                 401, "unauthorized");
    for (int64_t i = 1; i <= last; i++)
        expect_status(http_kept(client, .method = "DELETE", .path = report_path(i)), 200);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 0);
    int number = -1;
    /* in the freed pages */
    ck_assert_msg(wait_until(takes_creates, &number, 10000), "%s", server_log(server));
    assay_ok(server, "check", NULL);
}
END_TEST

static bool is_ready(void *arg)
{
    return http(server, .path = "/readyz", .key = "")->status == *(int *)arg;
}

START_TEST(a_read_only_disk_is_reported_and_used_when_writable_again)
{
    server_start(server);
    struct response *r = create(0);
    expect_status(r, 202);
    int64_t id = int_at(r, "data.id");
    server_stop(server);
    remount("64m", MS_RDONLY);
    struct run run = run_program(assayd_path(), "-c", server->conf, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, server->data) && strstr(run.err, "Read-only"),
                  "%d: %s", run.status, run.err);
    run = assay(server, "workspace", "create", "late", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "Read-only"), "%d: %s", run.status, run.err);
    run = assay(server, "backup", text("%s/backup", server->dir), NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "Read-only"), "%d: %s", run.status, run.err);
    remount("64m", 0);
    server_start(server);
    ck_assert(wait_until(is_ready, &(int){200}, 5000));
    expect_status(http_get(server, report_path(id)), 200);
}
END_TEST

START_TEST(a_backup_to_a_full_disk_and_a_restore_to_one_change_nothing)
{
    char *dir = text("%s/small", server->dir);
    struct run run = run_program("/bin/mkdir", dir, NULL);
    ck_assert_int_eq(run.status, 0);
    ck_assert(mount_disk(dir, "64k"));
    server_start(server);
    for (int i = 0; i < 100; i++)
        expect_status(create(i), 202);
    run = assay(server, "backup", dir, NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "full"), "%d: %s", run.status, run.err);
    assay_ok(server, "check", NULL);
    assay_ok(server, "backup", text("%s/good", server->dir), NULL);
    server_stop(server);

    run = assay(server, "--set", text("data_dir=%s", dir), "restore", text("%s/good", server->dir),
                NULL);
    ck_assert_msg(run.status == 1 && *run.err, "%d: %s", run.status, run.err);
    run = run_program("/bin/sh", "-c", text("test ! -e '%s/data.mdb'", dir), NULL);
    ck_assert_msg(run.status == 0, "a partial store is left");
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 100);
    server_stop(server);
    umount2(dir, MNT_DETACH);
}
END_TEST

START_TEST(a_server_started_on_a_full_disk_serves_its_data)
{
    server_start(server);
    int64_t last = fill_up();
    server_stop(server);
    fill_by_others();
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", last);
    expect_error(create(-1), 507, "storage_full");
    expect_status(http_delete(server, report_path(last)), 200);
    assay_ok(server, "check", NULL);
}
END_TEST

int main(void)
{
    if (system("unshare -m mount -t tmpfs none /mnt >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: no disk can be mounted here\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("full_disk");
    TCase *tcase = harness_case(suite, "a disk each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_full_disk_refuses_creates_and_loses_nothing);
    tcase_add_test(tcase, a_file_size_limit_acts_as_a_full_disk);
    tcase_add_test(tcase, a_completely_full_disk_still_serves_reads);
    tcase_add_test(tcase, a_full_disk_allows_deletes_and_revocations);
    tcase_add_test(tcase, a_read_only_disk_is_reported_and_used_when_writable_again);
    tcase_add_test(tcase, a_backup_to_a_full_disk_and_a_restore_to_one_change_nothing);
    tcase_add_test(tcase, a_server_started_on_a_full_disk_serves_its_data);
    return harness_main(suite);
}
