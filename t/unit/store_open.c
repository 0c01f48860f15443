/*
 * Opening a store that is missing, foreign, damaged or of another format: it is reported with a
 * message, and never ends the process. store_check reports every lost record.
 */
#include "t/kit/store.h"
#include "store/index/index.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kit k;
static char path[128];

static void setup(void)
{
    kit_open(&k);
    snprintf(path, sizeof(path), "%s/data.mdb", k.dir);
}

static void teardown(void)
{
    kit_close(&k);
}

static void close_store(void)
{
    store_close(k.s);
    k.s = NULL;
}

/* Opening must fail so, with a message. */
static void refused(const char *dir, enum store_mode mode, enum store_status status,
                    const char *part)
{
    char why[512] = "";
    struct store *s = NULL;
    const struct store_options o = {
        .dir = dir, .map_size = MAP_BYTES, .max_readers = 16, .mode = mode};
    enum store_status got = store_open(&o, &s, why, sizeof(why));
    ck_assert_msg(got == status, "%s: %s", store_status_text(got), why);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(why, part) != NULL, "\"%s\" does not say \"%s\"", why, part);
}

static void write_file(const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* Some records of every kind. */
static uint64_t fill(unsigned reports)
{
    uint64_t w = kit_workspace(&k, "acme");
    struct store_txn *t;
    struct store_answer a;
    char idem[32], url[700], body[32] = {0};
    kit_key(&k, w, 1);
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < reports; i++) {
        memset(url, 'x', sizeof(url));
        int n = snprintf(url, sizeof(url), "https://a.com/%u", i);
        url[i % 3 == 0 ? 600 : n] = '\0';
        if (i % 3 == 0)
            url[n] = 'x';
        struct store_change c = kit_create_change(w, url, i % 2 ? "a.com" : "b.com");
        memset(idem, (int)i + 1, sizeof(idem));
        c.idem_key = (struct str){idem, i < 100 ? 32 : 0};
        c.idem_body = (struct str){body, 32};
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
        c = kit_done_change(a.id, 1, (int)(i % 101));
        if (i % 4 != 0)
            store_apply(t, &c, k.now + i, &a);
    }
    store_sender_note(t, 3, 4, STR("answers"));
    ck_status(store_commit(t), STORE_OK);
    return w;
}

/* ---- what is not a store ---- */

START_TEST(a_missing_directory_is_reported)
{
    refused("/nonexistent/assay", STORE_WRITE, STORE_NOT_FOUND, "does not exist");
    refused("/nonexistent/assay", STORE_READ, STORE_NOT_FOUND, "does not exist");
    refused(path, STORE_WRITE, STORE_INVALID, "not a directory");
}
END_TEST

START_TEST(only_the_writer_creates_a_store_in_an_empty_directory)
{
    char dir[64];
    kit_dir(dir);
    refused(dir, STORE_READ, STORE_NOT_FOUND, "no store yet");
    struct store *s = kit_store(dir, STORE_WRITE, MAP_BYTES);
    store_close(s);
    s = kit_store(dir, STORE_READ, 0);
    store_close(s);
    kit_remove(dir);
}
END_TEST

START_TEST(an_empty_data_file_is_not_a_store)
{
    close_store();
    write_file("", 0);
    refused(k.dir, STORE_READ, STORE_NOT_FOUND, "no store yet");
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    kit_workspace(&k, "acme");
}
END_TEST

