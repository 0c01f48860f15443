/*
 * Damaged stores: with any content of data.mdb's pages, backup, check and restore end in time with
 * a message, and no signal kills them.
 */
#include "t/kit/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum { PAGE = 4096, DAMAGES = 60 };

static struct server *server;
static char *good, *backup;
static size_t good_size, backup_size;
static uint64_t state;

/* xorshift: the same damage in each run, if the stores are equal */
static size_t chance(size_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % below);
}

static char *read_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    ck_assert(fd >= 0 && fstat(fd, &st) == 0);
    char *bytes = malloc((size_t)st.st_size);
    ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *size = (size_t)st.st_size;
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_msg(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, "%s", path);
    close(fd);
}

static bool is_used(const char *page)
{
    for (size_t i = 0; i < PAGE; i++)
        if (page[i] != 0)
            return true;
    return false;
}

/* A page in use, preferably one of the last: these are branches and recent writes. */
static char *choose_page(char *store, size_t size)
{
    size_t pages = size / PAGE, last = pages - 1;
    while (last > 0 && !is_used(store + last * PAGE))
        last--;
    for (;;) {
        size_t at = chance(3) == 0 && last > 40 ? last - chance(40) : chance(last + 1);
        if (is_used(store + at * PAGE))
            return store + at * PAGE;
    }
}

static void fill(char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (char)chance(256);
}

static void damage_one(char *store, size_t size)
{
    char *page = choose_page(store, size), *other = choose_page(store, size);
    uint64_t number = chance(size / PAGE + 3);
    switch (chance(7)) {
    case 0:
        fill(page, PAGE);
        break;
    case 1:
        fill(page + chance(32), 8);
        break;
    case 2:
        memmove(page, other, PAGE);
        break;
    case 3: /* with its own number */
        memmove(page + 8, other + 8, PAGE - 8);
        break;
    case 4:
        memset(page, 0, PAGE);
        break;
    case 5:
        fill(page + 2 * chance(PAGE / 2), 2);
        break;
    default: /* another page's number, if there are several */
        memcpy(page + 8 * chance(PAGE / 8), &number, sizeof(number));
    }
}

static char *damaged(const char *store, size_t size)
{
    char *copy = malloc(size);
    memcpy(copy, store, size);
    for (size_t i = 1 + chance(4); i > 0; i--)
        damage_one(copy, size);
    return copy;
}

static void setup(void)
{
    server = server_new(&(struct server_options){.no_key = false});
    server_configure(server, "reports: { wait: 0s }");
    server_start(server);
    struct client *client = client_new(server);
    for (int i = 0; i < 1200; i++) {
        struct response *r = http_kept(
            client, .method = "POST", .path = "/api/v1/reports",
            .body = text("url=http://host-%d.invalid/a/page/with/a/longer/path/%d", i % 97, i));
        expect_status(r, 201);
        response_free(r);
    }
    client_free(client);
    server_stop(server);
    char *dir = text("%s/backup", server->dir);
    assay_ok(server, "backup", dir, NULL);
    backup = read_file(text("%s/data.mdb", dir), &backup_size);
    good = read_file(text("%s/data.mdb", server->data), &good_size);
    /* damage must not be confused with a sanitizer's report */
    setenv("ASAN_OPTIONS",
           text("handle_segv=0:handle_sigbus=0:handle_abort=0:allocator_may_return_null=1:"
                "abort_on_error=1:log_path=%s/asan",
                server->dir),
           1);
}

static void teardown(void)
{
    server_discard(server);
    free(good);
    free(backup);
}

static size_t crashed;

static void expect_an_end(struct run run, const char *damage)
{
    ck_assert_msg(run.status == 0 || run.status == 1, "%s, %s: status %d\n%s%s", run.command,
                  damage, run.status, run.out, run.err);
    /* LMDB's stack protector writes a line of its own: *** stack smashing detected *** */
    const char *said = strncmp(run.err, "*** ", 4) == 0 ? strstr(run.err, "assay: ") : run.err;
    ck_assert_msg(run.status == 0 || (said != NULL && strncmp(said, "assay: ", 7) == 0),
                  "%s, %s: %s", run.command, damage, run.err);
    crashed += strstr(run.err, " ended in a crash (SIG") != NULL;
}

static const uint64_t seeds[] = {88172645463325252u, 6364136223846793005u};

START_TEST(commands_on_damaged_stores_end_with_a_message)
{
    char *data = text("%s/data.mdb", server->data), *from = text("%s/damaged", server->dir),
         *made = text("%s/made", server->dir);
    state = seeds[_i];
    crashed = 0;
    ck_assert_int_eq(mkdir(from, 0700), 0);
    for (int i = 0; i < DAMAGES; i++) {
        const char *what = text("seed %d, damage %d", _i, i);
        char *store = damaged(good, good_size), *copy = damaged(backup, backup_size);
        write_file(data, store, good_size);
        expect_an_end(assay(server, "backup", made, NULL), what);
        ck_assert_msg(access(text("%s/data.mdb.part", made), F_OK) != 0,
                      "%s: a partial backup is left", what);
        run_program("/bin/rm", "-rf", made, NULL);
        write_file(data, store, good_size);
        expect_an_end(assay(server, "check", NULL), what);
        write_file(text("%s/data.mdb", from), copy, backup_size);
        expect_an_end(assay(server, "restore", from, NULL), what);
        ck_assert_msg(access(text("%s/restore.part", server->data), F_OK) != 0,
                      "%s: a partial restore is left", what);
        free(store);
        free(copy);
    }
    ck_assert_msg(crashed > 0, "no damage crashed LMDB: the test proves nothing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged_store");
    TCase *tcase = harness_case(suite, "a damaged store");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, commands_on_damaged_stores_end_with_a_message, 0, COUNT(seeds));
    tcase_set_timeout(tcase, 300);
    return harness_main(suite);
}