START_TEST(a_foreign_file_is_reported_and_unchanged)
{
    static char bytes[20000];
    close_store();
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 256);
    for (size_t n = 1; n <= sizeof(bytes); n = n * 3 + 1) {
        write_file(bytes, n);
        refused(k.dir, STORE_WRITE, STORE_CORRUPT, "store");
        refused(k.dir, STORE_READ, STORE_CORRUPT, "store");
        struct stat st;
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_int_eq(st.st_size, (off_t)n);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    refused(k.dir, STORE_READ, STORE_CORRUPT, "not a file");
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(a_foreign_lmdb_environment_is_reported_and_unchanged)
{
    close_store();
    unlink(path);
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {3, "abc"}, value = {1, "x"};
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_open(env, k.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    refused(k.dir, STORE_WRITE, STORE_CORRUPT, "another program");
    refused(k.dir, STORE_READ, STORE_CORRUPT, "another program");
}
END_TEST

START_TEST(a_truncated_store_is_reported)
{
    struct stat st;
    fill(300);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    close_store();
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_ge((uint64_t)st.st_size, u.space.used_bytes);
    for (off_t size = (off_t)u.space.used_bytes / 2; size > 100; size /= 2) {
        ck_assert_int_eq(truncate(path, size), 0);
        refused(k.dir, STORE_READ, STORE_CORRUPT, "backup");
        refused(k.dir, STORE_WRITE, STORE_CORRUPT, "backup");
    }
}
END_TEST

/* on a file system without holes there is none either */
START_TEST(the_file_has_no_hole_before_its_last_page)
{
    const off_t ahead = 1 << 20;
    struct stat before, st;
    ck_assert_int_eq(stat(path, &before), 0);
    kit_key(&k, fill(8000), 2); /* a commit, and the next transaction */
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_gt(st.st_size, before.st_size);
    ck_assert_int_eq(lseek(fd, st.st_size - ahead, SEEK_HOLE), st.st_size);
    close(fd);
}
END_TEST

START_TEST(an_inaccessible_directory_is_reported)
{
    if (getuid() != 0)
        return; /* only root can become a user without access */
    close_store();
    ck_assert_int_eq(chmod(k.dir, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        refused(k.dir, STORE_WRITE, STORE_IO, "owner");
        refused(k.dir, STORE_READ, STORE_IO, "owner");
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_damaged_byte_is_found_or_harmless)
{
    static char good[8 << 20];
    uint64_t seed = (uint64_t)_i + 1;
    fill(200);
    close_store();
    int fd = open(path, O_RDWR);
    ssize_t n = read(fd, good, sizeof(good));
    ck_assert_int_gt(n, 0);
    for (int round = 0; round < 60; round++) {
        char why[512] = "";
        struct store *s;
        char junk[48];
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        off_t at = (off_t)((seed >> 20) % 90 * 4096 + (seed >> 13) % (round % 2 ? 64 : 4000));
        memset(junk, (int)(seed >> 57), sizeof(junk));
        ck_assert_int_eq(pwrite(fd, junk, round % 3 ? 8 : sizeof(junk), at),
                         round % 3 ? 8 : (ssize_t)sizeof(junk));
        const struct store_options o = {.dir = k.dir, .mode = STORE_READ};
        if (store_open(&o, &s, why, sizeof(why)) == STORE_OK) {
            kit_problems(s);
            store_close(s);
        } else {
            ck_assert_uint_gt(strlen(why), 0);
        }
        ck_assert_int_eq(pwrite(fd, good, (size_t)n, 0), n);
    }
    close(fd);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    kit_check_clean(k.s);
}
END_TEST

/* ---- formats ---- */

/* Put or delete directly. */
static void tamper(const char *db, const void *key, size_t key_n, const void *value, size_t value_n)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val k_ = {key_n, (void *)(uintptr_t)key}, v = {value_n, (void *)(uintptr_t)value};
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 8);
    ck_assert_int_eq(mdb_env_open(env, k.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, db, 0, &dbi), 0);
    if (value != NULL) {
        ck_assert_int_eq(mdb_put(txn, dbi, &k_, &v, 0), 0);
    } else {
        MDB_cursor *c;
        ck_assert_int_eq(mdb_cursor_open(txn, dbi, &c), 0);
        ck_assert_int_eq(mdb_cursor_get(c, &k_, &v, MDB_SET_RANGE), 0);
        ck_assert(k_.mv_size >= key_n && memcmp(k_.mv_data, key, key_n) == 0);
        ck_assert_int_eq(mdb_cursor_del(c, 0), 0);
        mdb_cursor_close(c);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static size_t slurp(char *to, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, to, size);
    close(fd);
    ck_assert_int_gt(n, 0);
    return (size_t)n;
}

/* Columns: the record of the store's format, its length. */
static const struct {
    uint32_t record[16];
    size_t n;
} others[] = {
    {{STORE_FORMAT_VERSION + 1, 1}, 20},           {{STORE_FORMAT_VERSION + 1, 1}, 64},
    {{STORE_FORMAT_VERSION - 1, 1}, 20},           {{UINT32_MAX}, 4},
    {{STORE_FORMAT_VERSION, STORE_LAYOUT + 1}, 8},
};

static const char *refusal(int row)
{
    static char text[128];
    snprintf(text, sizeof(text),
             "has format %u.%u, but this version of Assay reads only format %d.%d: use the version "
             "of Assay that wrote it",
             others[row].record[0], others[row].record[1], STORE_FORMAT_VERSION, STORE_LAYOUT);
    return text;
}

START_TEST(another_format_is_refused_and_unchanged)
{
    static char before[8 << 20], after[8 << 20];
    fill(10);
    close_store();
    tamper("base", "lf", 2, others[_i].record, others[_i].n);
    size_t n = slurp(before, sizeof(before));
    refused(k.dir, STORE_WRITE, STORE_OTHER_FORMAT, refusal(_i));
    refused(k.dir, STORE_READ, STORE_OTHER_FORMAT, refusal(_i));
    ck_assert_uint_eq(slurp(after, sizeof(after)), n);
    ck_assert(memcmp(before, after, n) == 0);
}
END_TEST

START_TEST(a_backup_of_another_format_is_not_restored)
{
    char to[64], why[512], made[128];
    fill(10);
    close_store();
    tamper("base", "lf", 2, others[_i].record, others[_i].n);
    kit_dir(to);
    ck_status(store_restore(k.dir, to, NULL, NULL, why, sizeof(why)), STORE_OTHER_FORMAT);
    ck_assert_msg(strncmp(why, "the backup ", 11) == 0 && strstr(why, k.dir) != NULL &&
                      strstr(why, refusal(_i)) != NULL,
                  "%s", why);
    snprintf(made, sizeof(made), "%s/data.mdb", to);
    ck_assert_int_ne(access(made, F_OK), 0);
    kit_remove(to);
}
END_TEST

START_TEST(a_malformed_format_record_is_damage)
{
    close_store();
    tamper("base", "lf", 2, "one", 3);
    refused(k.dir, STORE_READ, STORE_CORRUPT, "the record of the store's format is damaged");
}
END_TEST

/* ---- store_check ---- */

/* Columns: sub-database, prefix of the key of the lost record. */
static const struct {
    const char *db, *prefix;
} losses[] = {
    {"base", "w"},   {"base", "n"}, {"base", "i"}, {"base", "h"}, {"base", "p"},   {"base", "q"},
    {"base", "d"},   {"base", "j"}, {"base", "e"}, {"base", "f"}, {"record", "k"}, {"record", "r"},
    {"result", "s"}, {"list", "l"}, {"list", "m"}, {"list", "s"},
};

START_TEST(check_finds_a_lost_record_of_any_kind)
{
    close_store();
    kit_segment_rows = 16;
    kit_log_entries = 20;
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    uint64_t w = fill(60);
    kit_purge(&k, 1000); /* merges */
    kit_create(&k, w, "https://a.com/later", "a.com");
    kit_check_clean(k.s);
    close_store();
    tamper(losses[_i].db, losses[_i].prefix, 1, NULL, 0);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_assert_uint_gt(kit_problems(k.s), 0);
    ck_assert_uint_gt(strlen(kit_problem), 10);
}
END_TEST

START_TEST(check_finds_an_extra_index_entry)
{
    fill(60);
    close_store();
    const struct {
        struct log_head head;
        struct log_entry entry;
    } PACKED record = {{61, sizeof(struct log_entry)},
                       {.kind = LOG_ADD, .id = 999, .score = -1, .project = 1}};
    tamper("list", "l\x01\x01\x02\x01\x00", 6, &record, sizeof(record));
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_assert_uint_gt(kit_problems(k.s), 0);
}
END_TEST

START_TEST(check_finds_a_record_of_another_length)
{
    fill(60);
    close_store();
    tamper("base", "w\x01\x01", 3, "short", 5);
    tamper("base", "j\x01\x01", 3, "short", 5);
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    ck_assert_uint_gt(kit_problems(k.s), 0);
    ck_status(kit_get_workspace(k.s, 1, NULL), STORE_CORRUPT);
    ck_assert_uint_gt(strlen(store_why(k.s)), 10);
    struct store_change c = kit_create_change(1, "https://a.com/", "a.com");
    ck_status(kit_status(&k, &c), STORE_CORRUPT);
}
END_TEST

struct steps {
    uint64_t last, calls, stop_at;
};

static bool step(void *arg, uint64_t done, uint64_t total)
{
    struct steps *s = arg;
    ck_assert_uint_ge(done, s->last);
    ck_assert_uint_le(done, total);
    s->last = done;
    return ++s->calls != s->stop_at;
}

START_TEST(check_reports_progress_and_stops_on_request)
{
    struct steps s = {0};
    uint64_t records;
    fill(2000);
    store_read_end(k.s);
    ck_status(store_check(k.s, step, NULL, &s, &records), STORE_OK);
    ck_assert_uint_gt(s.calls, 5);
    ck_assert_uint_gt(records, 6000);
    ck_assert_uint_eq(s.last, records);
    s = (struct steps){.stop_at = 5};
    ck_status(store_check(k.s, step, NULL, &s, &records), STORE_IO);
    ck_assert_uint_eq(s.calls, 5);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

int main(void)
{
    Suite *suite = suite_create("store_open");
    TCase *tc = tcase_create("open");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_missing_directory_is_reported);
    tcase_add_test(tc, only_the_writer_creates_a_store_in_an_empty_directory);
    tcase_add_test(tc, an_empty_data_file_is_not_a_store);
    tcase_add_test(tc, a_foreign_file_is_reported_and_unchanged);
    tcase_add_test(tc, a_foreign_lmdb_environment_is_reported_and_unchanged);
    tcase_add_test(tc, a_truncated_store_is_reported);
    tcase_add_test(tc, the_file_has_no_hole_before_its_last_page);
    tcase_add_test(tc, an_inaccessible_directory_is_reported);
    tcase_add_loop_test(tc, a_damaged_byte_is_found_or_harmless, 0, 8);
    tcase_add_loop_test(tc, another_format_is_refused_and_unchanged, 0, COUNT(others));
    tcase_add_loop_test(tc, a_backup_of_another_format_is_not_restored, 0, COUNT(others));
    tcase_add_test(tc, a_malformed_format_record_is_damage);
    tcase_add_loop_test(tc, check_finds_a_lost_record_of_any_kind, 0, COUNT(losses));
    tcase_add_test(tc, check_finds_an_extra_index_entry);
    tcase_add_test(tc, check_finds_a_record_of_another_length);
    tcase_add_test(tc, check_reports_progress_and_stops_on_request);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
